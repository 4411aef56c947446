"""Messages and destinations on the wire."""

from typing import assert_never

from guard.core.effects import SECOND
from guard.core.outbox import Standing
from guard.ports.outbox import DestinationRecord
from guard.ports.relay import Backlog
from guard.service.outbox import Found
from guard.service.outcomes import Awaiting, MessagesStaged, Refused, RenderAnew, Replayed, StageOutcome, Stubbed
from guard.web import answers, problems
from guard.web.answer import Answer, json_answer
from guard.web.instants import rfc3339, rfc3339_or_none
from guard.web.wire import wire_key
from twiceshy_contract.destinations import BreakerView, DestinationView, QueueView
from twiceshy_contract.outbox import MessageSummary, MessageView, RenderAnswer, StagedAnswer


def staged(outcome: StageOutcome) -> Answer:
    """Answer a staging: 201 for what is staged now, 200 for what is on record, 202 while a person must decide."""
    match outcome:
        case MessagesStaged(effect=effect, at=at, messages=messages):
            committed_at = rfc3339(effect.life.ended_at or at)
            answer = StagedAnswer(**answers.common(effect), messages=messages, committed_at=committed_at)
            return json_answer(answer, status=201, said="staged")
        case RenderAnew(effect=effect, arguments=arguments):
            return json_answer(RenderAnswer(**answers.common(effect), arguments=arguments), said="render")
        case Replayed() | Stubbed() | Awaiting():
            return answers.begun(outcome)
        case Refused():
            return problems.refused(outcome)
    assert_never(outcome)


def message_summary(standing: Standing) -> MessageSummary:
    """Return a message as a line of a listing."""
    return MessageSummary(
        id=standing.message,
        epoch=standing.epoch,
        state=standing.state,
        destination=standing.destination,
        lane=standing.lane,
        type=standing.type,
        recipient=standing.recipient,
        key=None if standing.effect is None else wire_key(standing.effect),
        run=standing.run,
        attempts=standing.attempts,
        staged_at=rfc3339(standing.staged_at),
        due_at=rfc3339_or_none(standing.due_at),
        settled_at=rfc3339_or_none(standing.settled_at),
        note=standing.note,
        receipt=standing.receipt,
    )


def message_view(found: Found) -> MessageView:
    """Return a message with its bytes and the tries that failed. Bytes that are no text are shown as U+FFFD."""
    standing = found.standing
    line = message_summary(standing)
    return MessageView(
        **{name: getattr(line, name) for name in MessageSummary.__struct_fields__},
        content_type=standing.content_type,
        headers=standing.headers,
        body=standing.body.decode(errors="replace"),
        size=len(standing.body),
        tries=found.tries,
    )


def destination_view(record: DestinationRecord) -> DestinationView:
    """Return a destination as it is declared, and how it stands."""
    place = record.place
    return DestinationView(
        name=place.name,
        version=record.version,
        state=place.state,
        note=record.note,
        declared_at=rfc3339(record.declared_at),
        settings=place.settings,
        breaker=BreakerView(
            state=record.breaker,
            open_until=rfc3339_or_none(record.open_until),
            held_until=rfc3339_or_none(record.held_until),
            allowance=record.allowance,
        ),
        queue=queue_view(record.backlog),
    )


def queue_view(backlog: Backlog) -> QueueView:
    """Return what waits for a destination."""
    return QueueView(
        pending=backlog.pending,
        in_flight=backlog.in_flight,
        dead=backlog.dead,
        unknown=backlog.unknown,
        parked=backlog.parked,
        oldest_pending_seconds=backlog.oldest / SECOND,
    )
