"""A call of a model as a boundary: its answer is one value, or a stream whose pieces pass through."""

import time
from collections.abc import Awaitable, Callable
from typing import Any

from twiceshy._boundaries import Boundary
from twiceshy._pieces import pieces_of
from twiceshy._session import Session, observed, observed_async
from twiceshy._streams import Stream


def asked(session: Session, boundary: Boundary, call: Callable[[], Any]) -> Any:
    """Pass the boundary, blocking."""
    passing = session.enter(boundary)
    began = time.perf_counter_ns()
    outcome = passing.served
    if outcome is None:
        with session.inside():
            outcome = observed(call)
    pieces = pieces_of(boundary.name, outcome, began)
    if pieces is not None:
        return Stream(session, passing, pieces)
    passing.give(outcome)
    return outcome.give()


async def asked_async(session: Session, boundary: Boundary, call: Callable[[], Awaitable[Any]]) -> Any:
    """Pass the boundary on an event loop."""
    passing = await session.enter_async(boundary)
    began = time.perf_counter_ns()
    outcome = passing.served
    if outcome is None:
        with session.inside():
            outcome = await observed_async(call)
    pieces = pieces_of(boundary.name, outcome, began)
    if pieces is not None:
        return Stream(session, passing, pieces)
    await passing.give_async(outcome)
    return outcome.give()
