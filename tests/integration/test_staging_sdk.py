"""Messages as an agent stages them through the SDK, against a real service: stage-only tools and `effect.stage`."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.staging import HOOK, MAIL, act, declared, shown, staged
from tests.service import ServiceProcess
from twiceshy import (
    ApprovalAwaited,
    Compensation,
    ForkSuspended,
    Guard,
    Mail,
    Rejected,
    RequestRefused,
    Staged,
    Tool,
    current_effect,
    replay,
)
from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy._transports.connect import connect


class Away:
    """A way to the service that can be cut: before a request arrives, or before its answer does."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self.loses: Callable[[Request], bool] = lambda _: False
        self.is_cut = False

    def send(self, request: Request) -> Reply | NoReply:
        if self.is_cut:
            return NoReply(reason="cut")
        reply = self._inner.send(request)
        return NoReply(reason="lost") if self.loses(request) else reply

    async def send_async(self, request: Request) -> Reply | NoReply:
        return await asyncio.to_thread(self.send, request)

    def close(self) -> None:
        self._inner.close()

    async def close_async(self) -> None:
        await self._inner.close_async()


@pytest.fixture
def away(service: ServiceProcess) -> Away:
    return Away(connect(service.url, None))


@pytest.fixture
def guard(service: ServiceProcess, away: Away, tmp_path: Path) -> Iterator[Guard]:
    with Guard(
        service.url, transport=away, spool=tmp_path / "spool", unavailable_seconds=2, deliver_seconds=0.2
    ) as made:
        yield made


@pytest.fixture
def hook(service: ServiceProcess) -> str:
    """A destination that is paused: what is staged for it waits."""
    name = declared(service, HOOK)
    act(service, name, "pause")
    return name


def announcing(guard: Guard, hook: str, made: list[int], **options: Any) -> Tool[[int], Staged]:
    """Make a stage-only tool that notes each making of its messages."""

    def announce(order: int) -> dict[str, object]:
        made.append(order)
        return {"order": order}

    tool: Tool[[int], Staged] = guard.tool(sink=hook, name=f"announce-{hook}", **options)(announce)
    return tool


def bodies(service: ServiceProcess, run: str) -> list[str]:
    """The bodies of what a run has staged, oldest first."""
    return [shown(service, line["id"])["body"] for line in staged(service, run)]


def test_a_stage_only_tool_stages_once_and_is_answered_from_the_record_then(
    guard: Guard, service: ServiceProcess, hook: str, run: str
) -> None:
    made: list[int] = []
    announce = announcing(guard, hook, made)
    with guard.run(run):
        first, again, other = announce(7), announce(7), announce(8)
    assert (first.is_replay, again.is_replay, other.is_replay) == (False, True, False)
    assert (again.key, again.messages) == (first.key, first.messages)
    assert (made, bodies(service, run)) == ([7, 7, 8], ['{"order":7}', '{"order":8}'])
    effect = service.ask("GET", f"/v1/effects/{first.key}").body
    assert (effect["state"], effect["messages"]) == ("succeeded", [str(id_) for id_ in first.messages])


def test_mail_makes_a_row_for_every_recipient_in_order(guard: Guard, service: ServiceProcess, run: str) -> None:
    mail = declared(service, MAIL)
    act(service, mail, "pause")

    @guard.tool(sink=mail, name=f"confirm-{mail}")
    async def confirm(to: str, subject: str, text: str, cc: list[str]) -> None: ...

    async def main() -> Staged:
        async with guard.run(run):
            return await confirm("ann@example.com", "Booked", "See you.", ["bob@example.com"])

    sent = asyncio.run(main())
    lines = [shown(service, str(id_)) for id_ in sent.messages]
    assert [line["recipient"] for line in lines] == ["ann@example.com", "bob@example.com"]
    assert {line["state"] for line in lines} == {"pending"}


def test_an_answer_that_was_lost_stages_nothing_twice(
    guard: Guard, service: ServiceProcess, away: Away, hook: str, run: str
) -> None:
    lost: list[Request] = []

    def loses(request: Request) -> bool:
        is_first = request.path == "/v1/outbox" and not lost
        if is_first:
            lost.append(request)
        return is_first

    away.loses = loses
    with guard.run(run):
        sent = announcing(guard, hook, [])(7)
    assert len(lost) == 1
    assert [line["id"] for line in staged(service, run)] == [str(id_) for id_ in sent.messages]


def test_a_person_who_edits_gets_messages_of_the_edited_arguments(
    guard: Guard, service: ServiceProcess, hook: str, run: str
) -> None:
    made: list[int] = []
    announce = announcing(guard, hook, made, approval=True)
    with pytest.raises(ApprovalAwaited) as waiting, guard.run(run):
        announce(7)
    assert bodies(service, run) == []
    decided = service.ask(
        "POST",
        f"/v1/approvals/{waiting.value.approval}/decide",
        {"verdict": "approve", "by": "bob", "arguments": {"order": 9}},
    )
    assert decided.status == 200, decided.body
    with guard.run(run):
        assert announce(7).is_replay is False
        assert announce(7).is_replay is True
    assert (made, bodies(service, run)) == ([7, 7, 9, 7], ['{"order":9}'])


def test_a_fork_is_given_what_was_staged_and_stages_nothing(
    guard: Guard, service: ServiceProcess, hook: str, run: str
) -> None:
    announce = announcing(guard, hook, [])
    with guard.run(run):
        first = announce(7)
    with guard.run(f"{run}-f", fork_of=run, at=1):
        again = announce(7)
        assert (again.messages, again.is_replay) == (first.messages, True)
        with pytest.raises(ForkSuspended):
            announce(8)
    assert len(staged(service, run)) == 1
    assert staged(service, f"{run}-f") == []


def test_a_replay_of_a_recorded_run_stages_nothing(guard: Guard, service: ServiceProcess, hook: str, run: str) -> None:
    made: list[int] = []
    announce = announcing(guard, hook, made)

    @guard.tool(name=f"book-{run}")
    def book(order: int) -> int:
        current_effect().stage(hook, {"booked": order})
        return order

    def agent() -> tuple[Staged, int]:
        with guard.run(run, record=True):
            return announce(7), book(7)

    came_to = agent()
    assert bodies(service, run) == ['{"order":7}', '{"booked":7}']
    with guard.recording(run) as recording:
        again = replay(recording, agent)
    assert (again.value, made) == (came_to, [7])
    assert len(staged(service, run)) == 2


def test_a_destination_that_is_not_there_is_refused_with_what_was_meant(guard: Guard, hook: str, run: str) -> None:
    made: list[int] = []
    with pytest.raises(RequestRefused, match=f"did you mean {hook}"), guard.run(run):
        announcing(guard, f"{hook}x", made)(7)


def test_what_a_tool_stages_goes_with_its_outcome_or_not_at_all(
    guard: Guard, service: ServiceProcess, hook: str, run: str
) -> None:
    @guard.tool(name=f"book-{run}", deadline_seconds=0, one_request=True)
    def book(room: int) -> int:
        effect = current_effect()
        effect.stage(hook, {"room": room}, type="room.booked", lane="rooms")
        effect.stage("nowhere", Mail(to="ann@example.com", subject="Booked", text="See you."))
        if room == 13:
            raise ConnectionRefusedError
        return room

    with guard.run(run):
        assert (book(1), book(1)) == (1, 1)
        with pytest.raises(ConnectionRefusedError):
            book(13)
    lines = staged(service, run)
    assert [(line["destination"], line["type"], line["lane"], line["state"]) for line in lines] == [
        (hook, "room.booked", "rooms", "pending"),
        ("nowhere", None, None, "parked"),
    ]


def test_an_outcome_that_waited_in_the_spool_brings_its_messages_once(
    guard: Guard, service: ServiceProcess, away: Away, hook: str, run: str
) -> None:
    @guard.tool(name=f"book-{run}", lease_seconds=1)
    async def book(room: int) -> int:
        current_effect().stage(hook, {"room": room})
        away.is_cut = True
        return room

    async def main() -> int:
        async with guard.run(run):
            return await book(7)

    assert asyncio.run(main()) == 7
    assert bodies(service, run) == []
    away.is_cut = False
    with guard.run(run):
        announcing(guard, hook, [])(1)  # whatever is called next sends what waits first
    assert sorted(bodies(service, run)) == ['{"order":1}', '{"room":7}']


def test_a_saga_that_fails_stages_what_takes_its_steps_back(
    guard: Guard, service: ServiceProcess, hook: str, run: str
) -> None:
    made: list[int] = []
    apologise = announcing(guard, hook, made)
    order = "${arguments.order}"

    @guard.tool(name=f"order-{run}", compensation=Compensation(tool=apologise.name, arguments={"order": order}))
    def place(order: int) -> int:
        return order

    def trip() -> None:
        with guard.saga(run):
            place(7)
            raise Rejected("sold out")

    with pytest.raises(Rejected):
        trip()
    assert (made, bodies(service, run)) == ([7], ['{"order":7}'])
    assert service.ask("GET", f"/v1/sagas/{run}").body["state"] == "compensated"


def test_a_recorded_run_that_ended_by_a_refused_staging_goes_on_once_the_destination_is_declared(
    service: ServiceProcess, run: str
) -> None:
    sink = f"late-{run}"

    def agent(guard: Guard) -> tuple[object, Staged]:
        with guard.run(run, record=True, resume=True) as going:
            return going.now(), announcing(guard, sink, [])(7)

    for _ in range(2):
        with Guard(service.url, spool=None) as refused, pytest.raises(RequestRefused, match="no destination is named"):
            agent(refused)
    assert service.ask("PUT", f"/v1/destinations/{sink}", HOOK).status == 200
    with Guard(service.url, spool=None) as guard:
        now, sent = agent(guard)
        assert not sent.is_replay
        again, record = agent(guard)
        assert (again, record.messages) == (now, sent.messages)


def test_a_refused_staging_that_the_code_went_on_from_stays_what_it_was(service: ServiceProcess, run: str) -> None:
    sink = f"late-{run}"

    def agent(guard: Guard) -> str:
        with guard.run(run, record=True, resume=True) as going:
            try:
                announcing(guard, sink, [])(7)
            except RequestRefused:
                going.now()
                return "told nobody"
            return "told"

    with Guard(service.url, spool=None) as guard:
        assert agent(guard) == "told nobody"
        assert service.ask("PUT", f"/v1/destinations/{sink}", HOOK).status == 200
        assert agent(guard) == "told nobody"
