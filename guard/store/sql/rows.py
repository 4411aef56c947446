"""How rows become effects, runs and tools, and effects become rows. Columns are in the order of the tables."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec.structs import replace

from guard.core.effects import (
    NEVER_GRANTED,
    Attempt,
    AttemptToken,
    Effect,
    Evidence,
    Fence,
    Instant,
    Intent,
    Key,
    Life,
    RunId,
    TenantId,
)
from guard.core.forks import Fork
from guard.core.runs import Run
from guard.core.tools import Tool
from guard.ports.steps import Finish, Insert, Replace
from guard.store.sql.codes import REPORT_CODES, REPORTS, RULE_CODES, RULES, RUN_STATES, STATE_CODES, STATES
from twiceshy_contract.runs import RunAbout
from twiceshy_contract.tools import ToolDeclaration

Row = Sequence[Any]
"""A row as a driver hands it over: values by position."""

FIRST_FENCE: Final = Fence(1)
EFFECT_WIDTH: Final = 38
"""How many columns of `effects` are the effect itself; the count of earlier attempts follows."""

_declarations: Final = msgspec.json.Decoder(ToolDeclaration)
_forks: Final = msgspec.json.Decoder(Fork)
_abouts: Final = msgspec.json.Decoder(RunAbout)


def effect_of(row: Row, earlier: Sequence[Row] = ()) -> Effect:
    """Return the effect of a row of `effects` and its rows of `attempts`, which are in order."""
    intent = Intent(
        key=Key(row[0]),
        tenant=TenantId(row[2]),
        run_id=None if row[3] is None else RunId(_uuid_of(row[3])),
        run=row[4],
        step=row[5],
        tool=row[6],
        tool_version=row[7],
        rule=RULES[row[8]],
        caller_step=row[9],
        business_key=row[10],
        occurrence=row[11],
        generation=row[12],
        identity_digest=row[13],
        arguments_digest=row[14],
        arguments=row[15],
        worker=row[16],
        began_at=Instant(row[17]),
        slot=row[34],
    )
    return Effect(
        version=row[1],
        intent=intent,
        life=_life_of(row, earlier),
        outcome=row[32],
        resolution=row[33],
        edited=row[35],
        delivered=bool(row[36]),
        expired_at=row[37],
    )


def attempt_of(row: Row) -> Attempt:
    """Return an attempt: token, fence, granted_at, deadline, report, reported_at, settled."""
    token, fence, granted_at, deadline, report, reported_at, settled = row
    return Attempt(
        token=AttemptToken(_uuid_of(token)),
        fence=Fence(fence),
        granted_at=Instant(granted_at),
        deadline=Instant(deadline),
        report=REPORTS[report],
        reported_at=reported_at,
        settled=bool(settled),
    )


def evidence_of(row: Row) -> Evidence:
    """Return evidence: at, token, kind, body."""
    at, token, kind, body = row
    return Evidence(
        at=Instant(at), token=None if token is None else AttemptToken(_uuid_of(token)), kind=kind, body=body
    )


def run_of(row: Row) -> Run:
    """Return the run of a row of `runs`."""
    (
        id_,
        tenant,
        name,
        state,
        effects,
        started_at,
        ended_at,
        _,
        fork,
        expired_at,
        _,
        epoch,
        events,
        about,
        _,
        _,
        child_of,
    ) = row
    return Run(
        id=RunId(_uuid_of(id_)),
        tenant=TenantId(tenant),
        name=name,
        state=RUN_STATES[state],
        effects=effects,
        started_at=Instant(started_at),
        ended_at=ended_at,
        fork=None if fork is None else _forks.decode(fork),
        expired_at=expired_at,
        epoch=epoch,
        events=events,
        about=None if about is None else _abouts.decode(about),
        child_of=child_of,
    )


def tool_of(row: Row) -> Tool:
    """Return the tool of a row of `tools`."""
    tenant, name, version, digest, declared_at, _, declaration = row
    return Tool(
        tenant=TenantId(tenant),
        name=name,
        version=version,
        digest=digest,
        declared_at=Instant(declared_at),
        declaration=_declarations.decode(declaration),
    )


def row_of(effect: Effect) -> tuple[Any, ...]:
    """Return the columns of an effect, but for the count of earlier attempts."""
    said = (effect.outcome, effect.resolution)
    kept = (effect.intent.slot, effect.edited, effect.delivered, effect.expired_at)
    return (*intent_row(effect.intent, effect.version), *_life_row(effect.life), *said, *kept)


def intent_row(intent: Intent, version: int) -> tuple[Any, ...]:
    """Return the columns that hold what the caller means to do: `key` to `began_at`."""
    return (
        intent.key,
        version,
        intent.tenant,
        intent.run_id,
        intent.run,
        intent.step,
        intent.tool,
        intent.tool_version,
        RULE_CODES[intent.rule],
        intent.caller_step,
        intent.business_key,
        intent.occurrence,
        intent.generation,
        intent.identity_digest,
        intent.arguments_digest,
        intent.arguments,
        intent.worker,
        intent.began_at,
    )


def earlier_of(life: Life) -> list[tuple[Any, ...]]:
    """Return the rows of the attempts that are not the latest lease, tokens that never had one among them."""
    earlier = life.attempts if life.latest is None else life.attempts[:-1]
    return [_attempt_row(attempt) for attempt in earlier]


def inserted(step: Insert, at: Instant, count: int | None) -> Effect:
    """Return the effect that an insert made: executing, under its first lease."""
    lease = Attempt(token=step.token, fence=FIRST_FENCE, granted_at=at, deadline=Instant(at + step.lease))
    life = Life(state="executing", fence=FIRST_FENCE, attempts=(lease,), tries=1, epoch_since=at)
    return Effect(version=1, intent=replace(step.intent, began_at=at, step=count), life=life)


def replaced(step: Replace, version: int, count: int | None, began_at: int) -> Effect:
    """Return the effect that a replace wrote, with what the store set."""
    intent = replace(step.effect.intent, began_at=Instant(began_at), step=count)
    return replace(step.effect, version=version, intent=intent)


def finished(step: Finish, known: Effect, at: Instant) -> Effect:
    """Return the effect that a finish made of the one that was known, under its latest lease."""
    *earlier, lease = known.life.attempts
    told = replace(lease, report="succeeded", reported_at=at)
    life = replace(known.life, state="succeeded", attempts=(*earlier, told), retry_at=None, closed=False, ended_at=at)
    return replace(known, version=known.version + 1, life=life, outcome=step.outcome)


def _life_of(row: Row, earlier: Sequence[Row]) -> Life:
    attempts = tuple(attempt_of(other) for other in earlier) if earlier else ()
    if row[20] is not None:
        attempts = (*attempts, attempt_of((row[20], row[19], *row[21:26])))
    return Life(
        state=STATES[row[18]],
        fence=Fence(row[19]),
        attempts=attempts,
        tries=row[26],
        retry_at=row[27],
        epoch=row[28],
        epoch_since=row[29],
        closed=bool(row[30]),
        ended_at=row[31],
    )


def _life_row(life: Life) -> tuple[Any, ...]:
    latest = life.latest
    return (
        STATE_CODES[life.state],
        NEVER_GRANTED if latest is None else latest.fence,
        *((None,) * 6 if latest is None else _inline_row(latest)),
        life.tries,
        life.retry_at,
        life.epoch,
        life.epoch_since,
        life.closed,
        life.ended_at,
    )


def _inline_row(attempt: Attempt) -> tuple[Any, ...]:
    token, _, *rest = _attempt_row(attempt)
    return (token, *rest)


def _attempt_row(attempt: Attempt) -> tuple[Any, ...]:
    return (
        attempt.token,
        attempt.fence,
        attempt.granted_at,
        attempt.deadline,
        REPORT_CODES[attempt.report],
        attempt.reported_at,
        attempt.settled,
    )


def _uuid_of(value: UUID | bytes) -> UUID:
    """Return a UUID as it is, or from the 16 bytes that a bare SQLite connection hands over."""
    return UUID(bytes=value) if isinstance(value, bytes) else value
