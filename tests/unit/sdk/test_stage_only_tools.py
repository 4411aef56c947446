"""Stage-only tools: their messages are made, then begun and committed in one request, and never twice."""

import asyncio
import inspect
import typing
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_type
from uuid import UUID

import msgspec
import pytest

from tests.unit.sdk.scripted import KEY, FakeClock, ScriptedService, about, answered, problem, replays
from tests.unit.sdk.staging import FIRST, SECOND, asks_to_render, awaits, stages
from twiceshy import (
    Answer,
    ApprovalAwaited,
    Guard,
    GuardUnavailable,
    Mail,
    Message,
    NoRun,
    RecordMismatch,
    RequestRefused,
    Staged,
)
from twiceshy._transports.base import NoReply

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection refused")
STAGED = Staged(key=KEY, messages=(FIRST, SECOND))


def sent(service: ScriptedService) -> list[Any]:
    """The messages of each staging that was asked for."""
    return [body["messages"] for body in service.bodies("/v1/outbox")]


def test_a_call_stages_what_its_function_makes_and_returns_what_was_staged(serve: Serve) -> None:
    guard, service = serve(stages(FIRST, SECOND))

    @guard.tool(sink="mail")
    def confirm(to: str, room: int) -> Mail:
        return Mail(to=to, subject="Your room", text=f"Room {room} is yours.", cc=["bob@example.com"])

    with guard.run("booking-42"):
        assert assert_type(confirm("ann@example.com", 7), Staged) == STAGED
    (body,) = service.bodies("/v1/outbox")
    assert (body["tool"], body["run"], body["arguments"]) == (
        "confirm",
        "booking-42",
        {"to": "ann@example.com", "room": 7},
    )
    mail = {"to": ["ann@example.com"], "cc": ["bob@example.com"], "subject": "Your room", "text": "Room 7 is yours."}
    assert body["messages"] == [{"destination": "mail", "mail": mail}]
    (declared,) = [msgspec.json.decode(it.body or b"") for it in service.requests if it.method == "PUT"]
    assert (declared["sink"], declared["class"]) == ("mail", "side_effect")


def test_an_async_tool_stages_alike(serve: Serve) -> None:
    guard, service = serve(stages(FIRST))

    @guard.tool(sink="orders", effect="idempotent")
    async def announce(order: int) -> dict[str, object]:
        await asyncio.sleep(0)
        return {"order": order, "total": Decimal("7.50")}

    async def main() -> None:
        async with guard.run("booking-42"):
            answer = assert_type(await announce.answer_async(7), Answer[Staged])
        assert (answer.value.messages, answer.is_replay, answer.key) == ((FIRST,), False, KEY)

    asyncio.run(main())
    assert sent(service) == [[{"destination": "orders", "payload": {"order": 7, "total": {"$dec": "7.50"}}}]]


@pytest.mark.parametrize(
    ("made", "messages"),
    [
        ("hello", [{"text": "hello"}]),
        ({"a": 1}, [{"payload": {"a": 1}}]),
        (Message(payload=[1], type="t", lane="l", delay_seconds=5), [
            {"payload": [1], "type": "t", "lane": "l", "delay_seconds": 5.0}
        ]),
        (["one", {"n": 2}, Message(payload=None)], [{"text": "one"}, {"payload": {"n": 2}}, {"payload": None}]),
        (None, [{"payload": {"order": 7, "note": None}}]),
    ],
)  # fmt: skip
def test_what_the_function_returns_says_what_the_messages_are(
    serve: Serve, made: object, messages: list[dict[str, object]]
) -> None:
    guard, service = serve(stages(FIRST))

    @guard.tool(sink="orders")
    def announce(order: int, note: str | None = None) -> object:
        return made

    with guard.run("booking-42"):
        announce(7)
    assert sent(service) == [[{"destination": "orders", **it} for it in messages]]


def test_arguments_that_are_those_of_mail_are_the_mail_where_nothing_is_returned(serve: Serve) -> None:
    guard, service = serve(stages(FIRST), stages(FIRST))

    @guard.tool(sink="mail")
    def send_mail(to: str, subject: str, text: str, thread: str | None = None) -> None: ...

    @guard.tool(sink="mail")
    def send_note(to: str, subject: str, text: str, colour: str) -> None: ...

    with guard.run("booking-42"):
        assert isinstance(send_mail("ann@example.com", "Hi", "Hello."), Staged)
        send_note("ann@example.com", "Hi", "Hello.", "red")
    mail, note = sent(service)
    assert mail == [{"destination": "mail", "mail": {"to": ["ann@example.com"], "subject": "Hi", "text": "Hello."}}]
    given = {"to": "ann@example.com", "subject": "Hi", "text": "Hello.", "colour": "red"}
    assert note == [{"destination": "mail", "payload": given}]


def mailer(guard: Guard, calls: list[object] | None = None, **options: Any) -> Callable[..., Staged]:
    """Put a stage-only tool behind the guard that notes each making of its messages."""

    @guard.tool(sink="mail", **options)
    def send(to: str) -> Mail:
        (calls if calls is not None else []).append(to)
        return Mail(to=to, subject="Hi", text="Hello.")

    return send


def test_a_record_is_given_back_and_the_messages_are_made_at_every_call(serve: Serve) -> None:
    record = replays({"messages": [str(FIRST), str(SECOND)]}, said="done at step 1")
    guard, service = serve(stages(FIRST, SECOND), record)
    calls: list[object] = []
    send = mailer(guard, calls)
    with guard.run("booking-42"):
        first, again = send("ann@example.com"), send("ann@example.com")
    assert (first, again) == (STAGED, Staged(key=KEY, messages=(FIRST, SECOND), is_replay=True))
    assert calls == ["ann@example.com"] * 2
    assert service.paths == ["outbox", "outbox"]


def test_an_answer_that_was_lost_is_asked_for_again_with_the_same_attempt(serve: Serve, clock: FakeClock) -> None:
    guard, service = serve(SILENCE, NoReply(reason="reset"), stages(FIRST))
    with guard.run("booking-42"):
        assert mailer(guard)("ann@example.com").messages == (FIRST,)
    first, second, third = service.bodies("/v1/outbox")
    assert first == second == third
    assert len(clock.sleeps) == 2


def test_silence_says_that_the_messages_may_be_staged_and_releases_nothing(serve: Serve) -> None:
    guard, service = serve()
    service.always = SILENCE
    with guard.run("booking-42"), pytest.raises(GuardUnavailable) as raised:
        mailer(guard)("ann@example.com")
    assert "Nobody knows whether the messages of send are staged" in str(raised.value)
    assert "never twice" in str(raised.value)
    assert set(service.paths) == {"outbox"}


def test_nothing_of_a_staging_is_spooled(serve: Serve, tmp_path: Path) -> None:
    guard, service = serve(spool=tmp_path / "spool")
    service.always = SILENCE
    with guard.run("booking-42"), pytest.raises(GuardUnavailable):
        mailer(guard)("ann@example.com")
    assert not (tmp_path / "spool").exists()


def test_arguments_of_a_person_are_rendered_and_sent_beside_the_calls_own(serve: Serve) -> None:
    guard, service = serve(asks_to_render({"to": "director@example.com"}), stages(FIRST))
    calls: list[object] = []
    with guard.run("booking-42"):
        assert mailer(guard, calls)("ann@example.com").messages == (FIRST,)
    assert calls == ["ann@example.com", "director@example.com"]
    first, second = service.bodies("/v1/outbox")
    assert "rendered_from" not in first
    assert (second["arguments"], second["rendered_from"]) == ({"to": "ann@example.com"}, {"to": "director@example.com"})
    assert sent(service)[1][0]["mail"]["to"] == ["director@example.com"]


def test_arguments_of_a_person_that_do_not_fit_stage_nothing(serve: Serve) -> None:
    guard, _ = serve(asks_to_render({"whom": "director@example.com"}))
    with guard.run("booking-42"), pytest.raises(RecordMismatch, match="approvals cancel"):
        mailer(guard)("ann@example.com")


def test_a_service_that_asks_for_other_messages_for_ever_is_not_obeyed_for_ever(serve: Serve) -> None:
    guard, service = serve(*[asks_to_render({"to": "b@example.com"})] * 5)
    with guard.run("booking-42"), pytest.raises(GuardUnavailable, match="5 times"):
        mailer(guard)("ann@example.com")
    assert len(sent(service)) == 5


def test_an_approval_suspends_or_is_waited_for(serve: Serve) -> None:
    guard, service = serve(awaits(), awaits(), answered(200, {"state": "approved"}), stages(FIRST))
    with guard.run("booking-42"), pytest.raises(ApprovalAwaited):
        mailer(guard, approval=True)("ann@example.com")
    with guard.run("booking-42"):
        assert mailer(guard, name="soon", approval=True, on_approval="wait")("ann@example.com").key == KEY
    assert len(sent(service)) == 3


@pytest.mark.parametrize(
    ("result", "messages"), [({"messages": [str(FIRST)]}, (FIRST,)), (None, ()), ({"anything": 1}, ())]
)
def test_a_fork_is_given_what_stands_in_the_place_of_a_staging(
    serve: Serve, result: object, messages: tuple[UUID, ...]
) -> None:
    stub = about(decision="stub", outcome={"result": result}, provenance="recorded", rule="recorded", origin=KEY)
    guard, _ = serve(answered(200, stub))
    with guard.run("booking-42"):
        assert mailer(guard)("ann@example.com") == Staged(key=KEY, messages=messages, is_replay=True)


def test_a_record_of_before_the_tool_had_a_sink_is_no_staging(serve: Serve) -> None:
    guard, _ = serve(replays(14))
    with guard.run("booking-42"), pytest.raises(RecordMismatch, match="Did the tool have no sink"):
        mailer(guard)("ann@example.com")


def test_a_destination_that_is_not_there_is_said(serve: Serve) -> None:
    why = problem("invalid-request", 400, errors=[{"path": "/messages/0/destination", "message": "no destination"}])
    guard, _ = serve(why)
    with guard.run("booking-42"), pytest.raises(RequestRefused, match="/messages/0/destination: no destination"):
        mailer(guard)("ann@example.com")


def test_a_call_outside_of_a_run_is_refused_before_anything_is_made(serve: Serve) -> None:
    guard, service = serve(stages(FIRST))
    calls: list[object] = []
    send = mailer(guard, calls)
    with pytest.raises(NoRun):
        send("ann@example.com")
    assert (calls, service.requests) == ([], [])
    assert send("ann@example.com", business_key="order-7").messages == (FIRST,)
    assert service.bodies("/v1/outbox")[0]["business_key"] == "order-7"


def test_a_method_and_another_wait_stage_alike(serve: Serve) -> None:
    guard, service = serve(problem("retry-later", retry_after_seconds=2), stages(FIRST))

    class Desk:
        """Has a method."""

        @guard.tool(sink="mail")
        def confirm(self, to: str) -> Mail:
            return Mail(to=to, subject="Hi", text="Hello.")

    with guard.run("booking-42"):
        assert Desk().confirm("ann@example.com").messages == (FIRST,)
    first, second = service.bodies("/v1/outbox")
    assert first["attempt"] != second["attempt"]


def test_a_framework_sees_that_a_call_returns_what_was_staged(serve: Serve) -> None:
    guard, _ = serve()

    @guard.tool(sink="mail")
    def send(to: "str", subject: str = "Hi") -> Mail:
        return Mail(to=to, subject=subject, text="Hello.")

    assert str(inspect.signature(send)) == "(to: 'str', subject: str = 'Hi') -> twiceshy._staged.Staged"
    assert typing.get_type_hints(send) == {"to": str, "subject": str, "return": Staged}
