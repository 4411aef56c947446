"""A child run has a name that comes from its place, a log of its own, and one outcome in its parent's."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.unit.sdk.recording import LogService, deliveries, recorded
from tests.unit.sdk.test_streams import recording
from twiceshy import Guard, NoRun, SetupError
from twiceshy._child_names import child_name
from twiceshy._replay import replay, replay_async
from twiceshy_contract.events import ChildHead


@pytest.fixture
def service() -> LogService:
    return LogService()


@pytest.fixture
def guard(service: LogService) -> Iterator[Guard]:
    with recorded(service) as guard:
        yield guard


def test_a_child_has_its_own_log_and_its_parent_pins_its_head(service: LogService, guard: Guard) -> None:
    def review(contract: str) -> str:
        guard.current_run().random()
        return contract.lower()

    with guard.run("r1") as run:
        assert run.child("review", review, "C-1") == "c-1"
        assert guard.current_run() is run
    with pytest.raises(NoRun, match="No run of this guard is open here"):
        guard.current_run()
    assert service.kinds("r1") == ["1 child_run review", "2 result of 1"]
    assert service.kinds("r1.review") == ["1 random random", "2 result of 1"]
    (delivery,) = deliveries(service, "r1")
    assert delivery.child == ChildHead(run="r1.review", events=2)
    assert [(asked.run, asked.parent) for asked in service.opened] == [("r1", None), ("r1.review", "r1")]


def test_guarded_calls_inside_belong_to_the_child(service: LogService, guard: Guard) -> None:
    @guard.tool
    def pay(amount: int) -> int:
        return amount

    with guard.run("r1") as run:
        run.child("pay", pay, 3)
    assert service.kinds("r1.pay") == ["1 tool_call pay", "2 result of 1"]


def test_children_of_one_name_and_in_scopes_are_told_apart(service: LogService, guard: Guard) -> None:
    def work(part: int) -> int:
        return part

    with guard.run("r1") as run:
        for part in (1, 2):
            run.child("work", work, part)
        with run.scope("night"):
            run.child("work", work, 3)
            with run.scope("late"):
                run.child("work", work, 4)
        run.random()
    runs = [asked.run for asked in service.opened]
    assert runs == ["r1", "r1.work", "r1.work~2", "r1.night:work", "r1.night:late:work"]
    scopes = [event.scope for event in service.events["r1"] if hasattr(event, "scope")]
    assert scopes == ["", "", "night", "night/late", ""]


def test_children_have_children(service: LogService, guard: Guard) -> None:
    def inner() -> str:
        return "done"

    def outer() -> str:
        with guard.current_run().scope("inside"):
            return guard.current_run().child("inner", inner)

    with guard.run("r1") as run, run.scope("night"):
        assert run.child("outer", outer) == "done"
    runs = [(asked.run, asked.parent) for asked in service.opened]
    assert runs[:2] == [("r1", None), ("r1.night:outer", "r1")]
    assert runs[2][0].startswith("r1.night:outer.inside:inner")
    assert runs[2][1] == "r1.night:outer"


def test_a_child_that_raises_is_one_error_of_its_parent(service: LogService, guard: Guard) -> None:
    def fail() -> None:
        raise ValueError("no")

    def agent() -> str:
        with guard.run("r1") as run:
            try:
                run.child("fail", fail)
            except ValueError as error:
                return str(error)
        return ""

    assert agent() == "no"
    assert service.kinds("r1") == ["1 child_run fail", "2 error of 1"]
    assert replay(recording(service), agent).value == "no"


def test_a_replay_serves_a_childs_outcome_without_running_it(service: LogService, guard: Guard) -> None:
    ran: list[str] = []

    def review(contract: str) -> str:
        ran.append(contract)
        return contract.lower()

    def agent() -> str:
        with guard.run("r1") as run:
            return run.child("review", review, "C-1")

    agent()
    replayed = replay(recording(service), agent)
    assert (replayed.value, replayed.is_same, ran) == ("c-1", True, ["C-1"])


@pytest.mark.anyio
async def test_children_run_side_by_side_on_an_event_loop(service: LogService, guard: Guard) -> None:
    async def work(part: int) -> int:
        guard.current_run().random()
        await asyncio.sleep(0)
        return part

    async def agent() -> list[int]:
        async with guard.run("r1") as run:
            return await run.gather(*(run.child("work", work, part) for part in (1, 2, 3)))

    assert await agent() == [1, 2, 3]
    assert sorted(service.events) == ["r1", "r1.work", "r1.work~2", "r1.work~3"]
    assert {len(service.events[run]) for run in service.events if run != "r1"} == {2}
    replayed = await replay_async(recording(service), agent)
    assert (replayed.value, replayed.is_same) == ([1, 2, 3], True)


def test_a_child_of_a_run_that_is_not_recorded_is_a_run_of_its_own(service: LogService) -> None:
    guard = Guard("http://guard.test", transport=service, spool=None)

    @guard.tool
    def pay(amount: int) -> int:
        return amount

    with guard.run("r1") as run:
        assert [run.child("pay", pay, 3), run.child("pay", pay, 3)] == [3, 3]
    assert [body["run"] for body in service.bodies("/v1/effects")] == ["r1.pay", "r1.pay~2"]
    assert service.opened == []


@pytest.mark.parametrize("name", ["", "a/b", "x" * 201])
def test_what_is_no_name_is_refused(guard: Guard, name: str) -> None:
    with guard.run("r1") as run:
        with pytest.raises(SetupError, match="The child"):
            run.child(name, str)
        with pytest.raises(SetupError, match="The scope"), run.scope(name):
            pass


def test_a_scope_that_is_too_deep_is_refused(guard: Guard) -> None:
    with guard.run("r1") as run, run.scope("x" * 200), run.scope("y" * 200):
        too_deep = run.scope("z" * 200)
        with pytest.raises(SetupError, match="its path has more than 500 characters"):
            too_deep.__enter__()


def test_names_that_are_long_or_could_be_another_childs_carry_a_digest() -> None:
    assert child_name("p", "", "a", 1) == "p.a"
    names = {
        child_name("p", "a", "b", 1),
        child_name("p", "", "a:b", 1),
        child_name("p", "", "a", 2),
        child_name("p", "", "a~2", 1),
        child_name("p.a", "", "b", 1),
        child_name("p", "", "a.b", 1),
    }
    assert len(names) == 6
    long = {child_name("p" * 200, "", f"child-{number}", 1) for number in range(3)}
    assert len(long) == 3
    assert all(len(name) <= 200 for name in long)
