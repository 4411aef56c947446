"""The connectivity check: a destination is opened, reached without delivering anything, and closed again."""

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from guard.core.effects import seconds
from guard.ports.reaching import Reached, Reaching
from outbox_relay.networks import Networks
from outbox_relay.route import OpenSink
from outbox_relay.secrets import secret_reader
from outbox_relay.sinks.base import Sink, SinkRefused
from outbox_relay.sinks.log import FOLDER_VARIABLE
from outbox_relay.sinks.opening import open_sink
from twiceshy_contract.destinations import Destination

_BEYOND_SECONDS: Final = 1.0


def opener(networks: Networks, environment: Mapping[str, str] = os.environ) -> OpenSink:
    """Return what opens destinations, with the secrets of an environment and what else an operator allows."""
    read_secret = secret_reader(environment)
    folder = Path(environment.get(FOLDER_VARIABLE) or ".")

    def opened(name: str, settings: Destination) -> Sink:
        return open_sink(name, settings, read_secret, networks, folder)

    return opened


def reaching_with(open_sink: OpenSink) -> Reaching:
    """Return the check."""

    async def reach(name: str, settings: Destination) -> Reached:
        began = time.monotonic()
        ok, detail = await _reach(open_sink, name, settings)
        return Reached(ok=ok, detail=detail, took=seconds(time.monotonic() - began))

    return reach


async def _reach(open_sink: OpenSink, name: str, settings: Destination) -> tuple[bool, str]:
    try:
        sink = open_sink(name, settings)
    except SinkRefused as error:
        return False, str(error)
    try:
        async with asyncio.timeout(settings.timeout_seconds + _BEYOND_SECONDS):
            seen = await sink.check()
            return seen.ok, seen.detail
    except TimeoutError:
        return False, f"no answer within {settings.timeout_seconds:g} seconds"
    except Exception as error:  # noqa: BLE001  whatever goes wrong is what was seen
        return False, f"the check failed: {error!r}"
    finally:
        await sink.close()
