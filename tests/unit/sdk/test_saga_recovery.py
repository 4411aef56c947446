"""What a saga does where the service says something odd, or nothing."""

from collections.abc import Callable
from typing import cast

import msgspec
import pytest

from tests.unit.sdk.scripted import KEY, Answer, ScriptedService, answered, problem, replays
from twiceshy import Guard, GuardUnavailable, RequestRefused, SagaOver
from twiceshy._arguments import Signature
from twiceshy._restore import Misfit
from twiceshy._transports.base import NoReply, Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="no route")
SAGA = {
    "saga": "trip-7", "run": "trip-7", "state": "running", "reason": None, "deadline": None,
    "started_at": "2026-10-12T14:00:00Z", "failed_at": None, "ended_at": None,
}  # fmt: skip


def due(tool: str = "refund", **arguments: object) -> Reply:
    move = {
        "purpose": "compensate", "key": KEY, "tool": tool, "arguments": arguments, "run": "trip-7",
        "step": f"compensate:{KEY}", "business_key": None, "occurrence": 1,
    }  # fmt: skip
    return answered(200, {**SAGA, "state": "compensating", "due": move})


def scripted(serve: Serve, **answers: Answer) -> Guard:
    """Answer each path by its last part."""
    guard, service = serve()

    def answer(request: Request) -> Reply | NoReply:
        chosen = answers[request.path.rpartition("/")[2]]
        return chosen(request) if callable(chosen) else chosen

    service.always = answer

    @guard.tool
    def refund(payment: str = "p") -> str:
        return payment

    return guard


def fail(guard: Guard) -> None:
    with guard.saga("trip-7"):
        raise KeyError("room")


def broken(guard: Guard) -> str:
    with pytest.raises(KeyError) as raised:
        fail(guard)
    return "\n".join(raised.value.__notes__)


def test_a_saga_that_cannot_be_opened_runs_nothing(serve: Serve) -> None:
    with pytest.raises(GuardUnavailable, match="trip-7 was not opened"):
        fail(scripted(serve, sagas=SILENCE))
    with pytest.raises(RequestRefused, match="trip-7 was not opened: The service says not-possible"):
        fail(scripted(serve, sagas=problem("not-possible")))


def test_a_saga_that_cannot_be_completed_says_so(serve: Serve) -> None:
    def block(guard: Guard) -> None:
        with guard.saga("trip-7"):
            pass

    with pytest.raises(GuardUnavailable, match="trip-7 is not completed"):
        block(scripted(serve, sagas=answered(200, SAGA), complete=SILENCE))
    with pytest.raises(RequestRefused, match="is not completed: The service says invalid-request"):
        block(scripted(serve, sagas=answered(200, SAGA), complete=problem("invalid-request", 400)))


def test_a_failure_that_the_service_does_not_hear_of_is_noted(serve: Serve) -> None:
    guard = scripted(serve, sagas=answered(200, SAGA), fail=SILENCE)
    assert "twiceshy: saga trip-7 is not taken back: the service is silent: no route." in broken(guard)


def test_a_service_that_falls_silent_on_the_way_back_is_noted(serve: Serve) -> None:
    guard = scripted(serve, sagas=answered(200, SAGA), fail=answered(200, {}), next=SILENCE)
    assert "is not taken back yet: the service gives no answer (no route)" in broken(guard)
    guard = scripted(serve, sagas=answered(200, SAGA), fail=answered(200, {}), next=problem("not-found", 404))
    assert "is not taken back yet: The service says not-found." in broken(guard)


def test_a_call_that_is_answered_and_stays_due_is_given_up(serve: Serve) -> None:
    guard = scripted(serve, sagas=answered(200, SAGA), fail=answered(200, {}), next=due(), effects=replays("p"))
    assert "refund was called 10 times and is due still" in broken(guard)


def test_a_call_that_does_not_fit_the_tool_is_not_made(serve: Serve) -> None:
    told: list[object] = []

    def hear(request: Request) -> Reply:
        told.append((request.path, msgspec.json.decode(request.body or b"")))
        return answered(200, {})

    guard = scripted(serve, sagas=answered(200, SAGA), fail=answered(200, {}), next=due(card="c"), report=hear)
    noted = broken(guard)
    why = "the call of refund that is due does not fit it: there is no card"
    assert why in noted
    assert not noted.endswith("..")
    ((path, body),) = cast("list[tuple[str, dict[str, str]]]", told)
    assert path == f"/v1/sagas/trip-7/steps/{KEY}/report"
    assert body["reason"].startswith(why)


def test_a_saga_that_is_stuck_refuses_the_block(serve: Serve) -> None:
    waits = {"key": KEY, "why": "its compensation was refused", "retry_after_seconds": 60.0}
    guard = scripted(
        serve,
        sagas=answered(200, {**SAGA, "state": "stuck"}),
        next=answered(200, {**SAGA, "state": "stuck", "waits": waits}),
    )
    with pytest.raises(SagaOver, match=r"Saga trip-7 is not taken back yet: its compensation was refused\. It failed"):
        fail(guard)


def test_sagas_that_cannot_be_listed_are_not_recovered(serve: Serve) -> None:
    guard, service = serve()
    service.always = SILENCE
    with pytest.raises(GuardUnavailable, match="The sagas cannot be listed"):
        guard.recover_sagas()
    service.always = problem("invalid-request", 400)
    with pytest.raises(RequestRefused, match="The sagas cannot be listed"):
        guard.recover_sagas()


def test_all_pages_of_sagas_are_recovered(serve: Serve) -> None:
    guard, service = serve()
    ended = answered(200, {**SAGA, "state": "compensated"})
    first = answered(200, {"items": [{"saga": "a"}], "next": "p2"})
    none = answered(200, {"items": [], "next": None})
    service.answers = [none, first, ended, answered(200, {"items": [{"saga": "b"}], "next": None}), ended]
    assert [report.saga for report in guard.recover_sagas()] == ["trip-7", "trip-7"]
    assert [request.path for request in service.requests if request.method == "GET"] == [
        "/v1/sagas?state=stuck&limit=500",
        "/v1/sagas?state=compensating&limit=500",
        "/v1/sagas?state=compensating&limit=500&after=p2",
    ]


def test_arguments_that_the_service_makes_are_bound_with_the_defaults_of_the_others() -> None:
    def tool(first: int, /, second: int = 2, *rest: int, third: int = 3, **more: int) -> None:
        """Take arguments of all kinds."""

    signature = Signature("tool", tool)
    bound = signature.made({"first": 1, "third": 4})
    assert dict(bound.arguments) == {"first": 1, "second": 2, "rest": (), "third": 4, "more": {}}
    with pytest.raises(Misfit, match="first is missing, there is no other"):
        signature.made({"other": 1})
