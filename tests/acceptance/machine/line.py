"""The line from the machine to the services: every request and answer goes over it and is remembered."""

import json
from collections.abc import Callable, Sequence
from typing import Protocol

from tests.service import Reply

Ask = Callable[[str, str, object], Reply]
"""Sends a method, a path and a body to one service."""


class Service(Protocol):
    """A running service."""

    def ask(self, method: str, path: str, body: object = None) -> Reply:
        """Send one request."""
        ...


class Disagreement(AssertionError):
    """The service answered what the design does not say."""


def word(reply: Reply) -> str:
    """Return the answer in one word: execute, replay, ok, or the code of a problem."""
    if reply.status == 201:
        return str(reply.body["decision"])
    if reply.status == 200:
        return str(reply.body.get("decision", "ok"))
    return reply.code


class Line:
    """Asks one of several services and keeps the trace."""

    def __init__(self, asks: Sequence[Ask]) -> None:
        self._asks = asks
        self.trace: list[str] = []

    def ask(self, at: int, method: str, path: str, body: object = None) -> Reply:
        """Send one request to the service of this number."""
        reply = self._asks[at % len(self._asks)](method, path, body)
        sent = "" if body is None else json.dumps(body)
        self.trace.append(
            f"[{at % len(self._asks)}] {method} {path} {sent}\n    {reply.status} {json.dumps(reply.body)}"
        )
        return reply

    def ask_all(self, method: str, path: str, body: object) -> list[Reply]:
        """Send one request to every service, so that each has heard of it."""
        return [self.ask(at, method, path, body) for at in range(len(self._asks))]

    def note(self, happened: str) -> None:
        """Write down what happened beside the line."""
        self.trace.append(f"-- {happened}")

    def told(self) -> str:
        """Return all that went over the line."""
        return "\n".join(self.trace)
