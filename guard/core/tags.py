"""Tags of payloads: an object whose key begins with one `$` must be a value that every reader of the log can read."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from guard.core.recording import Written
from twiceshy_contract.canonical import spelled
from twiceshy_contract.events import BLOB, LIST, Intent
from twiceshy_contract.refusals import JsonValue, Refusal, Step

_OPAQUE: Final = "$opaque"
"""What stands for a result that could not be written."""
_ELSEWHERE: Final = frozenset({BLOB, LIST, _OPAQUE})
"""What a reference or such a mark must be, is said elsewhere."""
_MARKS: Final = (b'"$', b"\\u00")
"""A text without them has no tag; the last is how a tag's `$` may be spelled."""
_CONTAINERS: Final = (dict, list)


def check_tags(events: Sequence[Written], values: Mapping[str, JsonValue]) -> None:
    """Check that arguments are objects, and that all tags can be read, also in these values of texts by their digests.

    Raises Refusal with the place.
    """
    for at, written in enumerate(events):
        event = written.event
        if isinstance(event, Intent):
            if not isinstance(event.arguments, dict | msgspec.UnsetType):
                raise Refusal("arguments are an object: each has a name", ("events", at, "arguments"))
            if has_tags(written.body):
                _check(event.arguments, "events", at, "arguments")
        elif has_tags(written.body):
            _check(event.value, "events", at, "value")
            if not isinstance(event.error, msgspec.UnsetType):
                _check(event.error.data, "events", at, "error", "data")
    for digest, value in values.items():
        _check(value, "blobs", digest)


def has_tags(text: bytes) -> bool:
    """Say whether a text of JSON may have tags."""
    return any(mark in text for mark in _MARKS)


def _check(payload: object, *place: Step) -> None:
    pending: list[tuple[object, tuple[Step, ...]]] = [(payload, place)]
    while pending:
        value, at = pending.pop()
        if isinstance(value, dict):
            tag = next((name for name in value if name[:1] == "$" and name[:2] != "$$"), None)
            if tag is None:
                pending += [(member, (*at, name)) for name, member in value.items() if isinstance(member, _CONTAINERS)]
            elif tag not in _ELSEWHERE:
                _check_tag(tag, value, at)
        elif isinstance(value, list):
            pending += [(item, (*at, number)) for number, item in enumerate(value) if isinstance(item, _CONTAINERS)]


def _check_tag(tag: str, value: Mapping[str, object], place: Sequence[Step]) -> None:
    try:
        spelled(tag, value[tag], len(value))
    except ValueError as error:
        raise Refusal(str(error), (*place, tag)) from error
