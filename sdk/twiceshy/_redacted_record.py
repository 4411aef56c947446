"""Calls of which the record has another part redacted than what is redacted now: they are known by the rest.

What a record leaves out of the calls of a tool, a replay leaves out of its own log and of its report as well.
"""

from typing import Any, cast

import msgspec

from twiceshy._boundaries import Boundary
from twiceshy._recording import Recording
from twiceshy._script import Order, key_of
from twiceshy_contract.events import Intent
from twiceshy_contract.redaction import marks, redacted
from twiceshy_contract.refusals import JsonValue


class Covering:
    """Leaves out of a tool's calls what a recording leaves out of any of them."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._places: dict[str, tuple[str, ...]] | None = None

    def __call__(self, boundary: Boundary) -> Boundary:
        """Return a boundary with the mark in the place of what the record does not have."""
        if boundary.kind != "tool_call":
            return boundary
        if self._places is None:
            self._places = self._left_out()
        places = self._places.get(boundary.name)
        if places is None:
            return boundary
        matched = None if boundary.matched is None else _covered(boundary.matched, places)
        return msgspec.structs.replace(boundary, arguments=_covered(boundary.arguments, places), matched=matched)

    def _left_out(self) -> dict[str, tuple[str, ...]]:
        """Return the places that hold the mark in the calls of each tool, `*` for whichever item of a list."""
        found: dict[str, dict[str, None]] = {}
        for event in self._recording.events:
            if isinstance(event, Intent) and event.kind == "tool_call":
                for place in marks(self._recording.arguments(event)):
                    steps = ("*" if step.isdecimal() else step for step in place.split("/"))
                    found.setdefault(event.name, {})["/".join(steps)] = None
        return {name: tuple(places) for name, places in found.items()}


def _covered(arguments: dict[str, JsonValue], places: tuple[str, ...]) -> dict[str, JsonValue]:
    kept: dict[str, Any] = redacted(cast("dict[str, object]", arguments), places)
    return kept


def digest_in(recording: Recording, order: Order, boundary: Boundary, digest: str) -> str:
    """Return the digest that the record has of a call: its own, or that of the next one which it is but for marks."""
    key = key_of(boundary, digest)
    if boundary.is_that is None or order.has_left(key):
        return digest
    alike = (order.intent(seq) for seq in order.left_like(key[:3]))
    same = (intent.digest for intent in alike if boundary.is_that(recording.arguments(intent)))
    return next(same, digest)
