"""A run's log as people read it: one card a call, with what was asked, what came of it, and what is special about it.

The cards of a recording are made one after the other, so that a log of any length can be shown.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from twiceshy._in_brief import printable, quoted
from twiceshy._recorded_calls import Call, RecordedCalls
from twiceshy._recording import Recording
from twiceshy._restore import is_opaque
from twiceshy._sentences import sentence
from twiceshy_contract.events import EventKind, OutcomeKind, Source
from twiceshy_contract.replies import ReplyView

OPEN: Final = "open"
"""The mark of a call whose outcome never reached the code."""
_SOURCES: Final[Mapping[Source, str]] = {
    "recorded": "recorded",
    "simulator": "simulated",
    "injected": "injected",
    "override": "override",
    "stand_in": "stand-in",
}
_ENDS: Final[Mapping[OutcomeKind, str]] = {
    "error": "error",
    "unknown": "unknown",
    "cancelled": "cancelled",
    "expired": "expired",
}
_INDENT: Final = " " * 7


class Card(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call for people. `delivery` is the number of the event that brought its outcome.

    `at` is in microseconds since 1970, `took` in microseconds. `arguments` and `value` are whole, in tagged form, and
    only there where they were asked for. `notes` are what became of it later.
    """

    seq: int
    kind: EventKind
    name: str
    sentence: str
    at: int
    delivery: int | None = None
    took: int | None = None
    outcome: OutcomeKind | None = None
    marks: tuple[str, ...] = ()
    scope: str = ""
    child: str | None = None
    effect: str | None = None
    notes: tuple[str, ...] = ()
    arguments: object = msgspec.UNSET
    value: object = msgspec.UNSET


class MailCard(msgspec.Struct, frozen=True, kw_only=True):
    """Mail that came in beside the log; `at` is in microseconds since 1970."""

    at: int
    sentence: str
    notes: tuple[str, ...] = ()


class Part(msgspec.Struct, frozen=True):
    """A piece of a line, and what it is: `number`, `kind`, `plain`, `mark`, `alarm` or `note`."""

    text: str
    role: str = "plain"


def cards(
    recording: Recording,
    *,
    first: int = 1,
    last: int | None = None,
    whole: bool = False,
    notes: Mapping[int, tuple[str, ...]] | None = None,
) -> Iterator[Card]:
    """Make the cards of all calls that were made or answered at these events. `notes` are by the intents' numbers."""
    later = notes or {}
    for call in RecordedCalls(recording):
        answered = call.intent.seq if call.delivery is None else call.delivery.seq
        if answered >= first and (last is None or call.intent.seq <= last):
            yield card_of(call, whole=whole, notes=later.get(call.intent.seq, ()))


def card_of(call: Call, *, whole: bool = False, notes: tuple[str, ...] = ()) -> Card:
    """Make the card of a call."""
    arguments, value = call.arguments(), call.value()
    intent, delivery = call.intent, call.delivery
    return Card(
        seq=intent.seq,
        kind=intent.kind,
        name=intent.name,
        sentence=sentence(intent, arguments, delivery, value),
        at=intent.at,
        delivery=None if delivery is None else delivery.seq,
        took=None if delivery is None else delivery.took,
        outcome=None if delivery is None else delivery.outcome,
        marks=tuple(_marks(call, value)),
        scope=intent.scope,
        child=intent.child,
        effect=None if delivery is None else delivery.effect,
        notes=notes,
        arguments=arguments if whole else msgspec.UNSET,
        value=value if whole and delivery is not None and delivery.outcome == "result" else msgspec.UNSET,
    )


def mail_card(reply: ReplyView, at: int) -> MailCard:
    """Make the card of a mail that answers the run's."""
    thread = "" if reply.thread is None else f" in {reply.thread}"
    answered = f": {quoted(reply.text)}" if reply.text else ""
    notes = ("a machine says that it wrote it",) if reply.automatic else ()
    said = f"{printable(reply.from_)} answered{thread} with {quoted(reply.subject)}{answered}"
    return MailCard(at=at, sentence=f"{said}.", notes=notes)


def lines_of(card: Card | MailCard) -> Iterator[tuple[Part, ...]]:
    """Lay out a card: what it is, its sentence, what became of it, and its payloads where it has them."""
    if isinstance(card, MailCard):
        yield (Part(f"{'':>5}", "number"), Part("  "), Part("reply", "kind"))
    else:
        yield _facts(card)
    yield (Part(f"{_INDENT}{card.sentence}"),)
    for note in card.notes:
        yield (Part(f"{_INDENT}{printable(note)}", "note"),)
    if isinstance(card, Card):
        for name, payload in (("arguments", card.arguments), ("value", card.value)):
            if payload not in (msgspec.UNSET, {}):
                yield (Part(f"{_INDENT}{name}:", "mark"),)
                yield from ((Part(f"{_INDENT}  {line}"),) for line in _pretty(payload))


def _facts(card: Card) -> tuple[Part, ...]:
    answered = card.delivery is not None and card.delivery != card.seq + 1
    facts = [
        Part(f"{card.seq:>5}", "number"),
        Part(f"{card.kind:<9}", "kind"),
        *([Part(duration(card.took))] if card.took is not None else []),
        *([Part(f"answered at {card.delivery}")] if answered else []),
        *([Part(f"in {printable(card.scope)}")] if card.scope else []),
        *(Part(mark, "alarm" if mark in _ALARMING else "mark") for mark in card.marks),
    ]
    return tuple(part for fact in facts for part in (fact, Part("  ")))[:-1]


def text_of(card: Card, margin: str = "") -> str:
    """Write a card as plain text; `margin` is put before its first line, and blanks before the others."""
    lines = ["".join(part.text for part in line).rstrip() for line in lines_of(card)]
    return "\n".join(f"{margin if at == 0 else ' ' * len(margin)}{line}" for at, line in enumerate(lines))


def timeline(made: Iterable[Card]) -> Iterator[str]:
    """Write cards as plain text."""
    return map(text_of, made)


def duration(micros: int) -> str:
    """Write a duration in the unit that suits it."""
    if micros < 1_000:
        return f"{micros} µs"
    if micros < 1_000_000:
        return f"{micros / 1_000:.3g} ms" if micros < 999_500 else "1 s"
    seconds = micros / 1_000_000
    return f"{seconds:.3g} s" if seconds < 100 else f"{int(seconds // 60)} min {int(seconds % 60)} s"


def _marks(call: Call, value: object) -> Iterator[str]:
    delivery = call.delivery
    if delivery is None:
        yield OPEN
    else:
        if delivery.outcome in _ENDS:
            yield _ENDS[delivery.outcome]
        if delivery.empty:
            yield "empty"
        if isinstance(value, dict) and is_opaque(value):
            yield "not kept"
        if delivery.source in _SOURCES:
            yield _SOURCES[delivery.source]
    if call.intent.counterfactual or (delivery is not None and delivery.counterfactual):
        yield "counterfactual"


_ALARMING: Final = frozenset({OPEN, "not kept", *_ENDS.values()})


def _pretty(payload: object) -> list[str]:
    text = msgspec.json.format(msgspec.json.encode(payload), indent=2).decode()
    return [printable(line) for line in text.splitlines()]
