"""Pauses as persons see them: the calls at which a fork stopped, and what they answer."""

from typing import Final

import msgspec

from guard.core.effects import Key, TenantId
from guard.core.pauses import Pause, PauseAnswer
from guard.ports.pauses import PauseFilter, PauseStore
from guard.service.finish import check_result
from guard.service.outcomes import Refused
from guard.service.runs import Runs, no_run
from twiceshy_contract.canonical import canonical
from twiceshy_contract.effects import ReportedError
from twiceshy_contract.forks import AnswerPauseRequest, InjectedOutcome
from twiceshy_contract.refusals import Refusal

_DID: Final = {"inject": "an outcome was injected", "deny": "it was denied", "allow": "it was allowed"}


class Pauses:
    """Listing and answering the pauses of forks."""

    def __init__(self, store: PauseStore, runs: Runs) -> None:
        self._store = store
        self._runs = runs

    async def page(self, tenant: TenantId, run: str, chosen: PauseFilter) -> tuple[list[Pause], str | None] | Refused:
        """Return the pauses of a fork, oldest first, and the cursor of the next page. Raises ValueError."""
        found = await self._runs.find(tenant, run)
        return no_run(run) if found is None else await self._store.page(found.id, chosen)

    async def answer(
        self, tenant: TenantId, run: str, key: Key, request: AnswerPauseRequest, by: str | None
    ) -> Pause | Refused:
        """Answer a pause, once. Raises Refusal for an outcome that is not tagged JSON, StoreUnavailable."""
        outcome = None if request.outcome is None else _checked(request.outcome)
        answer = PauseAnswer(word=request.answer, outcome=outcome, reason=request.reason)
        found = await self._runs.find(tenant, run)
        if found is None:
            return no_run(run)
        pause = await self._store.answer(found.id, key, answer, by)
        if pause is None:
            return Refused(code="not-found", detail=f"Fork {run!r} did not stop at a call {key.hex()}.")
        if pause.answer == answer:
            return pause
        said = "nothing was said" if pause.answer is None else _DID[pause.answer.word]
        by_whom = "" if pause.answered_by is None else f" by {pause.answered_by}"
        detail = f"The call of tool {pause.stop.tool!r} at which fork {run!r} stopped is answered: {said}{by_whom}."
        return Refused(code="decided-already", detail=detail)


def _checked(outcome: InjectedOutcome) -> bytes:
    """Return an outcome as it is kept. Raises Refusal with its place."""
    try:
        if isinstance(outcome.error, ReportedError):
            _check_data(outcome.error)
        else:
            check_result(outcome.result)
    except Refusal as refusal:
        raise refusal.under("outcome") from refusal
    return msgspec.json.encode(outcome, order="sorted")


def _check_data(error: ReportedError) -> None:
    try:
        canonical(error.data)
    except Refusal as refusal:
        raise refusal.under("error", "data") from refusal
