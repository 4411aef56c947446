"""What the SDK does with each answer to begin, and with the lack of one."""

import logging
from collections.abc import Callable

import pytest

from tests.unit.sdk.scripted import (
    KEY,
    FakeClock,
    ScriptedService,
    answered,
    attempts,
    committed,
    executes,
    given,
    payer,
    problem,
    replays,
)
from twiceshy import (
    Guard,
    GuardUnavailable,
    InProgress,
    NoRun,
    RecordMismatch,
    Rejected,
    ResultNotKept,
    RetryLater,
    RunSuspended,
    SetupError,
)
from twiceshy._transports.base import NoReply, Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection reset")


def test_a_granted_call_runs_once_and_is_committed(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"):
        assert pay(7) == 14
    assert calls == [7]
    assert service.paths == ["effects", "commit"]
    begun, commit = service.bodies("/v1/effects")[0], service.bodies("/commit")[0]
    assert (begun["tool"], begun["arguments"], begun["run"]) == ("pay", {"amount": 7}, "booking-42")
    assert (commit["attempt"], commit["fence"], commit["result"]) == (begun["attempt"], 1, 14)


def test_a_tool_is_declared_once_a_guard_before_its_first_begin(serve: Serve) -> None:
    guard, service = serve(executes(), committed(), executes(), committed())
    pay = payer(guard, [], content=["/amount"], lease_seconds=12, key="once")
    with guard.run("booking-42"):
        pay(1)
        pay(2)
    puts = [request for request in service.requests if request.method == "PUT"]
    assert [request.path for request in puts] == ["/v1/tools/pay"]
    assert service.requests[0] is puts[0]
    assert b'"declared_by":"code"' in (puts[0].body or b"")


def test_a_stricter_class_in_the_registry_counts_and_is_said_once(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    guard, service = serve(
        executes(), answered(200, {"key": KEY, "tool": "pay", "run": None, "fence": 1, "state": "in_doubt"})
    )
    service.declaration = answered(200, {"declaration": {"class": "side_effect"}})

    @guard.tool(effect="idempotent")
    def pay() -> None:
        raise ValueError("no idea")

    with guard.run("booking-42"), pytest.raises(RunSuspended):
        pay()
    assert service.bodies("/fail")[0]["kind"] == "unknown"
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_replay_returns_the_recorded_result_without_running(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "twiceshy")
    guard, _ = serve(replays(14, drift={"content": ["/amount"]}))
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"):
        assert pay(7) == 14
    assert calls == []
    assert "answered from the record" in caplog.text
    assert "/amount" in caplog.text


def test_a_replayed_rejection_is_raised_with_its_type_message_and_data(serve: Serve) -> None:
    guard, _ = serve(replays(error={"type": "CardDeclined", "message": "no money", "data": {"$dec": "1.5"}}))
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(Rejected, match="no money") as caught:
        pay(7)
    assert caught.value.type == "CardDeclined"
    assert str(caught.value.data) == "1.5"


def test_an_opaque_result_raises_result_not_kept(serve: Serve) -> None:
    opaque = {"$opaque": {"type": "builtins.set", "size": None, "sha256": None, "reason": "a set has no order"}}
    guard, _ = serve(replays(opaque))
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(ResultNotKept, match="a set has no order"):
        pay(7)


def test_a_replay_that_does_not_fit_the_annotation_names_both_types(serve: Serve) -> None:
    guard, _ = serve(replays("fourteen"))

    @guard.tool
    def pay() -> int:
        return 1

    with guard.run("booking-42"), pytest.raises(RecordMismatch, match=r"a str, the annotation says int"):
        pay()


@pytest.mark.parametrize(
    "weather",
    [
        SILENCE,
        problem("store-unavailable", 503),
        problem("internal", 500),
        Reply(status=502, content_type="text/html", body=b"<html>"),
        Reply(status=404, content_type="text/html", body=b"<html>"),
        Reply(status=200, content_type="application/json", body=b'{"ok": true}'),
        Reply(status=201, content_type="application/json", body=b"not json"),
        Reply(status=307, content_type="", body=b""),
        answered(200, {"decision": "dance"}),
    ],
    ids=lambda reply: str(reply)[:60],
)
def test_no_readable_answer_means_the_tool_does_not_run(
    serve: Serve, clock: FakeClock, weather: Reply | NoReply
) -> None:
    guard, service = serve(*[weather] * 100)
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"), pytest.raises(GuardUnavailable, match=r"http://guard\.test"):
        pay(7)
    assert calls == []
    assert len(set(attempts(service))) == 1
    assert len(attempts(service)) > 3
    assert service.paths[-1] == "release"
    assert service.bodies("/release")[0]["attempt"] == str(attempts(service)[0])
    assert clock.now - 1000 <= 10


def test_a_lost_answer_is_asked_for_with_the_same_attempt(serve: Serve) -> None:
    guard, service = serve(SILENCE, problem("store-unavailable", 503), executes(), committed())
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"):
        pay(7)
    assert calls == [7]
    assert len(attempts(service)) == 3
    assert len(set(attempts(service))) == 1


def test_an_undeclarable_tool_begins_nothing(serve: Serve) -> None:
    guard, service = serve()
    service.declaration = SILENCE
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(GuardUnavailable):
        pay(7)
    assert service.paths == []


def test_a_call_waits_for_another_holder_and_gets_its_result(serve: Serve) -> None:
    guard, service = serve(problem("in-progress", retry_after_seconds=1.0), replays(14))
    pay = payer(guard, [])
    with guard.run("booking-42"):
        assert pay(7) == 14
    assert [body.get("wait_seconds", 0) for body in service.bodies("/v1/effects")] == [0, 30.0]


def test_the_wait_for_another_holder_ends(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(*[problem("in-progress", key=KEY, retry_after_seconds=1.0)] * 100)
    pay = payer(guard, [], wait_seconds=5)
    with guard.run("booking-42"), pytest.raises(InProgress) as caught:
        pay(7)
    assert caught.value.key == KEY
    assert clock.now - 1000 == pytest.approx(5, abs=0.2)
    assert len(service.bodies("/v1/effects")) < 10


def test_a_retry_time_that_fits_is_waited_for_and_tried_with_a_new_attempt(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(problem("retry-later", retry_after_seconds=2.5), executes(), committed())
    pay = payer(guard, [])
    with guard.run("booking-42"):
        pay(7)
    assert 2.5 in clock.sleeps
    assert len(set(attempts(service))) == 2


def test_a_retry_time_too_far_away_is_told(serve: Serve) -> None:
    guard, _ = serve(problem("retry-later", retry_after_seconds=31.0))
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(RetryLater) as caught:
        pay(7)
    assert caught.value.retry_after == 31.0


def test_an_answer_that_took_longer_than_its_lease_starts_nothing(serve: Serve, clock: FakeClock) -> None:
    def late(request: Request) -> Reply | NoReply:
        clock.now += 31
        return given(executes(seconds=30.0), request)

    guard, service = serve(late, executes(), committed())
    calls: list[int] = []
    pay = payer(guard, calls, wait_seconds=60)
    with guard.run("booking-42"):
        pay(7)
    assert calls == [7]
    assert service.paths == ["effects", "release", "effects", "commit"]
    assert len(set(attempts(service))) == 2


def test_an_ended_attempt_is_replaced_by_a_new_one(serve: Serve) -> None:
    guard, service = serve(SILENCE, problem("lease-lost"), executes(), committed())
    pay = payer(guard, [])
    with guard.run("booking-42"):
        pay(7)
    assert len(set(attempts(service))) == 2


def test_the_recorded_arguments_run_instead_of_the_callers(serve: Serve) -> None:
    guard, _ = serve(executes({"amount": 5}), committed())
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"):
        assert pay(7) == 10
    assert calls == [5]


def test_recorded_arguments_that_do_not_fit_run_nothing_and_are_released(serve: Serve) -> None:
    guard, service = serve(executes({"sum": 5}))
    calls: list[int] = []
    pay = payer(guard, calls)
    with guard.run("booking-42"), pytest.raises(RecordMismatch, match="the arguments sum, the tool takes amount"):
        pay(7)
    assert calls == []
    assert service.paths == ["effects", "release"]


def test_an_interrupted_begin_is_released(serve: Serve) -> None:
    def interrupt(request: Request) -> Reply:
        raise KeyboardInterrupt

    guard, service = serve(interrupt)
    pay = payer(guard, [])
    with guard.run("booking-42"), pytest.raises(KeyboardInterrupt):
        pay(7)
    assert service.paths == ["effects", "release"]


def test_outside_a_run_only_a_business_key_will_do(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    pay = payer(guard, [])
    with pytest.raises(NoRun, match="copy_context"):
        pay(7)
    assert pay(7, business_key="invoice-9") == 14
    body = service.bodies("/v1/effects")[0]
    assert (body["business_key"], body.get("run")) == ("invoice-9", None)


def test_step_and_occurrence_are_the_guards_unless_the_tool_has_them(serve: Serve) -> None:
    guard, service = serve(executes(), committed(), executes(), committed())
    pay = payer(guard, [])

    @guard.tool
    def walk(step: int) -> int:
        return step

    with guard.run("booking-42"):
        pay(7, step="s1", occurrence=2)
        assert walk.with_key(step="s2")(step=3) == 3
    first, second = service.bodies("/v1/effects")
    assert (first["step"], first["occurrence"], first["arguments"]) == ("s1", 2, {"amount": 7})
    assert (second["step"], second["arguments"]) == ("s2", {"step": 3})


def test_a_tool_keyed_by_step_asks_for_it(serve: Serve) -> None:
    guard, service = serve()
    pay = payer(guard, [], key="step")
    with guard.run("booking-42"), pytest.raises(SetupError, match="pass step="):
        pay(7)
    assert service.requests == []
