"""On, off, on: what the agent knows of an idempotent tool makes the same call another intent."""

import asyncio
import os
import signal
from collections.abc import Callable

import msgspec
import pytest

from tests.unit.sdk.scripted import Answer, ScriptedService, about, answered, problem
from twiceshy import Guard, InProgress, Tool
from twiceshy._delivered import Deliveries, Known
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.wire import EffectKey

Serve = Callable[..., tuple[Guard, ScriptedService]]
ON, OFF, ON_AGAIN = "a1" * 32, "b2" * 32, "c3" * 32


def grants(key: str, run: str | None = "house-1") -> Answer:
    """Grant the lease of the effect with this key."""

    def grant(request: Request) -> Reply:
        attempt = msgspec.json.decode(request.body or b"")["attempt"]
        body = about(decision="execute", key=key, run=run, attempt=attempt, arguments=None, downstream_key="d0" * 32,
                     lease_seconds_left=30.0)  # fmt: skip
        return answered(201, body)

    return grant


def record(key: str, result: object = None, run: str | None = "house-1", **more: object) -> Reply:
    body = about(decision="replay", key=key, run=run, state="succeeded", outcome={"result": result},
                 committed_at="2026-10-12T14:00:01Z", repeat_of={"run": run, "step": 1}, **more)  # fmt: skip
    return answered(200, body)


def done(key: str) -> Reply:
    return answered(200, about(key=key, state="succeeded"))


def house(service: ScriptedService, guard: Guard) -> tuple[Tool[[str], str], list[str]]:
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})
    turned: list[str] = []

    @guard.tool(effect="idempotent")
    def turn(way: str) -> str:
        turned.append(way)
        return way

    return turn, turned


def delivered(service: ScriptedService) -> list[object]:
    """What each begin said was delivered."""
    return [body.get("delivered", []) for body in service.bodies("/v1/effects")]


def test_each_outcome_is_told_with_the_next_begin_of_its_run_and_once(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), grants(OFF), done(OFF), grants(ON_AGAIN), done(ON_AGAIN))
    turn, turned = house(service, guard)
    with guard.run("house-1"):
        for way in ("on", "off", "on"):
            turn(way)
    assert turned == ["on", "off", "on"]
    assert delivered(service) == [[], [ON], [OFF]]


def test_another_run_is_told_nothing(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), grants(OFF, "house-2"), done(OFF))
    turn, _ = house(service, guard)
    with guard.run("house-1"):
        turn("on")
    with guard.run("house-2"):
        turn("on")
    assert delivered(service) == [[], []]


def test_it_is_told_again_until_a_begin_is_answered(serve: Serve) -> None:
    lost = NoReply(reason="connection reset")
    guard, service = serve(grants(ON), done(ON), lost, problem("in-progress"), grants(OFF), done(OFF))
    turn, _ = house(service, guard)
    with guard.run("house-1"):
        turn("on")
        turn("off")
    assert delivered(service) == [[], [ON], [ON], [ON]]


def test_a_problem_may_come_before_the_service_has_listened(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), problem("in-progress"), grants(OFF), done(OFF))
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})

    @guard.tool(effect="idempotent", wait_seconds=0)
    def turn(way: str) -> str:
        return way

    with guard.run("house-1"):
        turn("on")
        with pytest.raises(InProgress):
            turn("off")
        turn("off")
    assert delivered(service) == [[], [ON], [ON]]


def test_the_outcomes_of_side_effects_are_not_told(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), grants(OFF), done(OFF))

    @guard.tool
    def pay(amount: int) -> int:
        return amount

    with guard.run("house-1"):
        pay(1)
        pay(2)
    assert delivered(service) == [[], []]


def test_what_a_step_or_a_business_key_names_stays_one_intent(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), record(ON, "on"), grants(OFF), done(OFF), record(OFF, "on"))
    turn, turned = house(service, guard)
    with guard.run("house-1"):
        for tool in (turn.with_key(step=1), turn.with_key(business_key="winter")):
            tool("on")
            tool("on")
    assert turned == ["on", "on"]
    assert delivered(service) == [[], [], [], []]


def test_a_record_that_the_agent_had_before_it_called_is_not_the_answer_to_its_call(serve: Serve) -> None:
    """The service did not know that the outcome was delivered, because it came there late, from the spool."""
    guard, service = serve(
        grants(ON), done(ON), grants(OFF), done(OFF), record(ON, "on"), grants(ON_AGAIN), done(ON_AGAIN)
    )
    turn, turned = house(service, guard)
    with guard.run("house-1"):
        for way in ("on", "off", "on"):
            turn(way)
    assert turned == ["on", "off", "on"]
    assert delivered(service) == [[], [ON], [OFF], [ON]]


def test_a_service_that_keeps_to_its_record_is_believed(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), record(ON, "on"))
    turn, turned = house(service, guard)
    with guard.run("house-1"):
        assert [turn("on"), turn("on")] == ["on", "on"]
    assert turned == ["on"]
    assert delivered(service) == [[], [ON]]


@pytest.mark.anyio
async def test_calls_that_were_made_at_the_same_time_get_one_outcome(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), record(ON, "on"))
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})
    both, first_is_back = asyncio.Event(), asyncio.Event()
    turned: list[str] = []

    @guard.tool(effect="idempotent")
    async def turn(way: str) -> str:
        turned.append(way)
        return way

    async def hold(request: Request) -> None:
        """Let the second begin be asked for after the first call's outcome has reached the agent."""
        if request.path.endswith("/effects"):
            if both.is_set():
                await first_is_back.wait()
            both.set()

    service.holding = hold

    async def first() -> str:
        way = await turn("on")
        first_is_back.set()
        return way

    async with guard.run("house-1"):
        assert list(await asyncio.gather(first(), turn("on"))) == ["on", "on"]
    assert turned == ["on"]


@pytest.mark.anyio
async def test_an_outcome_that_a_cancelled_caller_never_got_is_not_delivered(serve: Serve) -> None:
    guard, service = serve(grants(ON), done(ON), record(ON, "on"))
    service.declaration = answered(200, {"declaration": {"class": "idempotent"}})
    committing, go_on = asyncio.Event(), asyncio.Event()

    @guard.tool(effect="idempotent")
    async def turn(way: str) -> str:
        return way

    async def hold(request: Request) -> None:
        if request.path.endswith("/commit"):
            committing.set()
            await go_on.wait()

    service.holding = hold
    async with guard.run("house-1"):
        call = asyncio.ensure_future(turn("on"))
        await committing.wait()
        call.cancel()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await turn("on") == "on"
    assert delivered(service) == [[], []]


def test_the_memory_is_bounded_and_forgets_the_oldest_first() -> None:
    deliveries = Deliveries()
    for number in range(1002):
        deliveries.give(f"run-{number}", EffectKey("a"))
        deliveries.give("busy", EffectKey(f"{number:064x}"))
    assert deliveries.known("run-0").untold == ()
    assert deliveries.known("run-1001").untold == ("a",)
    assert len(deliveries.known("busy").untold) == 1000
    assert deliveries.known("busy").untold[0] == f"{2:064x}"
    assert deliveries.known(None) == Known(moment=2004)


def test_a_forked_child_does_not_wait_for_what_a_thread_of_its_parent_was_doing() -> None:
    deliveries = Deliveries()
    deliveries.give("house-1", EffectKey(ON))
    with deliveries._lock:
        child = os.fork()
        if not child:
            signal.alarm(10)
            os._exit(0 if deliveries.known("house-1").untold == (ON,) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
