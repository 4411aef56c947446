"""What a payload names: values and lists that are kept by their content.

A payload is tagged JSON. A name of a user's own that begins with `$` has one `$` more in it, so a member `$blob` or
`$list` is always a reference.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from twiceshy_contract.events import BLOB, LIST, Event, Intent
from twiceshy_contract.refusals import Refusal, Step

MARKS: Final = (b'"$blob"', b'"$list"', b"\\u00")
"""A text without any of them names nothing; the last is how the others may be spelled."""
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_CONTAINERS: Final = (dict, list, tuple)


class Reference(NamedTuple):
    """A value that is kept by its content: plain, or a list whose blob is a ListNode."""

    digest: str
    is_list: bool


def may_name(text: bytes) -> bool:
    """Say whether the text of a payload may name anything; most do not, and need no walk."""
    return any(mark in text for mark in MARKS)


def references(payload: object, *place: Step) -> list[Reference]:
    """Return what a payload names, in its order; what those blobs name in their turn is not among it.

    Raises Refusal with the place of a reference that is none.
    """
    found: list[Reference] = []
    pending: list[tuple[object, tuple[Step, ...]]] = [(payload, place)]
    while pending:
        value, at = pending.pop()
        if isinstance(value, dict):
            named = reference_of(value, at)
            if named is not None:
                found.append(named)
                continue
            inner = [(member, (*at, name)) for name, member in value.items() if isinstance(member, _CONTAINERS)]
        elif isinstance(value, (list, tuple)):
            inner = [(item, (*at, number)) for number, item in enumerate(value) if isinstance(item, _CONTAINERS)]
        else:
            continue
        pending += reversed(inner)
    return found


def references_of_event(event: Event, *place: Step) -> list[Reference]:
    """Return what an event names: in its arguments, its value, and the data of its error."""
    if isinstance(event, Intent):
        return references(event.arguments, *place, "arguments")
    data = None if isinstance(event.error, msgspec.UnsetType) else event.error.data
    return references(event.value, *place, "value") + references(data, *place, "error", "data")


def reference_of(value: Mapping[str, object], place: Sequence[Step] = ()) -> Reference | None:
    """Read an object that stands for something which is kept by its content; None for any other. Raises Refusal."""
    if BLOB not in value and LIST not in value:
        return None
    ((name, digest), *others) = value.items()
    if others:
        raise Refusal(f"a {name} has no other member beside it", place)
    return Reference(checked_digest(digest, *place, name), is_list=name == LIST)


def checked_digest(digest: object, *place: Step) -> str:
    """Return what is a digest. Raises Refusal."""
    if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
        raise Refusal("this is not a digest: 64 lower-case hex digits", place)
    return digest
