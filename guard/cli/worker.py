"""One of several processes of `twiceshy serve --workers`: `python -m guard.cli.worker`, started by `guard.cli.workers`.

Standard input is a socket to the process that started this one. Its plan comes first; whether it serves, or why not,
goes back. When the other end is closed, whoever started this process is gone, and it ends in order.
"""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import Callable
from typing import Final, cast

import msgspec
from prometheus_client import values

from guard import logs
from guard.app import app
from guard.cli.serving import Serving
from guard.collector import spare_the_collector
from guard.ports.store import StoreUnavailable
from guard.preparation import prepare
from guard.service.measures import METERS_VARIABLE
from guard.settings import Settings
from guard.store.sql.refusals import DatabaseRefused
from outbox_relay.command import networks_said
from outbox_relay.reaching import opener, reaching_with

LENGTH_BYTES: Final = 4
"""How long a plan is, before it."""
SERVES: Final = b"serves"
FAILED: Final = b"failed "
LEAVE: Final = b"leave"
"""Ends a worker whose successor serves: it need not linger for a balancer, since its port stays served."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker is to do. `number` names it in the log, `meters` its files of meters: no two at once share one."""

    settings: Settings
    allow: str
    log_level: int
    linger_seconds: float
    number: int = 0
    meters: str = ""
    listening: int = 0


def main() -> None:
    """Serve until that is to stop."""
    channel = socket.socket(fileno=os.dup(sys.stdin.fileno()))
    try:
        plan = _read_plan(channel)
    except EOFError:
        return
    logs.write_to_stderr(plan.log_level, worker=plan.number)
    try:
        asyncio.run(prepare(plan.settings.database))
    except (DatabaseRefused, StoreUnavailable) as error:
        channel.sendall(FAILED + str(error).encode())
        sys.exit(1)
    # By the library's default a file is of a process id: then each worker that ever was would leave files behind.
    make = cast("Callable[[Callable[[], str]], type]", values.MultiProcessValue)  # it has no annotations
    values.ValueClass = make(lambda: plan.meters)
    spare_the_collector()
    _serve(plan, channel)


def _serve(plan: Plan, channel: socket.socket) -> None:
    served = app(plan.settings, reaching_with(opener(networks_said(plan.allow))))

    def serves() -> None:
        asyncio.get_running_loop().add_reader(channel, hear)
        channel.settimeout(0)
        channel.send(SERVES)

    def hear() -> None:
        try:
            heard = channel.recv(64)
        except BlockingIOError:
            return
        except OSError:
            heard = b""
        if not heard:  # nobody is left to remove what all workers share
            asyncio.get_running_loop().remove_reader(channel)
            shutil.rmtree(os.environ[METERS_VARIABLE], ignore_errors=True)
        server.linger_seconds = 0.0
        server.should_exit = True

    server = Serving(served, socket.socket(fileno=plan.listening), serves)
    server.linger_seconds = plan.linger_seconds
    server.is_alone = False
    server.run()


def _read_plan(channel: socket.socket) -> Plan:
    """Read the plan. Raises EOFError where nobody sends one any more."""
    length = int.from_bytes(_read(channel, LENGTH_BYTES))
    return msgspec.msgpack.decode(_read(channel, length), type=Plan)


def _read(channel: socket.socket, length: int) -> bytes:
    read = b""
    while len(read) < length:
        more = channel.recv(length - len(read))
        if not more:
            raise EOFError
        read += more
    return read


if __name__ == "__main__":
    main()
