"""The flags of an effect, read until they are there: they are written after the report that calls for them."""

import time

from tests.service import Reply, ServiceProcess

_PATIENCE = 20.0


def flags_about(service: ServiceProcess, grant: Reply, at_least: int = 1) -> list[dict[str, object]]:
    """Return the flags about the effect of a grant, newest first, once there are so many."""
    until = time.monotonic() + _PATIENCE
    while True:
        flags = service.ask("GET", "/v1/flags?limit=500").body["items"]
        about = [flag for flag in flags if flag["key"] == grant.body["key"]]
        if len(about) >= at_least:
            return about
        assert time.monotonic() < until, flags
        time.sleep(0.02)
