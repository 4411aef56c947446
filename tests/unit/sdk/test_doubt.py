"""Doubt: how it is told, what is said of the ways out, and what the service's state makes of it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.scripted import (
    KEY,
    ScriptedService,
    answered,
    executes,
    failed,
    given,
    problem,
    replays,
)
from twiceshy import Guard, OutcomeInDoubt, OutcomeNotDelivered, ResultNotKept, RunSuspended
from twiceshy._transports.base import NoReply, Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]
INNER = "aa" * 32
OPAQUE = {"$opaque": {"type": "unknown", "size": None, "sha256": None, "reason": "nobody gave one."}}


def with_key(answer: Callable[[Request], Reply | NoReply], key: str) -> Callable[[Request], Reply | NoReply]:
    def changed(request: Request) -> Reply | NoReply:
        reply = answer(request)
        assert isinstance(reply, Reply)
        body = reply.body.replace(KEY.encode(), key.encode())
        return Reply(status=reply.status, content_type=reply.content_type, body=body)

    return changed


def test_the_ways_out_name_a_result(serve: Serve) -> None:
    guard, _ = serve(executes(), failed("in_doubt"))

    @guard.tool
    def pay() -> None:
        raise TimeoutError

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay()
    assert (
        f"  twiceshy effects resolve {KEY} --as applied --result '<JSON>' --reason '...'\n"
        in (caught.value.__notes__[0])
    )


def test_an_opaque_result_is_none_where_none_is_annotated_and_else_not_kept(serve: Serve) -> None:
    guard, _ = serve(replays(OPAQUE), replays(OPAQUE), replays(OPAQUE))

    @guard.tool
    def switch() -> None: ...

    @guard.tool
    def pay() -> str:
        return ""

    @guard.tool
    def bare() -> Any:
        return ""

    quiet: Callable[[], object] = switch
    with guard.run("booking-42"):
        assert quiet() is None
        with pytest.raises(ResultNotKept, match=r"was not kept: nobody gave one\. Look it up"):
            pay()
        with pytest.raises(ResultNotKept):
            bare()


def test_an_unclassified_exception_of_an_idempotent_tool_is_unknown_and_goes_on_where_it_stays_pending(
    serve: Serve,
) -> None:
    guard, service = serve(executes(), failed("pending", retry_after_seconds=2.0))
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})

    @guard.tool(effect="idempotent", deadline_seconds=0)
    def switch_on() -> None:
        raise TimeoutError

    with guard.run("booking-42"), pytest.raises(TimeoutError) as caught:
        switch_on()
    assert service.bodies("/fail")[0]["kind"] == "unknown"
    assert caught.value.__notes__[0] == (
        "twiceshy: whether it was applied is not known, and it may be repeated harmlessly; the same call will try "
        f"again not before 2 seconds from now. The effect is {KEY}."
    )


def test_the_state_in_the_answer_says_what_the_caller_sees_of_an_idempotent_tool(serve: Serve) -> None:
    guard, service = serve(executes(), failed("in_doubt"), executes(), *[NoReply(reason="gone")] * 100)
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})

    @guard.tool(effect="idempotent")
    def switch_on() -> None:
        raise TimeoutError

    with guard.run("booking-42"):
        with pytest.raises(RunSuspended):
            switch_on()
        with pytest.raises(OutcomeNotDelivered, match="open to another try when its lease ends") as caught:
            switch_on()
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize("is_told", [False, True])
def test_the_outer_calls_doubt_says_that_it_began_in_the_inner_effect(serve: Serve, is_told: bool) -> None:  # noqa: FBT001
    doubt = failed("in_doubt")
    guard, service = serve(
        executes(), with_key(lambda request: given(executes(), request), INNER), doubt, doubt,
        problem("outcome-in-doubt", key=KEY, fence=1),
    )  # fmt: skip

    @guard.tool(on_doubt="tell" if is_told else "suspend")
    def inner() -> None:
        raise TimeoutError

    @guard.tool
    def outer() -> None:
        inner()

    order = f"the doubt began in the inner effect {INNER} of inner: settle that first, then this."
    with guard.run("booking-42"):
        with pytest.raises(RunSuspended) as caught:
            outer()
        assert order in caught.value.__notes__[-1]
        assert f"resolve {KEY} --as applied" in caught.value.__notes__[-1]
        with pytest.raises(RunSuspended) as caught:
            outer()
    assert order in caught.value.__notes__[0]
    assert [body["kind"] for body in service.bodies("/fail")] == ["unknown", "unknown"]


def test_a_doubt_that_was_swallowed_is_forgotten_when_the_outer_call_begins_anew(serve: Serve) -> None:
    guard, _ = serve(
        executes(), with_key(lambda request: given(executes(), request), INNER), failed("in_doubt"),
        failed("in_doubt"), executes(), failed("in_doubt"),
    )  # fmt: skip
    calls: list[int] = []

    @guard.tool(on_doubt="tell")
    def inner() -> None:
        raise TimeoutError

    @guard.tool(on_doubt="tell")
    def outer() -> None:
        calls.append(1)
        if len(calls) == 1:
            inner()
        raise TimeoutError

    with guard.run("booking-42"):
        with pytest.raises(OutcomeInDoubt) as first:
            outer()
        with pytest.raises(OutcomeInDoubt) as second:
            outer()
    assert INNER in first.value.__notes__[0]
    assert INNER not in second.value.__notes__[0]
