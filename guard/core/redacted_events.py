"""Redaction of what a log is sent: what must not be stored of a guarded call is gone before anything is written.

What is redacted may lie in a value that is kept by its content. Then all of that member is left out, and its text is
not kept either, unless something else of the same request names it.
"""

import hashlib
import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from guard.core.payloads import Blob
from guard.core.recording import Received, Written, written
from twiceshy_contract.canonical import is_tag
from twiceshy_contract.events import BLOB, LIST, Event, Intent
from twiceshy_contract.payloads import Reference, references, references_of_event
from twiceshy_contract.redaction import REDACTED, redacted
from twiceshy_contract.refusals import steps_of

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_EVERY: Final = "*"


class Secrecy(msgspec.Struct, frozen=True, kw_only=True):
    """What is redacted of each tool, by its name, and the secret under which a text is known again."""

    places: Mapping[str, Sequence[str]]
    salt: bytes


def tools_of(events: Iterable[Event]) -> set[str]:
    """Name the tools of the guarded calls among events."""
    return {event.name for event in events if isinstance(event, Intent) and event.kind == "tool_call"}


def written_redacted(event: Event, secrecy: Secrecy) -> Written:
    """Write an event down without what is redacted, and how it is known again when it is sent again."""
    as_it_came = written(event)
    if not isinstance(event, Intent) or event.kind != "tool_call":
        return as_it_came
    keyed = hmac.digest(secrecy.salt, as_it_came.body, hashlib.sha256)
    kept = redacted_intent(event, secrecy.places.get(event.name, ()))
    stored = as_it_came if kept is event else written(kept)
    return msgspec.structs.replace(stored, received=Received(digest=as_it_came.digest, keyed=keyed))


def redacted_intent(intent: Intent, places: Sequence[str]) -> Intent:
    """Return a call with the mark at these places, and a digest that tells nothing of them; itself, where it had none.

    A member that is kept by its content is left out whole, unless its sender has redacted that place before. Arguments
    that are no object, or are kept by their content as a whole, are left out.
    """
    arguments = intent.arguments
    if not places or arguments is msgspec.UNSET:
        return intent
    if isinstance(arguments, dict) and not is_tag(arguments):
        seen = [place for place in places if place in intent.redacted and len(steps_of(place)) > 1]
        inline = {name: member for name, member in arguments.items() if not _is_kept_by_content(member)}
        kept = redacted(arguments | redacted(inline, seen), [place for place in places if place not in seen])
    else:
        kept = {steps[0]: REDACTED for steps in map(steps_of, places) if steps and steps[0] != _EVERY}
    if kept == arguments:
        return intent
    return msgspec.structs.replace(intent, arguments=kept, digest=hashlib.sha256(_encode(kept)).hexdigest())


def _is_kept_by_content(member: object) -> bool:
    return isinstance(member, dict) and (BLOB in member or LIST in member)


def left_out(came: Sequence[Event], kept: Sequence[Written], blobs: Mapping[str, Blob]) -> frozenset[str]:
    """Return the digests of those texts of a request that only what was redacted of its events names.

    Raises Refusal with the place of a reference that is none.
    """
    changed = [at for at, event in enumerate(came) if kept[at].event is not event]
    if not changed or not blobs:
        return frozenset()
    named = (one for at in changed for one in references_of_event(came[at], "events", at))
    still = (one for at, event in enumerate(kept) for one in references_of_event(event.event, "events", at))
    return frozenset(_all_named(named, blobs) - _all_named(still, blobs))


def _all_named(wanted: Iterable[Reference], blobs: Mapping[str, Blob]) -> set[str]:
    """Return the brought texts that references lead to, and those that these name in their turn."""
    found: set[str] = set()
    pending = [reference.digest for reference in wanted]
    while pending:
        digest = pending.pop()
        if digest in found or digest not in blobs:
            continue
        found.add(digest)
        value = blobs[digest].value
        pending += [reference.digest for reference in references(value)]
        if isinstance(value, dict) and isinstance(value.get("after"), str):
            pending.append(str(value["after"]))
    return found
