"""What becomes of an append to a run's log, as a function of the log and of what is asked.

A log counts from 1 without a gap and has one writer at a time: whoever opened it last, known by its epoch. What the log
has already is compared by digest, so that an append may be sent again; what it has not is taken only where it goes on.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from twiceshy_contract.events import Event, EventKind, Intent
from twiceshy_contract.refusals import Refusal

_encode: Final = msgspec.json.Encoder().encode
_DIGEST_BYTES: Final = 32


class Received(NamedTuple):
    """The digests of an event's text as it came: plain, and under its tenant's secret, which may be kept."""

    digest: bytes
    keyed: bytes


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it is kept: its JSON text, written anew from what was understood, and the digest of that.

    A guarded call may be kept without what is redacted; it was `received` otherwise then.
    """

    event: Event
    body: bytes
    digest: bytes
    received: Received | None = None

    @property
    def seq(self) -> int:
        """The event's number."""
        return self.event.seq

    @property
    def imprint(self) -> bytes:
        """What is kept to know the event again: the digest, and behind it the keyed one where it came otherwise."""
        came = self.received
        return self.digest if came is None or came.digest == self.digest else self.digest + came.keyed

    def is_known_by(self, imprint: bytes | None) -> bool:
        """Say whether a kept imprint is this event's, sent again, though another redaction may hold by now."""
        if imprint is None:
            return False
        digest, keyed = imprint[:_DIGEST_BYTES], imprint[_DIGEST_BYTES:]
        came = self.received
        return digest == self.digest or (came is not None and (digest == came.digest or keyed == came.keyed))


class Log(msgspec.Struct, frozen=True, kw_only=True):
    """A run's log: the number of its newest event, and the epoch of its writer. What has expired has none any more."""

    head: int
    epoch: int
    is_expired: bool = False


class Addition(msgspec.Struct, frozen=True, kw_only=True):
    """These events go on from the log's head; none where all are there already."""

    events: tuple[Written, ...]


class Diverged(msgspec.Struct, frozen=True, kw_only=True):
    """The log has another event of this number."""

    seq: int


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """The first event that the log has not is not the one behind its head."""

    head: int
    seq: int


class TakenOver(msgspec.Struct, frozen=True, kw_only=True):
    """The log's writer is another: the one of this epoch."""

    epoch: int


class Expired(msgspec.Struct, frozen=True, kw_only=True):
    """The log was kept long enough, and is gone."""


class Unfounded(msgspec.Struct, frozen=True, kw_only=True):
    """The delivery of this number names an intent that cannot be its own."""

    seq: int
    reason: str


Verdict = Addition | Diverged | Gap | TakenOver | Expired


class Boundary(NamedTuple):
    """What an intent enters. Its delivery is of the same kind and name."""

    kind: EventKind
    name: str


def written(event: Event) -> Written:
    """Write an event down. The text depends on the event alone."""
    body = _encode(event)
    return Written(event=event, body=body, digest=hashlib.sha256(body).digest())


def check_order(events: Sequence[Event]) -> None:
    """Check that each event follows the one before. Raises Refusal with the place."""
    for at, event in enumerate(events[1:], 1):
        before = events[at - 1].seq
        if event.seq != before + 1:
            raise Refusal(
                f"this is event {event.seq}, and the one before is {before}: send them in order and without a gap",
                ("events", at, "seq"),
            )


def rule(log: Log, epoch: int, asked: Sequence[Written], kept: Mapping[int, bytes]) -> Verdict:
    """Say what an append comes to. `kept` are the imprints of those asked numbers that the log has."""
    if log.is_expired:
        return Expired()
    if epoch != log.epoch:
        return TakenOver(epoch=log.epoch)
    for event in asked:
        if event.seq <= log.head and not event.is_known_by(kept.get(event.seq)):
            return Diverged(seq=event.seq)
    rest = tuple(event for event in asked if event.seq > log.head)
    if rest and rest[0].seq != log.head + 1:
        return Gap(head=log.head, seq=rest[0].seq)
    return Addition(events=rest)


def entered(
    events: Sequence[Written], intents: Mapping[int, Boundary], delivered: Collection[int]
) -> list[Boundary] | Unfounded:
    """Return the boundary of each event that is to be added.

    `intents` are those of the log that the deliveries among the events name, `delivered` those of them whose outcome
    was delivered. An outcome is delivered once, behind its intent.
    """
    known, done, found = dict(intents), set(delivered), []
    for each in events:
        event = each.event
        if isinstance(event, Intent):
            known[event.seq] = Boundary(event.kind, event.name)
            found.append(known[event.seq])
            continue
        if event.intent not in known:
            return Unfounded(seq=event.seq, reason=f"event {event.intent} is no intent of this run before it")
        if event.intent in done:
            return Unfounded(seq=event.seq, reason=f"the outcome of event {event.intent} was delivered before")
        done.add(event.intent)
        found.append(known[event.intent])
    return found
