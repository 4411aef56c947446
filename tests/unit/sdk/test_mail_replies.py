"""Replies are read from the service as they came in, and a replay reads the same ones."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import msgspec
import pytest

from tests.unit.sdk.call_logs import head
from tests.unit.sdk.recording import LogService, recorded
from tests.unit.sdk.replays import unsent
from tests.unit.sdk.scripted import ScriptedService, answered, problem
from twiceshy import Guard, GuardUnavailable, MailReply, Recording, RequestRefused, replay
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.replies import AttachmentView, ReplyPage, ReplyView

NOTE = AttachmentView(name="note.txt", content_type="text/plain", size=3)


def view(number: int) -> ReplyView:
    return ReplyView(
        id=UUID(int=number), run="booking-42", thread="room", message=UUID(int=99),
        received_at="2026-10-12T14:00:00.000001Z", message_id=f"<r{number}@x.example>", from_="Ann <ann@x.example>",
        to=("agent@acme.example",), cc=(), subject="Re: Room", date=None, text=f"Yes {number}", html=None,
        automatic=False, cut=False, attachments=(NOTE,),
    )  # fmt: skip


def reply(number: int) -> MailReply:
    return MailReply(
        id=UUID(int=number), thread="room", message=UUID(int=99),
        received_at=datetime(2026, 10, 12, 14, 0, 0, 1, tzinfo=UTC), message_id=f"<r{number}@x.example>",
        sender="Ann <ann@x.example>", to=("agent@acme.example",), cc=(), subject="Re: Room", text=f"Yes {number}",
        html=None, automatic=False, cut=False, attachments=(NOTE,),
    )  # fmt: skip


def page(*numbers: int, cursor: str | None = None) -> Reply:
    made = ReplyPage(items=tuple(map(view, numbers)), next=cursor)
    return answered(200, msgspec.to_builtins(made))


def guard_of(*answers: Reply | NoReply | Callable[[Request], Reply | NoReply]) -> tuple[ScriptedService, Guard]:
    service = ScriptedService(*answers)
    return service, Guard("http://guard.test", transport=service, spool=None)


def asked(service: ScriptedService) -> list[tuple[str, dict[str, list[str]]]]:
    return [(urlsplit(one.path).path, parse_qs(urlsplit(one.path).query)) for one in service.requests]


def test_all_pages_of_a_threads_replies_are_read_in_their_order() -> None:
    service, guard = guard_of(page(1, 2, cursor="c"), page(3))
    with guard, guard.run("booking 42") as run:
        assert run.replies(thread="ro&om") == [reply(1), reply(2), reply(3)]
    path = "/v1/runs/booking%2042/replies"
    assert asked(service) == [
        (path, {"limit": ["500"], "thread": ["ro&om"]}),
        (path, {"limit": ["500"], "thread": ["ro&om"], "after": ["c"]}),
    ]


async def test_the_same_is_read_on_an_event_loop() -> None:
    service, guard = guard_of(page(1))
    async with guard, guard.run("booking-42") as run:
        assert await run.replies_async() == [reply(1)]
    assert asked(service) == [("/v1/runs/booking-42/replies", {"limit": ["500"]})]


def test_a_run_that_the_service_does_not_know_has_no_replies() -> None:
    _, guard = guard_of(problem("not-found", 404))
    with guard, guard.run("booking-42") as run:
        assert run.replies() == []


def test_a_refusal_is_raised() -> None:
    _, guard = guard_of(problem("forbidden", 403))
    with guard, guard.run("booking-42") as run, pytest.raises(RequestRefused, match="booking-42 are not read"):
        run.replies()


def test_silence_is_no_empty_mailbox() -> None:
    _, guard = guard_of(NoReply(reason="connection refused", is_final=True))
    with guard, guard.run("booking-42") as run, pytest.raises(GuardUnavailable, match="Read them again later"):
        run.replies()


class _Mailbox(LogService):
    """A service with one reply."""

    def send(self, request: Request) -> Reply | NoReply:
        """Answer with the reply, or as the service does."""
        return page(1) if "/replies" in request.path else super().send(request)


def test_a_replay_reads_the_replies_that_were_read() -> None:
    service = _Mailbox()
    with recorded(service) as guard, guard.run("booking-42") as run:
        assert run.replies("room") == [reply(1)]
    log = service.events["booking-42"]
    assert service.kinds("booking-42") == ["1 human replies", "2 result of 1"]
    silent = unsent()

    def agent() -> Any:
        with silent.run("booking-42") as again:
            return again.replies("room")

    told = replay(Recording.from_events(head("booking-42", events=len(log)), log, service.blobs), agent)
    assert (told.value, list(told.divergences)) == ([reply(1)], [])
