"""A program runs the same fork again and again, and each of its calls meets what it was given before."""

from collections.abc import Callable, Iterator
from typing import Unpack

import pytest

from tests.integration.fork_driver import Driver
from tests.integration.forks import Recorded, said
from tests.service import ServiceProcess
from twiceshy import ForkSuspended, Guard, ToolOptions


class Program:
    """An agent that pays three times, and what really ran of it. A new process has a guard of its own."""

    def __init__(self, service: ServiceProcess, run: str) -> None:
        self.service = service
        self.run = run
        self.ran: list[str] = []
        self.guards: list[Guard] = []

    def payer(self, **options: Unpack[ToolOptions]) -> tuple[Guard, Callable[[str], str]]:
        """Start a process."""
        options.setdefault("repeat", "allow")
        guard = Guard(self.service.url)
        self.guards.append(guard)

        def pay(to: str) -> str:
            self.ran.append(to)
            return f"paid {to} ({len(self.ran)})"

        options["name"] = f"pay-{self.run}"
        return guard, guard.tool(**options)(pay)

    def record(self, *names: str, **options: Unpack[ToolOptions]) -> None:
        """Run the agent for the first time."""
        guard, pay = self.payer(**options)
        with guard.run(self.run):
            for name in names:
                pay(name)
        self.ran.clear()

    def passes(self, answer: dict[str, str], *names: str, **options: Unpack[ToolOptions]) -> list[str]:
        """Run a fork until nothing stops it any more; return what its last pass was given."""
        for stops in range(10):
            guard, pay = self.payer(**options)
            try:
                with guard.run(f"{self.run}-f", fork_of=self.run, at=0):
                    return [str(stops), *(pay(name) for name in names)]
            except ForkSuspended as suspended:
                outcome = {"result": f"answer {stops}"}
                more: dict[str, object] = {"outcome": outcome} if answer["answer"] == "inject" else {}
                path = f"/v1/runs/{self.run}-f/pauses/{suspended.pause}"
                assert self.service.ask("POST", path, {**answer, **more}).status == 200
        raise AssertionError("the fork stops again and again")


@pytest.fixture
def program(service: ServiceProcess, run: str) -> Iterator[Program]:
    """A program on the service."""
    made = Program(service, run)
    yield made
    for guard in made.guards:
        guard.close()


INJECT = {"answer": "inject"}
ALLOW = {"answer": "allow", "reason": "ours to pay"}


def test_each_call_of_a_tool_that_may_repeat_is_answered_once_however_often_the_fork_is_run(program: Program) -> None:
    program.record("zoe")
    given = program.passes(INJECT, "a", "b", "a")
    assert given == ["3", "answer 0", "answer 1", "answer 2"]
    assert program.passes(INJECT, "a", "b", "a") == ["0", *given[1:]]
    assert program.ran == []


def test_a_call_that_a_person_let_run_runs_in_one_pass_only(program: Program) -> None:
    program.record("zoe")
    assert program.passes(ALLOW, "a", "b", "a") == ["3", "paid a (1)", "paid b (2)", "paid a (3)"]
    assert program.passes(ALLOW, "b", "a", "a") == ["0", "paid b (2)", "paid a (1)", "paid a (3)"]
    assert program.ran == ["a", "b", "a"]


@pytest.mark.parametrize("options", [{}, {"effect": "idempotent", "repeat": "replay"}])
def test_the_record_answers_each_pass_alike_and_only_what_it_has_not_stops_the_fork(
    program: Program, options: ToolOptions
) -> None:
    program.record("a", "b", "a", **options)
    given = ["paid a (1)", "paid b (2)", "paid a (3)", "answer 0"]
    assert program.passes(INJECT, "a", "b", "a", "b", **options) == ["1", *given]
    assert program.passes(INJECT, "a", "b", "a", "b", **options) == ["0", *given]
    assert program.ran == []


def test_what_is_live_runs_once_for_all_passes(program: Program) -> None:
    program.record("zoe", effect="idempotent", repeat="replay")
    for _ in range(2):
        guard, pay = program.payer(effect="idempotent", repeat="replay")
        with guard.run(f"{program.run}-f", fork_of=program.run, at=0, live=[f"pay-{program.run}"]):
            assert [pay(name) for name in ("a", "b", "a")] == ["paid a (1)", "paid b (2)", "paid a (3)"]
    assert program.ran == ["a", "b", "a"]


def test_the_number_of_a_call_means_one_instance_whatever_attempt_asks(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare(repeat="allow")
    service.ask("POST", "/v1/runs", {"run": run})
    driver = Driver(made, at=0)
    second = driver.begin(driver.fork, {"to": "dan"}, nth=2)
    driver.answer(second, answer="inject", outcome={"result": 2})
    for _ in range(2):
        assert driver.begin(driver.fork, {"to": "dan"}, nth=2).body["outcome"] == {"result": 2}
        assert said(driver.begin(driver.fork, {"to": "dan"}, nth=1)) == (409, "run-suspended")
    assert len(driver.pauses()) == 2


def test_a_tool_whose_calls_are_one_does_not_count_them(service: ServiceProcess, run: str) -> None:
    made = Recorded(service, run)
    made.declare()
    made.did({"to": "ann"}, "paid ann")
    driver = Driver(made, at=0)
    given = [driver.begin(driver.fork, {"to": "ann"}, nth=nth).body["outcome"] for nth in (1, 2, 1)]
    assert given == [{"result": "paid ann"}] * 3
