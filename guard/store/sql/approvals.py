"""Approvals: asked once of a key and a round, decided under a lock of their row."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.approvals import Approval, Ballot, Counted, Question, Vote, Weighed, cancel, decide
from guard.core.effects import Instant, Key, TenantId
from guard.ports.approvals import ApprovalFilter, SameAs, Standing, Told, Within
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
from guard.store.sql.policy_tables import approval_decisions, approvals

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

    async def decide(self, tenant: TenantId, approval: UUID, ballot: Ballot, within: Within | None) -> Told | None:
        """Weigh a person's word and write what it does, in one transaction; None where there is no such approval.

        Arguments that it puts in may be those of no other question about the tool `within` this (None: no matter).
        """

        def work(connection: Connection, at: Instant) -> Told | None:
            held = _select_held(connection, tenant, approval)
            return None if held is None else _decide(connection, at, held, ballot, within)

        return await self._database.write(work)

    async def cancel(self, tenant: TenantId, approval: UUID, by: str | None, reason: str) -> Told | None:
        """Take a question back; None where there is no such approval."""

        def work(connection: Connection, at: Instant) -> Told | None:
            held = _select_held(connection, tenant, approval)
            return None if held is None else _told(connection, held, cancel(held, by, reason, at), at)

        return await self._database.write(work)

    async def denied(self, tenant: TenantId, run: str, tool: str, digest: bytes) -> Approval | None:
        """Return the last denial of these arguments of a tool in a run."""
        is_same = (approvals.c.digest == digest, approvals.c.run == run, approvals.c.tool == tool)
        found = await self._standing(tenant, *is_same, approvals.c.state == DENIED)
        return None if found is None else found.approval

    async def edited(self, tenant: TenantId, within: Within, tool: str, digest: bytes) -> Approval | None:
        """Return the last approval within this that put these arguments in the place of others."""
        is_same = (approvals.c.edited_digest == digest, _is_within(within), approvals.c.tool == tool)
        found = await self._standing(tenant, *is_same, approvals.c.state == APPROVED)
        return None if found is None else found.approval

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
    if _insert(connection, at, tenant, question):
        _take_back_earlier(connection, at, question)
    is_meant = (approvals.c.key == question.key, approvals.c.round == question.round)
    found = _select_last(connection, tenant, *is_meant)
    if found is None:
        raise LookupError(f"the key {question.key.hex()} belongs to another tenant")
    return Standing(approval=found, at=at)


def _decide(connection: Connection, at: Instant, held: Approval, ballot: Ballot, within: Within | None) -> Told:
    said = decide(held, ballot, at)
    if isinstance(said, Counted) and ballot.edit is not None and within is not None:
        _hold_tool(connection, held)
        other = _select_same(connection, at, held, ballot.edit.digest, within)
        if other is not None:
            return Told(standing=Standing(approval=held, at=at), said=SameAs(other))
    return _told(connection, held, said, at)


def _told(connection: Connection, held: Approval, said: Weighed, at: Instant) -> Told:
    """Write what a word does, where it counts."""
    if isinstance(said, Counted):
        _update(connection, said.approval)
        _insert_votes(connection, held.id, said.approval.votes[len(held.votes) :])
        held = said.approval
    return Told(standing=Standing(approval=held, at=at), said=said)


def _is_within(within: Within) -> sa.ColumnElement[bool]:
    return sa.true() if within.run is None else approvals.c.run == within.run


def _is_waiting(at: Instant | sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Say in SQL what `state_at` says: nobody has decided and the deadline is not over."""
    return (approvals.c.state == OPEN) & (approvals.c.expires_at.is_(None) | (approvals.c.expires_at > at))


def _insert(connection: Connection, at: Instant, tenant: TenantId, question: Question) -> bool:
    """Ask, unless this round of the key was asked; say whether it was asked now."""
    dialect: Any = postgresql if connection.dialect.name == "postgresql" else sqlite
    row = {"id": new_id(at), "tenant": tenant, "asked_at": at, **question_row(question, at)}
    statement = dialect.insert(approvals).values(row).on_conflict_do_nothing().returning(approvals.c.id)
    return connection.execute(statement).first() is not None


def _take_back_earlier(connection: Connection, at: Instant, question: Question) -> None:
    """Take back the earlier rounds of a key that wait or were approved; what is denied or run out stays as it is."""
    is_earlier = (approvals.c.key == question.key, approvals.c.round < question.round)
    connection.execute(
        sa.update(approvals)
        .where(*is_earlier, _is_waiting(at) | (approvals.c.state == APPROVED))
        .values(state=CANCELLED, decided_at=at, cancel_reason=_SUPERSEDED)
    )


def _select_last(connection: Connection, tenant: TenantId, *is_meant: sa.ColumnElement[bool]) -> Approval | None:
    """Select the last round of what is meant, with all votes."""
    statement = sa.select(approvals).where(approvals.c.tenant == tenant, *is_meant)
    row = connection.execute(statement.order_by(approvals.c.round.desc(), approvals.c.id.desc()).limit(1)).first()
    return None if row is None else approval_of(row, _select_votes(connection, [row.id]).get(row.id, ()))


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


def _hold_tool(connection: Connection, held: Approval) -> None:
    """Let nobody else edit a call of the tool until this transaction ends; on SQLite it holds the database already."""
    if connection.dialect.name == "postgresql":
        named = sa.func.hashtextextended(f"edit {held.question.tool}", sa.cast(held.tenant, sa.BigInteger))
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(named)))


def _select_same(connection: Connection, at: Instant, held: Approval, digest: bytes, within: Within) -> Key | None:
    """Select the key of another effect of the tool that was asked for with, or edited to, these arguments."""
    is_theirs = (approvals.c.digest == digest) & approvals.c.edited_digest.is_(None)
    statement = (
        sa.select(approvals.c.key)
        .where(approvals.c.tenant == held.tenant, approvals.c.tool == held.question.tool, _is_within(within))
        .where(approvals.c.key != held.question.key, is_theirs | (approvals.c.edited_digest == digest))
        .where(_is_waiting(at) | (approvals.c.state == APPROVED))
        .limit(1)
    )
    key = connection.execute(statement).scalar_one_or_none()
    return None if key is None else Key(key)


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
