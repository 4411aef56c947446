"""Reporting: what was heard of destinations is told once, or kept until it can be told."""

from collections.abc import Sequence

from guard.ports.relay import RelayStore
from outbox_relay.hearing import Hearing
from outbox_relay.route import Route


async def report(store: RelayStore, routes: Sequence[Route]) -> bool:
    """Tell what was heard of these; say whether any of it was bad. Raises StoreUnavailable."""
    told = {route: route.hearing for route in routes}
    for route in routes:
        route.hearing = Hearing()
    try:
        await store.report([hearing.told(route.way.id) for route, hearing in told.items()])
    except BaseException:
        for route, hearing in told.items():
            route.hearing.follow(hearing)
        raise
    return any(hearing.is_bad for hearing in told.values())
