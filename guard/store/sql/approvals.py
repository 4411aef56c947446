"""Approvals: asked once of a key and a round, decided under a lock of their row."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.approvals import Approval, Ballot, Counted, Question, Vote, Weighed, cancel, decide
from guard.core.effects import Instant, Key, TenantId
from guard.ports.approvals import ApprovalFilter, SameAs, Standing, Told
from guard.store.sql.approval_effects import hold_key, select_has_begun
from guard.store.sql.approval_rows import (
    APPROVED,
    CANCELLED,
    DENIED,
    OPEN,
    approval_of,
    decided_row,
    question_row,
    vote_of,
    vote_row,
)
from guard.store.sql.clock import database_now
from guard.store.sql.cursors import AfterApproval, cursor_of, place_of
from guard.store.sql.database import Database
from guard.store.sql.identifiers import new_id
from guard.store.sql.own_events import stage_own_events
from guard.store.sql.policy_tables import approval_decisions, approvals
from guard.store.sql.tables import effects

_SUPERSEDED: Final = "a later question took its place"


class SqlApprovals:
    """The port's approvals over one database."""

    def __init__(self, database: Database) -> None:
        """Stand on a database."""
        self._database = database

    async def ask(self, tenant: TenantId, question: Question) -> Standing:
        """Find the approval of the question's key and round, or ask; earlier rounds that cover are taken back."""
        return await self._database.write(lambda connection, at: _ask(connection, at, tenant, question))

    async def latest(self, tenant: TenantId, key: Key) -> Standing | None:
        """Return the last round about an effect."""
        return await self._standing(tenant, approvals.c.key == key)

    async def get(self, tenant: TenantId, approval: UUID) -> Standing | None:
        """Find an approval."""
        return await self._standing(tenant, approvals.c.id == approval)

    async def decide(self, tenant: TenantId, approval: UUID, ballot: Ballot, edits: int = 0) -> Told | None:
        """Weigh a person's word and write what it does, in one transaction; None where there is no such approval.

        There may be no effect of the key that its edit names, no question about it, and no more than so many `edits`
        that came to it.
        """

        def work(connection: Connection, at: Instant) -> Told | None:
            held = _select_held(connection, tenant, approval)
            return None if held is None else _decide(connection, at, held, ballot, edits)

        return await self._database.write(work)

    async def cancel(self, tenant: TenantId, approval: UUID, by: str | None, reason: str) -> Told | None:
        """Take a question back, an approved one as long as no attempt may have sent; None where there is none."""

        def work(connection: Connection, at: Instant) -> Told | None:
            held = _select_held(connection, tenant, approval)
            return None if held is None else _cancel(connection, at, held, by, reason)

        return await self._database.write(work)

    async def withdraw(self, tenant: TenantId, of: Key | str, by: str | None, reason: str) -> list[UUID]:
        """Take back what waits about an effect, or about all of a run (its name); return which."""
        is_meant = approvals.c.run == of if isinstance(of, str) else approvals.c.key == of
        said = {"state": CANCELLED, "cancelled_by": by, "cancel_reason": reason}

        def work(connection: Connection, at: Instant) -> list[UUID]:
            taken_back = _cancel_waiting(connection, at, (approvals.c.tenant == tenant, is_meant), said)
            _tell_decided(connection, at, taken_back)
            return taken_back

        return await self._database.write(work)

    async def denied(self, tenant: TenantId, run: str, tool: str, digest: bytes) -> Approval | None:
        """Return the last denial of these arguments of a tool in a run."""
        is_same = (approvals.c.digest == digest, approvals.c.run == run, approvals.c.tool == tool)
        found = await self._standing(tenant, *is_same, approvals.c.state == DENIED)
        return None if found is None else found.approval

    async def edited(self, tenant: TenantId, key: Key, digest: bytes) -> list[Approval]:
        """Return the approvals, last first, whose edits name this effect, or give it the arguments of this digest."""
        return await self._database.read(lambda connection: _select_edited(connection, tenant, key, digest))

    async def page(self, tenant: TenantId, chosen: ApprovalFilter) -> tuple[list[Approval], Instant, str | None]:
        """Return approvals, newest first, the database's time, and the cursor of the next page."""
        place = None if chosen.after is None else place_of(chosen.after)
        if not isinstance(place, AfterApproval | None):
            raise ValueError("This is a cursor of another listing: take `next` of the page of approvals before.")
        last = None if place is None else place.approval
        found, at = await self._database.read_at_once(
            lambda connection: (_select_page(connection, tenant, chosen, last), _select_now(connection))
        )
        if len(found) <= chosen.limit:
            return found, at, None
        return found[: chosen.limit], at, cursor_of(AfterApproval(found[chosen.limit - 1].id))

    async def _standing(self, tenant: TenantId, *is_meant: sa.ColumnElement[bool]) -> Standing | None:
        def work(connection: Connection) -> Standing | None:
            found = _select_last(connection, tenant, *is_meant)
            return None if found is None else Standing(approval=found, at=_select_now(connection))

        return await self._database.read_at_once(work)


def _ask(connection: Connection, at: Instant, tenant: TenantId, question: Question) -> Standing:
    is_new = _insert(connection, at, tenant, question)
    if is_new:
        _tell_decided(connection, at, _take_back_earlier(connection, at, question))
    is_meant = (approvals.c.key == question.key, approvals.c.round == question.round)
    found = _select_last(connection, tenant, *is_meant)
    if found is None:
        raise LookupError(f"the key {question.key.hex()} belongs to another tenant")
    if is_new:
        stage_own_events(connection, at, "approval.requested", [found])
    return Standing(approval=found, at=at)


def _decide(connection: Connection, at: Instant, held: Approval, ballot: Ballot, edits: int) -> Told:
    said = decide(held, ballot, at)
    named = None if ballot.edit is None else ballot.edit.key
    if isinstance(said, Counted) and named is not None:
        hold_key(connection, named)
        other = _select_same(connection, at, held, named, edits)
        if other is not None:
            return Told(standing=Standing(approval=held, at=at), said=SameAs(other))
    return _told(connection, held, said, at)


def _cancel(connection: Connection, at: Instant, held: Approval, by: str | None, reason: str) -> Told:
    hold_key(connection, held.question.key)
    has_begun = select_has_begun(connection, held.question.key)
    return _told(connection, held, cancel(held, by, reason, at, has_begun=has_begun), at)


def _told(connection: Connection, held: Approval, said: Weighed, at: Instant) -> Told:
    """Write what a word does, where it counts."""
    if isinstance(said, Counted):
        _update(connection, said.approval)
        _insert_votes(connection, held.id, said.approval.votes[len(held.votes) :])
        held = said.approval
        if held.decided is not None:
            stage_own_events(connection, at, "approval.decided", [held])
    return Told(standing=Standing(approval=held, at=at), said=said)


def _is_waiting(at: Instant | sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Say in SQL what `state_at` says: nobody has decided and the deadline is not over."""
    return (approvals.c.state == OPEN) & (approvals.c.expires_at.is_(None) | (approvals.c.expires_at > at))


def _insert(connection: Connection, at: Instant, tenant: TenantId, question: Question) -> bool:
    """Ask, unless this round of the key was asked; say whether it was asked now."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {"id": new_id(at), "tenant": tenant, "asked_at": at, **question_row(question, at)}
    statement = dialect.insert(approvals).values(row).on_conflict_do_nothing().returning(approvals.c.id)
    return connection.execute(statement).first() is not None


def _take_back_earlier(connection: Connection, at: Instant, question: Question) -> list[UUID]:
    """Take back the earlier rounds of a key that wait or were approved; what is denied or run out stays as it is."""
    is_earlier = (approvals.c.key == question.key, approvals.c.round < question.round)
    statement = (
        sa.update(approvals)
        .where(*is_earlier, _is_waiting(at) | (approvals.c.state == APPROVED))
        .values(state=CANCELLED, decided_at=at, cancel_reason=_SUPERSEDED)
    )
    return list(connection.execute(statement.returning(approvals.c.id)).scalars())


def _tell_decided(connection: Connection, at: Instant, ids: Sequence[UUID]) -> None:
    """Stage what became of approvals, for those who ask to be told."""
    stage_own_events(connection, at, "approval.decided", _select_all(connection, ids) if ids else [])


def _select_last(connection: Connection, tenant: TenantId, *is_meant: sa.ColumnElement[bool]) -> Approval | None:
    """Select the last round of what is meant, with all votes."""
    statement = sa.select(approvals).where(approvals.c.tenant == tenant, *is_meant)
    row = connection.execute(statement.order_by(approvals.c.round.desc(), approvals.c.id.desc()).limit(1)).first()
    return None if row is None else approval_of(row, _select_votes(connection, [row.id]).get(row.id, ()))


def _select_all(connection: Connection, ids: Sequence[UUID]) -> list[Approval]:
    """Select these approvals, with all votes."""
    rows = connection.execute(sa.select(approvals).where(approvals.c.id.in_(ids)).order_by(approvals.c.id)).all()
    votes = _select_votes(connection, ids)
    return [approval_of(row, votes.get(row.id, ())) for row in rows]


def _select_held(connection: Connection, tenant: TenantId, approval: UUID) -> Approval | None:
    """Select an approval that nobody else changes until this transaction ends."""
    statement = sa.select(approvals).where(approvals.c.tenant == tenant, approvals.c.id == approval)
    row = connection.execute(statement.with_for_update()).first()
    return None if row is None else approval_of(row, _select_votes(connection, [row.id]).get(row.id, ()))


def _select_votes(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, tuple[Vote, ...]]:
    """Select all votes about these approvals, in the order in which they were cast."""
    statement = (
        sa.select(approval_decisions)
        .where(approval_decisions.c.approval.in_(ids))
        .order_by(approval_decisions.c.at, approval_decisions.c.person)
    )
    votes: dict[UUID, tuple[Vote, ...]] = {}
    for row in connection.execute(statement):
        votes[row.approval] = (*votes.get(row.approval, ()), vote_of(row))
    return votes


def _select_same(connection: Connection, at: Instant, held: Approval, named: Key, edits: int) -> Key | None:
    """Select which effect has a key already: its own, one that is asked for, or one that was edited to its arguments.

    So many `edits` to its arguments are over.
    """
    own = connection.execute(sa.select(effects.c.key).where(effects.c.key == named)).scalar_one_or_none()
    if own is not None:
        return Key(own)
    is_other = (approvals.c.tenant == held.tenant, approvals.c.id != held.id)
    asked = sa.select(approvals.c.key).where(*is_other, approvals.c.key == named)
    edited = sa.select(approvals.c.key).where(*is_other, approvals.c.edited_key == named)
    latest = edited.where(approvals.c.state == APPROVED).order_by(approvals.c.id.desc())
    for statement in (
        asked.where(_is_waiting(at) | (approvals.c.state == APPROVED)),
        edited.where(_is_waiting(at)),
        latest.offset(edits),
    ):
        key = connection.execute(statement.limit(1)).scalar_one_or_none()
        if key is not None:
            return Key(key)
    return None


def _select_edited(connection: Connection, tenant: TenantId, key: Key, digest: bytes) -> list[Approval]:
    """Select the approved edits, last first, that name an effect or give it these arguments; without their votes."""
    is_own = (approvals.c.key == key) & (approvals.c.edited_digest == digest)
    statement = (
        sa.select(approvals)
        .where(approvals.c.tenant == tenant, approvals.c.state == APPROVED, is_own | (approvals.c.edited_key == key))
        .order_by(approvals.c.id.desc())
    )
    return [approval_of(row, ()) for row in connection.execute(statement)]


def _cancel_waiting(
    connection: Connection, at: Instant, is_meant: Sequence[sa.ColumnElement[bool]], said: Mapping[str, object]
) -> list[UUID]:
    """Take back the questions that wait among those that are meant; return which."""
    statement = sa.update(approvals).where(*is_meant, _is_waiting(at)).values(**said, decided_at=at)
    return list(connection.execute(statement.returning(approvals.c.id)).scalars())


def _update(connection: Connection, after: Approval) -> None:
    """Write what was decided about an approval that is held."""
    connection.execute(sa.update(approvals).where(approvals.c.id == after.id).values(decided_row(after)))


def _insert_votes(connection: Connection, approval: UUID, votes: Sequence[Vote]) -> None:
    """Write votes that were not cast before."""
    if votes:
        connection.execute(sa.insert(approval_decisions).values([vote_row(approval, vote) for vote in votes]))


def _select_now(connection: Connection) -> Instant:
    """Select the database's time."""
    return Instant(connection.execute(sa.select(database_now())).scalar_one())


def _select_page(connection: Connection, tenant: TenantId, chosen: ApprovalFilter, last: UUID | None) -> list[Approval]:
    """Select the approvals that come next, newest first, one more than the page holds."""
    statement = sa.select(approvals).where(approvals.c.tenant == tenant)
    if chosen.state == "open":
        statement = statement.where(_is_waiting(database_now()))
    elif chosen.state == "expired":
        statement = statement.where(approvals.c.state == OPEN, ~_is_waiting(database_now()))
    elif chosen.state is not None:
        codes = {"approved": APPROVED, "denied": DENIED, "cancelled": CANCELLED}
        statement = statement.where(approvals.c.state == codes[chosen.state])
    for column, wanted in ((approvals.c.run, chosen.run), (approvals.c.tool, chosen.tool)):
        if wanted is not None:
            statement = statement.where(column == wanted)
    if last is not None:
        statement = statement.where(approvals.c.id < last)
    rows = connection.execute(statement.order_by(approvals.c.id.desc()).limit(chosen.limit + 1)).all()
    votes = _select_votes(connection, [row.id for row in rows])
    return [approval_of(row, votes.get(row.id, ())) for row in rows]
