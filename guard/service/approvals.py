"""Approvals as persons meet them: listed, waited for, decided, taken back. What a decision does is written here."""

import asyncio
from typing import assert_never
from uuid import UUID

import msgspec

from guard.core.approvals import Approval, Ballot, Counted, NotCounted, Repeated, Weighed
from guard.core.effects import SECOND, Effect, Instant, Key, TenantId
from guard.ports.approvals import ApprovalFilter, ApprovalStore, SameAs, Standing, Told
from guard.service.amend import Amend, look
from guard.service.begin import sleep_until_told
from guard.service.bell import Bell
from guard.service.edits import Collision, Edits
from guard.service.endings import amendment_of, ending_of
from guard.service.intake import Intake
from guard.service.outcomes import Refused
from guard.service.waiting import GLANCE_SECONDS, Waiters
from twiceshy_contract.approvals import Verdict

_EFFECT_IS_OVER = "its effect is over"


class Word(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says, before the arguments that came with it are understood."""

    person: str
    verdict: Verdict
    reason: str | None = None
    arguments: dict[str, object] | None = None


class Approvals:
    """Listing, waiting for, deciding and taking back."""

    def __init__(
        self,
        store: ApprovalStore,
        edits: Edits,
        amend: Amend,
        intake: Intake,
        waiters: Waiters,
        bell: Bell,
    ) -> None:
        self._store = store
        self._edits = edits
        self._amend = amend
        self._intake = intake
        self._waiters = waiters
        self._bell = bell

    async def page(self, tenant: TenantId, chosen: ApprovalFilter) -> tuple[list[Approval], Instant, str | None]:
        """List approvals, with the database's time. Raises ValueError for a cursor that is not one."""
        return await self._store.page(tenant, chosen)

    async def get(self, tenant: TenantId, approval: UUID, wait: float = 0) -> Standing | None:
        """Read an approval; with `wait`, once it is no longer open or so many seconds are over.

        Nothing is held in the database meanwhile. What another process writes is seen within a second.
        """
        clock = asyncio.get_running_loop().time
        until, key, found = clock() + wait, approval.bytes, await self._store.get(tenant, approval)
        while found is not None and _is_open(found) and clock() < until and not self._waiters.is_closed:
            with self._waiters.waiting(key) as told:
                found = await self._store.get(tenant, approval)  # once it can be told, nothing is missed
                if found is None or not _is_open(found):
                    self._waiters.wake_here(key)
                else:
                    await sleep_until_told(told, min(until - clock(), GLANCE_SECONDS, _left(found)))
        return found if found is None or wait == 0 else await self._store.get(tenant, approval)

    async def decide(self, tenant: TenantId, approval: UUID, word: Word) -> Standing | Refused:
        """Take a person's word, and write what it does to the effect. Raises Refusal, StoreUnavailable."""
        found = await self._store.get(tenant, approval)
        if found is None:
            return _not_found(approval)
        effect = (await self._intake.do(found.approval.question.key, look(found.approval.question.key), tenant)).effect
        if effect is not None and effect.is_final and _is_open(found):
            await self._store.cancel(tenant, approval, None, _EFFECT_IS_OVER)
            self._waiters.wake(approval.bytes)
            return _effect_is_over(found.approval, effect)
        edited = None if word.arguments is None else await self._edits(found.approval, effect, word.arguments)
        if isinstance(edited, Refused):
            return edited
        if isinstance(edited, Collision):
            return _collision(found.approval, edited.other)
        edit, earlier = (None, 0) if edited is None else (edited.edit, edited.earlier)
        ballot = Ballot(person=word.person, verdict=word.verdict, reason=word.reason, edit=edit)
        told = await self._store.decide(tenant, approval, ballot, earlier)
        return _not_found(approval) if told is None else await self._answer(tenant, told, word.person)

    async def cancel(self, tenant: TenantId, approval: UUID, by: str | None, reason: str) -> Standing | Refused:
        """Take a question back. Raises StoreUnavailable.

        What it was asked for does not run; an approved one that has not begun is asked anew by the next call.
        """
        told = await self._store.cancel(tenant, approval, by, reason)
        return _not_found(approval) if told is None else await self._answer(tenant, told, by or "")

    async def _answer(self, tenant: TenantId, told: Told, person: str) -> Standing | Refused:
        approval = told.standing.approval
        match told.said:
            case Counted() | Repeated():
                ending = ending_of(approval)
                if ending is not None:
                    await self._amend(tenant, amendment_of(approval, ending))
                self._waiters.wake(approval.id.bytes)
                self._bell.ring()
                return told.standing
            case NotCounted():
                return _not_counted(told.standing, told.said, person)
            case SameAs(key=key):
                return await self._same_as(approval, key)
        assert_never(told.said)

    async def _same_as(self, approval: Approval, key: Key) -> Refused:
        other = (await self._intake.do(key, look(key))).effect
        if other is not None:
            return _collision(approval, other)
        return Refused(code="edit-refused", detail=f"{_named(approval)}: effect {key.hex()} has these arguments.")


def _is_open(standing: Standing) -> bool:
    return standing.approval.state_at(standing.at) == "open"


def _left(standing: Standing) -> float:
    """Return the seconds until an approval runs out."""
    expires_at = standing.approval.expires_at
    return GLANCE_SECONDS if expires_at is None else (expires_at - standing.at) / SECOND


def _named(approval: Approval) -> str:
    return f"Approval {approval.id} of {approval.question.summary}"


def _not_found(approval: UUID) -> Refused:
    return Refused(code="not-found", detail=f"There is no approval {approval}.")


def _effect_is_over(approval: Approval, effect: Effect) -> Refused:
    return Refused(
        code="decided-already",
        detail=f"{_named(approval)} is of no use any more: its effect is {effect.life.state}. It was taken back.",
        effect=effect,
    )


def _collision(approval: Approval, other: Effect) -> Refused:
    return Refused(
        code="edit-refused",
        detail=f"{_named(approval)} was not decided: with these arguments it would be effect "
        f"{other.intent.key.hex()} of the same tool, which is {other.life.state}.",
        effect=other,
    )


def _not_counted(standing: Standing, said: Weighed, person: str) -> Refused:
    approval = standing.approval
    objection = said.objection if isinstance(said, NotCounted) else "decided"
    if objection == "expired":
        detail = f"{_named(approval)} has run out: nobody can decide it or take it back any more."
        return Refused(code="approval-expired", detail=detail)
    if objection == "own request":
        detail = f"{_named(approval)} was asked for by {person}; with four eyes somebody else decides."
        return Refused(code="forbidden", detail=detail)
    if objection == "decided before":
        detail = f"{person} has spoken about {_named(approval)[0].lower()}{_named(approval)[1:]} already, otherwise."
        return Refused(code="decided-already", detail=detail)
    if objection == "begun":
        detail = f"{_named(approval)} cannot be taken back any more: the call that it let run has begun."
        return Refused(code="decided-already", detail=detail)
    if objection == "other arguments":
        others = ", ".join(vote.person for vote in approval.votes)
        detail = f"{_named(approval)} was approved by {others} with other arguments than {person} approves."
        return Refused(code="edit-refused", detail=detail)
    return Refused(code="decided-already", detail=f"{_named(approval)} is {_how(standing)}.")


def _how(standing: Standing) -> str:
    approval = standing.approval
    state = approval.state_at(standing.at)
    who = ", ".join(vote.person for vote in approval.votes) if state != "cancelled" else approval.cancelled_by
    last = approval.votes[-1].reason if approval.votes and state != "cancelled" else approval.cancel_reason
    return f"{state} already{f' by {who}' if who else ''}{f': {last}' if last else ''}"
