"""Runs recorded through the SDK over HTTP: what the log holds, two writers, children, and a replay of it all."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.service import ServiceProcess
from twiceshy import Guard, RunFinished, RunTakenOver
from twiceshy._replay import replay
from twiceshy_contract.events import Delivery, Intent


@pytest.fixture
def guard(service: ServiceProcess) -> Iterator[Guard]:
    with Guard(service.url, spool=None, record=True) as guard:
        yield guard


def log_of(guard: Guard, run: str) -> list[str]:
    with guard.recording(run) as recording:
        return [
            f"{event.kind} {event.name}" if isinstance(event, Intent) else f"{event.outcome} of {event.intent}"
            for event in recording.events
        ]


def test_a_run_is_recorded_and_replays(guard: Guard, run: str) -> None:
    paid: list[int] = []
    asked: list[str] = []

    @guard.tool
    def pay(amount: int) -> dict[str, int]:
        paid.append(amount)
        return {"paid": amount}

    @guard.tool(effect="read")
    def look(code: str) -> list[str]:
        return []

    def model(*, model: str, messages: list[dict[str, str]]) -> dict[str, str]:
        asked.append(messages[-1]["content"])
        return {"role": "assistant", "content": "ok " * 500}

    def agent() -> dict[str, Any]:
        with guard.run(run, workflow="contracts", model="m-1", input={"contract": "C-1"}) as here:
            messages = [{"role": "user", "content": f"{here.input['contract']} " * 300}]
            for _ in range(3):
                messages.append(here.llm(model, model="m-1", messages=messages))
                messages.append({"role": "user", "content": "go on " * 200})
            return {"look": look("GB"), "pay": pay(3), "at": here.now(), "id": here.uuid4()}

    told = agent()
    assert log_of(guard, run) == [
        "llm_call m-1", "result of 1", "llm_call m-1", "result of 3", "llm_call m-1", "result of 5",
        "tool_call look", "result of 7", "tool_call pay", "result of 9",
        "time now", "result of 11", "uuid uuid4", "result of 13",
    ]  # fmt: skip
    with guard.recording(run) as recording:
        look_up, payment = recording.events[7], recording.events[9]
        assert isinstance(look_up, Delivery)
        assert isinstance(payment, Delivery)
        assert (look_up.empty, payment.step, payment.effect is not None) == (True, 1, True)
        replayed = replay(recording, agent)
    assert (replayed.value, replayed.is_same) == (told, True)
    assert (paid, len(asked)) == ([3], 3)


def test_two_live_writers_of_one_run(service: ServiceProcess, run: str) -> None:
    with Guard(service.url, spool=None, record=True) as old, Guard(service.url, spool=None, record=True) as new:
        ran: list[str] = []

        @old.tool(name="pay")
        def pay(order: str) -> str:
            ran.append(order)
            if order == "A-1":
                with new.run(run) as taken:
                    taken.random()
            return f"paid {order}"

        with old.run(run) as here:
            assert pay("A-1") == "paid A-1"
            with pytest.raises(RunTakenOver, match="recorded by its writer of epoch 2, not by that of 1"):
                pay("A-2")
            with pytest.raises(RunTakenOver):
                here.now()
        with new.run(run):
            assert log_of(new, run) == ["tool_call pay", "random random", "result of 2"]
    assert ran == ["A-1"]
    effect = service.ask("GET", f"/v1/effects?run={run}").body["items"]
    assert [(item["tool"], item["state"]) for item in effect] == [("pay", "succeeded")]


def test_an_older_writer_hears_of_it_when_it_appends(service: ServiceProcess, run: str) -> None:
    with Guard(service.url, spool=None, record=True) as old, old.run(run) as here:
        service.ask("POST", "/v1/runs", {"run": run, "record": True})
        here.random()
        writer = here.writer
        assert writer is not None
        assert writer.flush(10)
        with pytest.raises(RunTakenOver):
            here.random()


def test_a_finished_run_is_recorded_no_more(guard: Guard, run: str) -> None:
    with guard.run(run, finish=True) as here:
        here.random()
    with pytest.raises(RunFinished, match="Record under another name"):
        guard.run(run).__enter__()
    assert len(log_of(guard, run)) == 2


def test_children_are_runs_with_their_parent(guard: Guard, service: ServiceProcess, run: str) -> None:
    def review(contract: str) -> str:
        guard.current_run().random()
        return contract.lower()

    with guard.run(run) as here:
        here.child("review", review, "C-1")
    child = service.ask("GET", f"/v1/runs/{run}.review").body
    assert (child["parent"], child["events"]) == (run, 2)
    with guard.recording(run) as recording:
        delivery = recording.events[1]
        assert isinstance(delivery, Delivery)
        assert delivery.child is not None
        assert (delivery.child.run, delivery.child.events) == (f"{run}.review", 2)


@pytest.mark.anyio
async def test_many_agents_record_at_once(service: ServiceProcess, run: str) -> None:
    async def step(number: int) -> int:
        await asyncio.sleep(0)
        return number

    async with Guard(service.url, spool=None, record=True) as guard:

        async def agent(name: str) -> None:
            async with guard.run(name) as here:
                await here.gather(*(here.custom("step", step, number) for number in range(20)))

        await asyncio.gather(*(agent(f"{run}-{number}") for number in range(20)))
        heads = await asyncio.to_thread(
            lambda: [service.ask("GET", f"/v1/runs/{run}-{number}").body["events"] for number in range(20)]
        )
    assert heads == [40] * 20


def test_a_conversation_that_sends_itself_again_is_read_whole_at_every_turn(guard: Guard, run: str) -> None:
    messages: list[dict[str, str]] = []

    def model(*, messages: list[dict[str, str]]) -> dict[str, str]:
        return {"role": "assistant", "content": f"answer {len(messages)} " * 100}

    with guard.run(run) as here:
        for turn in range(40):
            messages.append({"role": "user", "content": f"question {turn} " * 100})
            messages.append(here.llm(model, messages=messages))
    with guard.recording(run) as recording:
        for turn in (0, 20, 39):
            intent = recording.events[2 * turn]
            assert isinstance(intent, Intent)
            assert recording.arguments(intent)["messages"] == messages[: 2 * turn + 1]
