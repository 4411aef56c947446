"""A model asks again: because its context was compacted, because it re-plans, or because it means it."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.service import ServiceProcess
from twiceshy import Guard, OutcomeInDoubt, RunSuspended, SiblingInDoubt


@pytest.fixture
def guard(service: ServiceProcess) -> Iterator[Guard]:
    with Guard(service.url, spool=None) as guard:
        yield guard


def test_a_compacted_context_that_asks_for_a_message_again_hears_done_at_step_3(guard: Guard, run: str) -> None:
    """NousResearch/hermes-agent#48855."""
    channel: list[str] = []

    @guard.tool(name=f"post-{run}", content=["/text"])
    def post(thread: str, text: str) -> str:
        channel.append(text)
        return f"message {len(channel)}"

    with guard.run(run):
        for number in (1, 2, 3):
            assert not post.answer(f"thread {number}", "hello").is_replay
        again = post.answer("thread 3", "Hi there!")
    assert (again.value, again.step, again.run, again.is_replay) == ("message 3", 3, run, True)
    assert again.said.startswith(f"done at step 3 of run {run}, 2")
    assert channel == ["hello"] * 3


def test_a_message_under_a_business_key_is_not_sent_again_in_a_later_turn(service: ServiceProcess, run: str) -> None:
    """NousResearch/hermes-agent#48855, openclaw#15854: each turn is a run and a process of its own."""
    channel: list[str] = []
    answers = []
    for turn in (1, 2):
        with Guard(service.url, spool=None) as guard:

            @guard.tool(name=f"post-{run}", content=["/text"])
            def post(text: str) -> str:
                channel.append(text)
                return f"message {len(channel)}"

            with guard.run(f"{run}-turn-{turn}"):
                answers.append(post.with_key(business_key=f"{run}-standup").answer(f"standup, turn {turn}"))
    assert [answer.value for answer in answers] == ["message 1", "message 1"]
    assert answers[1].said.startswith(f"done at step 1 of run {run}-turn-1")
    assert channel == ["standup, turn 1"]


def test_on_off_on_switches_three_times(guard: Guard, run: str) -> None:
    light: list[str] = []

    @guard.tool(name=f"switch-{run}", effect="idempotent")
    def switch(way: str) -> str:
        light.append(way)
        return f"the light is {way}"

    with guard.run(run):
        assert [switch(way) for way in ("on", "off", "on")] == [
            "the light is on",
            "the light is off",
            "the light is on",
        ]
    assert light == ["on", "off", "on"]


def test_a_process_that_crashed_before_it_knew_asks_again_and_gets_the_record(
    service: ServiceProcess, run: str
) -> None:
    light: list[str] = []
    for _ in range(2):
        with Guard(service.url, spool=None) as guard:

            @guard.tool(name=f"switch-{run}", effect="idempotent")
            def switch(way: str) -> str:
                light.append(way)
                return way

            with guard.run(run):
                switch("on")
    assert light == ["on"]


@pytest.mark.anyio
async def test_calls_of_one_thing_while_a_slow_one_runs_are_one_execution(guard: Guard, run: str) -> None:
    """google/adk-python#3940 and #3763: the same call several times in parallel."""
    for effect in ("side_effect", "idempotent"):
        world: list[str] = []
        started, go_on = asyncio.Event(), asyncio.Event()

        @guard.tool(name=f"{effect}-{run}", effect="idempotent" if effect == "idempotent" else "side_effect")
        async def book(room: str) -> str:
            world.append(room)  # noqa: B023 - it runs within this turn of the loop
            started.set()  # noqa: B023
            await go_on.wait()  # noqa: B023
            return f"{room} is yours"

        async with guard.run(run):
            calls = [asyncio.ensure_future(book("blue")) for _ in range(5)]
            await started.wait()
            go_on.set()
            assert await asyncio.gather(*calls) == ["blue is yours"] * 5
        assert world == ["blue"]


@pytest.mark.anyio
async def test_identical_calls_of_one_message_share_one_execution_and_meant_ones_all_run(
    guard: Guard, run: str
) -> None:
    """langchain-ai/langchain#38708: several identical parallel calls in one message."""
    world: list[str] = []

    @guard.tool(name=f"order-{run}")
    async def order(what: str) -> int:
        world.append(what)
        return len(world)

    async with guard.run(run):
        assert await asyncio.gather(*[order("tea") for _ in range(3)]) == [1, 1, 1]
        meant = [order.with_key(occurrence=number)("cake") for number in (1, 2, 3)]
        assert sorted(await asyncio.gather(*meant)) == [2, 3, 4]
    assert world == ["tea", "cake", "cake", "cake"]


def test_a_repeat_that_the_tool_allows_runs_each_time(guard: Guard, run: str) -> None:
    world: list[str] = []

    @guard.tool(name=f"ring-{run}", repeat="allow")
    def ring(bell: str) -> int:
        world.append(bell)
        return len(world)

    with guard.run(run):
        assert [ring("front"), ring("front")] == [1, 2]


def test_a_rephrased_retry_while_the_first_is_in_doubt_does_not_run(guard: Guard, run: str) -> None:
    world: list[str] = []

    @guard.tool(name=f"send-{run}", on_doubt="tell")
    def send(text: str) -> str:
        world.append(text)
        if len(world) == 1:
            raise TimeoutError("no answer from the mail server")
        return text

    with guard.run(run):
        with pytest.raises(OutcomeInDoubt):
            send("Hello Bob")
        with pytest.raises(SiblingInDoubt, match=r"with_key\(distinct=True\)"):
            send("Hi Bob")
        assert world == ["Hello Bob"]
        assert send.with_key(distinct=True)("Hello Eve") == "Hello Eve"
        assert send("Hello Eve") == "Hello Eve"
    assert world == ["Hello Bob", "Hello Eve"]


def test_a_framework_that_catches_and_calls_again_does_not_charge_twice(guard: Guard, run: str) -> None:
    """crewAIInc/crewAI#7449, powertools#8049: an inner `except Exception` re-invokes the tool, twice an attempt."""
    world: list[int] = []

    @guard.tool(name=f"charge-{run}")
    def charge(cents: int) -> int:
        world.append(cents)
        raise TimeoutError("the bank did not answer in time")

    def invoked() -> int:
        try:
            return charge(500)
        except Exception:  # noqa: BLE001 - as the framework does it
            return charge(500)

    for _ in range(3):
        with guard.run(run), pytest.raises(RunSuspended):
            invoked()
    assert world == [500]


@pytest.mark.anyio
async def test_a_caller_that_gave_up_does_not_stop_the_tool_whose_late_result_is_the_record(
    guard: Guard, run: str
) -> None:
    """modelcontextprotocol/python-sdk#2507 and #1458: a client's time-out sends no cancel."""
    world: list[str] = []
    started, go_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @guard.tool(name=f"deploy-{run}")
    async def deploy(app: str) -> str:
        world.append(app)
        started.set()
        await go_on.wait()
        return f"{app} is live"

    async def served() -> str:
        async with guard.run(run):
            try:
                return await deploy("shop")
            finally:
                ended.set()

    server = asyncio.ensure_future(served())
    await started.wait()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(server), 0.01)
    go_on.set()
    await ended.wait()
    async with guard.run(run):
        answer = await deploy.answer_async("shop")
    assert (answer.value, answer.is_replay) == ("shop is live", True)
    assert world == ["shop"]


@pytest.mark.anyio
async def test_a_time_out_inside_the_tool_is_unknown_and_the_late_success_heals_it(
    guard: Guard, service: ServiceProcess, run: str
) -> None:
    """modelcontextprotocol/python-sdk#1458: the other side went on, and its word comes late."""

    @guard.tool(name=f"deploy-{run}")
    async def deploy(app: str) -> str:
        async with asyncio.timeout(0):
            await asyncio.sleep(60)
        return app

    async with guard.run(run):
        with pytest.raises(RunSuspended) as caught:
            await deploy("shop")
        effect = caught.value.effect
        late = {"attempt": str(effect.attempt), "fence": effect.fence, "result": "shop is live"}
        assert service.ask("POST", f"/v1/effects/{effect.key}/commit", late).body["state"] == "succeeded"
        assert await deploy("shop") == "shop is live"
