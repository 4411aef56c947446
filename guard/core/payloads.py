"""Payloads of events: what they keep by content, and what of their arguments is found by a search.

A payload is tagged JSON. A name of a user's own that begins with `$` has one `$` more in it, so a member `$blob` or
`$list` is always a reference. A list's blob goes on from another one, which it names by its member `after`.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, cast

import msgspec

from guard.core.recording import Written
from twiceshy_contract.canonical import is_tag
from twiceshy_contract.events import MAX_REFERENCES, Event, Intent
from twiceshy_contract.payloads import Reference, checked_digest, may_name, references, references_of_event
from twiceshy_contract.redaction import REDACTED
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.strict_json import ENVELOPE_DEPTH, MAX_DEPTH, decode

MOST_INDEXED: Final = 50
"""Arguments of one call that are indexed."""
LONGEST_VALUE: Final = 200
"""Characters of a text that is indexed whole."""
LONGEST_NAME: Final = 100

_NUMBERS: Final = ({"$int"}, {"$dec"})
"""Tags of numbers: of a long one, and of a decimal one. A search finds them by their digits."""
_NUL: Final = "\x00"
"""No text of PostgreSQL can hold it."""


class Blob(NamedTuple):
    """The value of a text, and whether it may name others."""

    value: JsonValue
    may_name: bool = True


def read_blobs(blobs: Mapping[str, str]) -> dict[str, Blob]:
    """Return the values of texts by their digests. Raises Refusal with the place of one that is not what it claims."""
    return {digest: _read_blob(digest, text.encode()) for digest, text in blobs.items()}


def needed(events: Sequence[Written], blobs: Mapping[str, Blob]) -> frozenset[str]:
    """Return the digests that events and brought texts name, and that none of those texts has.

    Raises Refusal with the place of a reference that is none, and for more references than one append may have.
    """
    wanted: list[Reference] = []
    for at, event in enumerate(events):
        if may_name(event.body):
            wanted += references_of_event(event.event, "events", at)
    for digest, blob in blobs.items():
        if blob.may_name:
            wanted += references(blob.value, "blobs", digest)
    if len(wanted) > MAX_REFERENCES:
        reason = f"these events and blobs name {len(wanted)} values, and {MAX_REFERENCES} are the most of one append"
        raise Refusal(reason, ("events",))
    wanted += _earlier_lists(wanted, blobs)
    return frozenset(reference.digest for reference in wanted) - blobs.keys()


def indexed(event: Event) -> tuple[tuple[str, str], ...]:
    """Return name and value of the arguments that a call is found by: those at the top that are small and plain.

    A mark of redaction is left out, and so is what a database cannot hold as text.
    """
    arguments = event.arguments if isinstance(event, Intent) else None
    if not isinstance(arguments, dict) or is_tag(cast("JsonValue", arguments)):
        return ()
    found = {}
    for written, value in arguments.items():
        name, text = written[1:] if written.startswith("$$") else written, _indexed_text(value)
        if text is not None and 0 < len(name) <= LONGEST_NAME and _NUL not in name:
            found[name] = text
    return tuple(found.items())[:MOST_INDEXED]


def _indexed_text(value: object) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        text = str(value)
        return text if len(text) <= LONGEST_VALUE else None
    if isinstance(value, float):
        return msgspec.json.encode(value).decode()
    if isinstance(value, dict) and value.keys() in _NUMBERS:
        (value,) = value.values()
    if not isinstance(value, str) or len(value) > LONGEST_VALUE or _NUL in value:
        return None
    return None if value == REDACTED else value


def _read_blob(digest: str, text: bytes) -> Blob:
    if hashlib.sha256(text).hexdigest() != digest:
        raise Refusal("the SHA-256 of this text is another", ("blobs", digest))
    try:
        return Blob(decode(text, max_depth=MAX_DEPTH + ENVELOPE_DEPTH), may_name(text))
    except Refusal as refusal:
        raise refusal.under("blobs", digest) from refusal


def _earlier_lists(wanted: Iterable[Reference], blobs: Mapping[str, Blob]) -> list[Reference]:
    """Return the lists that brought lists go on from. Raises Refusal with the place of one that is no list."""
    found: list[Reference] = []
    open_, seen = [reference.digest for reference in wanted if reference.is_list], set[str]()
    while open_:
        digest = open_.pop()
        if digest in seen or digest not in blobs:
            continue
        seen.add(digest)
        node = blobs[digest].value
        if not isinstance(node, dict) or not isinstance(node.get("items"), list) or node.keys() - {"items", "after"}:
            raise Refusal("a list is kept as an object with `items` and `after`", ("blobs", digest))
        after = node.get("after")
        if after is not None:
            found.append(Reference(checked_digest(after, "blobs", digest, "after"), is_list=True))
            open_.append(found[-1].digest)
    return found
