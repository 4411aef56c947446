"""`effect.stage`: messages that go with the outcome of an ordinary tool, in the same transaction, or not at all."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.unit.sdk.scripted import KEY, ScriptedService, answered, committed, executes, failed, given, problem, replays
from tests.unit.sdk.spooled import files, undelivered
from twiceshy import (
    CurrentEffect,
    Guard,
    Mail,
    Message,
    MessageRefused,
    NoEffect,
    NotApplied,
    Rejected,
    RunSuspended,
    current_effect,
)
from twiceshy._lesser import lesser
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_record import Kept, Undelivered, read, write
from twiceshy._transports.base import NoReply, Request
from twiceshy._transports.batch import batched
from twiceshy_contract.canonical import MAX_BYTES

Serve = Callable[..., tuple[Guard, ScriptedService]]
Stage = Callable[[CurrentEffect], object]
SILENCE = NoReply(reason="connection refused")


@dataclass
class Order:
    """A payload with a shape of its own."""

    number: int
    total: Decimal
    at: datetime


def booker(guard: Guard, stage: Stage) -> Callable[[], int]:
    """Put a tool behind the guard that stages something and returns 14."""

    @guard.tool
    def book() -> int:
        stage(current_effect())
        return 14

    return book


def commits(service: ScriptedService) -> list[Any]:
    return service.bodies("/commit")


def test_what_a_tool_stages_goes_with_its_outcome_in_order(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    payload = {"order": 7, "lines": [1]}
    order = Order(7, Decimal("7.50"), datetime(2026, 10, 12, 14, tzinfo=UTC))

    def stage(effect: CurrentEffect) -> None:
        effect.stage("orders", payload, type="order.created", lane="order-7", headers={"X-Shop": "1"}, delay_seconds=5)
        payload["order"] = 8
        effect.stage("mail", Mail(to="ann@example.com", subject="Booked", text="See you."), lane="ann")
        effect.stage("orders", payload=order)
        effect.stage("log", "booked")
        effect.stage("orders", Message(payload=[1], not_after_seconds=60))

    with guard.run("booking-42"):
        assert booker(guard, stage)() == 14
    assert commits(service)[0]["outbox"] == [
        {
            "destination": "orders", "payload": {"order": 7, "lines": [1]}, "type": "order.created", "lane": "order-7",
            "headers": {"X-Shop": "1"}, "delay_seconds": 5.0,
        },
        {
            "destination": "mail", "lane": "ann",
            "mail": {"to": ["ann@example.com"], "subject": "Booked", "text": "See you."},
        },
        {
            "destination": "orders",
            "payload": {"number": 7, "total": {"$dec": "7.50"}, "at": {"$dt": "2026-10-12T14:00:00+00:00"}},
        },
        {"destination": "log", "text": "booked"},
        {"destination": "orders", "payload": [1], "not_after_seconds": 60.0},
    ]  # fmt: skip
    assert commits(service)[0]["result"] == 14


def test_a_tool_that_stages_nothing_commits_as_ever(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    with guard.run("booking-42"):
        booker(guard, lambda _: None)()
    assert "outbox" not in commits(service)[0]


def test_an_async_tool_stages_alike_and_a_replay_stages_nothing(serve: Serve) -> None:
    guard, service = serve(executes(), committed(), replays(14))

    @guard.tool
    async def book() -> int:
        effect = current_effect()
        await asyncio.gather(asyncio.to_thread(effect.stage, "orders", {"n": 1}))
        effect.stage("orders", {"n": 2})
        return 14

    async def main() -> None:
        async with guard.run("booking-42"):
            assert (await book(), await book()) == (14, 14)

    asyncio.run(main())
    (commit,) = commits(service)
    assert [message["payload"] for message in commit["outbox"]] == [{"n": 1}, {"n": 2}]


@pytest.mark.parametrize("error", [NotApplied("closed"), Rejected("no"), RuntimeError("what?")])
def test_where_the_tool_raises_nothing_is_staged(serve: Serve, error: Exception) -> None:
    state = {"NotApplied": "pending", "Rejected": "failed"}.get(type(error).__name__, "in_doubt")
    guard, service = serve(executes(), failed(state))

    @guard.tool(deadline_seconds=0)
    def book() -> None:
        current_effect().stage("orders", {"n": 1})
        raise error

    with guard.run("booking-42"), pytest.raises((type(error), RunSuspended)):
        book()
    assert "outbox" not in service.bodies("/fail")[0]


def test_each_try_stages_its_own_messages(serve: Serve) -> None:
    guard, service = serve(executes(), failed("pending", retry_after_seconds=1.0), executes(), committed())
    tries: list[int] = []

    @guard.tool
    def book() -> None:
        tries.append(len(tries))
        current_effect().stage("orders", {"try": tries[-1]})
        if len(tries) == 1:
            raise NotApplied("closed")

    with guard.run("booking-42"):
        book()
    assert [message["payload"] for message in commits(service)[0]["outbox"]] == [{"try": 1}]


def test_what_was_staged_goes_with_an_effect_that_succeeded_although_its_tool_raised(serve: Serve) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def book() -> None:
        effect = current_effect()
        effect.stage("orders", {"n": 1})
        with effect.sending():
            pass
        raise LookupError("the receipt cannot be read")

    with guard.run("booking-42"), pytest.raises(LookupError):
        book()
    assert commits(service)[0]["outbox"] == [{"destination": "orders", "payload": {"n": 1}}]


def test_an_effect_that_is_over_takes_no_message(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    seen: list[CurrentEffect] = []
    with guard.run("booking-42"):
        booker(guard, seen.append)()
    with pytest.raises(MessageRefused, match="book is over"):
        seen[0].stage("orders", {"n": 1})
    with pytest.raises(NoEffect):
        current_effect()
    assert "outbox" not in commits(service)[0]


@pytest.mark.parametrize(
    ("stage", "said", "path"),
    [
        (lambda it: it.stage("a b", {}), "destination must be a text of 1 to 100 letters", "/destination"),
        (lambda it: it.stage("orders", 7), "such as this int, goes in payload=", ""),
        (lambda it: it.stage("orders"), "exactly one of `payload`, `text` and `mail`", ""),
        (lambda it: it.stage("orders", "x", payload=1), "there is a message before payload=", ""),
        (lambda it: it.stage("orders", Message(text="x"), lane="l"), "say lane in the Message", ""),
        (lambda it: it.stage("orders", {"a": float("nan")}), "The payload at /a cannot be written", "/payload/a"),
        (lambda it: it.stage("orders", {"a": object()}), "a object cannot be written as JSON", "/payload/a"),
        (lambda it: it.stage("orders", {}, delay_seconds=-1), "delay_seconds must be a number of seconds, 0 or", None),
        (lambda it: it.stage("mail", Mail(to="ann", subject="", text="")), "to[0] must be a text that is one", "/to/0"),
        (lambda it: it.stage("mail", Mail(to="a@b.c", subject="")), "mail has a `text`, an `html`, or both", ""),
        (lambda it: it.stage("orders", "x" * 900_001), "text must be a text of 900000 characters or less", "/text"),
        (lambda it: [it.stage("orders", {"n": n}) for n in range(101)], "book stages 101 messages", ""),
        (lambda it: [it.stage("orders", "x" * 500_000) for _ in "12"], "983040 are the most of one effect", ""),
    ],
)  # fmt: skip
def test_what_cannot_be_staged_is_said_where_it_is_staged(
    serve: Serve, stage: Stage, said: str, path: str | None
) -> None:
    guard, service = serve(executes(), committed())

    def refused(effect: CurrentEffect) -> None:
        effect.stage("orders", {"first": True})
        with pytest.raises(MessageRefused) as raised:
            stage(effect)
        assert said in str(raised.value)
        assert path is None or raised.value.path == path

    with guard.run("booking-42"):
        booker(guard, refused)()
    assert commits(service)[0]["outbox"][0] == {"destination": "orders", "payload": {"first": True}}


def test_a_misspelt_option_is_named(serve: Serve) -> None:
    guard, _ = serve(executes(), committed())

    def stage(effect: CurrentEffect) -> None:
        misspelt: dict[str, Any] = {"lanes": "l"}
        with pytest.raises(TypeError, match=r"no argument .lanes.; did you mean lane\?"):
            effect.stage("orders", {}, **misspelt)

    with guard.run("booking-42"):
        booker(guard, stage)()


def test_a_result_that_is_too_large_beside_its_messages_becomes_opaque_and_they_stay(serve: Serve) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def book() -> str:
        current_effect().stage("orders", "x" * 800_000)
        return "y" * 300_000

    with guard.run("booking-42"):
        book()
    (commit,) = commits(service)
    assert "with the messages that go with it" in commit["result"]["$opaque"]["reason"]
    assert len(commit["outbox"]) == 1
    assert len(msgspec.json.encode(commit)) <= MAX_BYTES


def test_a_result_that_the_service_refuses_goes_without_and_its_messages_stay(serve: Serve) -> None:
    guard, service = serve(executes(), problem("too-large", 413), committed())
    with guard.run("booking-42"):
        booker(guard, lambda it: it.stage("orders", {"n": 1}))()
    first, second = commits(service)
    assert first["outbox"] == second["outbox"] == [{"destination": "orders", "payload": {"n": 1}}]
    assert "$opaque" in second["result"]


def test_a_commit_that_nobody_heard_waits_with_its_messages_and_is_sent_with_them(serve: Serve, tmp_path: Path) -> None:
    guard, service = serve(executes(), spool=tmp_path)
    guard._environment.limits = msgspec.structs.replace(guard._environment.limits, deliver_seconds=0.1)
    book = booker(guard, lambda it: it.stage("orders", {"n": 1}))
    with guard.run("booking-42"):
        grant = executes()
        service.always = lambda it: given(grant, it) if it.path == "/v1/effects" else SILENCE
        book()
        assert files(tmp_path) != []
        service.always = lambda it: replays(14) if it.path == "/v1/effects" else answered(200, {
            **msgspec.json.decode(committed().body), "state": "succeeded"
        })  # fmt: skip
        assert book() == 14
    sent = commits(service)
    assert [it["outbox"] for it in sent] == [[{"destination": "orders", "payload": {"n": 1}}]] * len(sent)
    assert files(tmp_path) == []


def test_the_spool_keeps_messages_byte_for_byte_and_reads_what_earlier_versions_kept(tmp_path: Path) -> None:
    outbox = [{"destination": "orders", "payload": {"n": 1}}]
    body = msgspec.json.encode({"attempt": str(UUID(int=1)), "fence": 1, "result": {"big": "x"}, "outbox": outbox})
    outcome: Undelivered = msgspec.structs.replace(undelivered(1), body=msgspec.Raw(body))
    kept = read(write(Kept(outcome=outcome)) + write(Kept(outcome=undelivered(2))))
    assert [bytes(kept.waiting[UUID(int=n)].outcome.body) for n in (1, 2)] == [body, bytes(undelivered(2).body)]
    smaller = lesser("commit", body, "it is too large")
    assert smaller is not None
    assert msgspec.json.decode(smaller)["outbox"] == outbox
    file = SpoolFile.create(tmp_path)
    file.keep(outcome)
    file.let_go()
    assert body in file.path.read_bytes()


def test_a_batch_carries_messages(serve: Serve) -> None:
    guard, service = serve(executes(), committed())
    with guard.run("booking-42"):
        booker(guard, lambda it: it.stage("orders", {"n": 1}))()
    (commit,) = [request for request in service.requests if request.path.endswith("/commit")]
    assert commit.joins
    both = msgspec.json.decode(batched([commit, Request(method="POST", path="/v1/x")]).body or b"")
    assert both["requests"][0]["body"]["outbox"] == [{"destination": "orders", "payload": {"n": 1}}]
    assert both["requests"][0]["path"] == f"/v1/effects/{KEY}/commit"
