"""Forks as an agent's program sees them: the same tools, in a run that goes on from another."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Unpack

import pytest

from tests.service import ServiceProcess
from twiceshy import (
    ApprovalAwaited,
    ForkSuspended,
    Guard,
    LiveTerms,
    PolicyDenied,
    Rejected,
    RequestRefused,
    SetupError,
    Simulator,
    ToolOptions,
)


@dataclass
class Receipt:
    """What a payment returns."""

    to: str
    amount: int


class Program:
    """A guard with its tools, and what really ran."""

    def __init__(self, service: ServiceProcess, run: str) -> None:
        self.guard = Guard(service.url)
        self.service = service
        self.run = run
        self.ran: list[str] = []

    def payer(self, **options: Unpack[ToolOptions]) -> Callable[[str, int], Receipt]:
        """Return the tool that pays."""

        def pay(to: str, amount: int) -> Receipt:
            self.ran.append(to)
            if to == "eve":
                raise Rejected("Eve takes no money", type="Declined")
            return Receipt(to, amount)

        options.setdefault("name", f"pay-{self.run}")
        return self.guard.tool(**options)(pay)

    def reader(self, **options: Unpack[ToolOptions]) -> Callable[[str], int]:
        """Return a tool that only reads."""

        def balance(of: str) -> int:
            self.ran.append(f"balance of {of}")
            return 100

        options["effect"], options["name"] = "read", f"balance-{self.run}"
        return self.guard.tool(**options)(balance)


@pytest.fixture
def program(service: ServiceProcess, run: str) -> Iterator[Program]:
    """A program on the service."""
    made = Program(service, run)
    with made.guard:
        yield made


def test_a_fork_gives_back_what_the_run_got_with_its_type(program: Program) -> None:
    pay = program.payer()
    with program.guard.run(program.run):
        pay("ann", 5)
        with pytest.raises(Rejected):
            pay("eve", 1)
        pay("bob", 6)
    program.ran.clear()
    with program.guard.run(f"{program.run}-f", fork_of=program.run, at=2):
        assert pay("ann", 5) == Receipt("ann", 5)
        with pytest.raises(Rejected, match="Eve takes no money") as raised:
            pay("eve", 1)
        assert raised.value.type == "Declined"
        assert pay("bob", 6) == Receipt("bob", 6)
    assert program.ran == []


def test_what_may_not_run_suspends_the_fork_past_every_except_exception(program: Program) -> None:
    pay = program.payer()
    with program.guard.run(program.run):
        pay("ann", 5)

    def stubborn_agent() -> None:
        with suppress(Exception):
            pay("dan", 5)

    with program.guard.run(f"{program.run}-f", fork_of=program.run, at=1), pytest.raises(ForkSuspended) as raised:
        stubborn_agent()
    assert "(rule: nothing may answer)" in str(raised.value)
    assert program.ran == ["ann"]


def test_what_the_registry_denies_to_forks_is_an_error_of_the_call(program: Program) -> None:
    pay = program.payer(fork="deny")
    with program.guard.run(program.run):
        pay("ann", 5)
    with program.guard.run(f"{program.run}-f", fork_of=program.run, at=1), pytest.raises(PolicyDenied):
        pay("dan", 5)
    assert program.ran == ["ann"]


def test_a_simulator_answers_in_the_tools_type(program: Program) -> None:
    pay = program.payer(simulator=Simulator(result={"to": "${arguments.to}", "amount": "${arguments.amount}"}))
    with program.guard.run(program.run):
        pay("ann", 5)
    with program.guard.run(f"{program.run}-f", fork_of=program.run, at=1):
        assert pay("dan", 7) == Receipt("dan", 7)
    assert program.ran == ["ann"]


def test_a_tool_that_is_named_really_runs_and_one_that_must_be_approved_waits(program: Program) -> None:
    pay = program.payer(effect="idempotent")
    send = program.payer(name=f"send-{program.run}")
    with program.guard.run(program.run):
        pay("ann", 5)
    live: list[str | LiveTerms] = [LiveTerms(tool=f"pay-{program.run}", when="arguments.amount < `10`", calls=1)]
    live.append(f"send-{program.run}")
    with program.guard.run(f"{program.run}-f", fork_of=program.run, at=1, live=live):
        assert pay("dan", 7) == Receipt("dan", 7)
        with pytest.raises(ForkSuspended, match="live calls used up"):
            pay("fay", 7)
        with pytest.raises(ForkSuspended, match="arguments not allowed"):
            pay("fay", 70)
        with pytest.raises(ApprovalAwaited):
            send("gus", 1)
    assert program.ran == ["ann", "dan"]


def test_reads_run_in_a_fork_unless_they_are_taken_from_the_record_only(program: Program) -> None:
    balance = program.reader()
    pay = program.payer()
    with program.guard.run(program.run):
        pay("ann", 5)
        assert balance("ann") == 100
    with program.guard.run(f"{program.run}-live", fork_of=program.run, at=1):
        assert balance("ann") == 100
    strict = program.guard.run(f"{program.run}-strict", fork_of=program.run, at=1, reads="recorded")
    with strict, pytest.raises(ForkSuspended, match="reads: recorded"):
        balance("ann")
    assert program.ran == ["ann", "balance of ann", "balance of ann"]


def test_a_read_that_may_not_run_is_simulated(program: Program) -> None:
    balance = program.reader(simulator=Simulator(result=7))
    with program.guard.run(program.run):
        program.payer()("ann", 5)
        assert balance("bob") == 100
    with program.guard.run(f"{program.run}-f", fork_of=program.run, at=1, reads="recorded"):
        assert balance("ann") == 7
    assert program.ran == ["ann", "balance of bob"]


def test_the_states_of_an_idempotent_tool_come_back_in_their_order(program: Program) -> None:
    seen: list[int] = []

    def switch(light: str) -> int:
        seen.append(len(seen))
        return len(seen)

    guarded = program.guard.tool(effect="idempotent", name=f"switch-{program.run}")(switch)
    with program.guard.run(program.run):
        assert [guarded(light) for light in ("on", "off", "on")] == [1, 2, 3]
    with program.guard.run(f"{program.run}-f", fork_of=program.run, at=3):
        assert [guarded(light) for light in ("on", "off", "on")] == [1, 2, 3]
    assert len(seen) == 3


async def test_an_async_program_forks_as_well(service: ServiceProcess, run: str) -> None:
    ran: list[str] = []
    guard = Guard(service.url)

    @guard.tool(name=f"pay-{run}")
    async def pay(to: str) -> Receipt:
        ran.append(to)
        return Receipt(to, 1)

    @guard.tool(name=f"balance-{run}", effect="read")
    async def balance(of: str) -> int:
        ran.append(f"balance of {of}")
        return 100

    async with guard.run(run):
        await pay("ann")
        await balance("bob")
    async with guard.run(f"{run}-f", fork_of=run, at=1, reads="recorded"):
        assert await pay("ann") == Receipt("ann", 1)
        with pytest.raises(ForkSuspended):
            await pay("dan")
        with pytest.raises(ForkSuspended):
            await balance("ann")
    async with guard.run(f"{run}-live", fork_of=run, at=1):
        assert await balance("ann") == 100
    assert ran == ["ann", "balance of bob", "balance of ann"]
    await guard.close_async()


def test_a_fork_that_cannot_be_made_is_not_entered(program: Program) -> None:
    with program.guard.run(program.run):
        program.payer()("ann", 5)
    with pytest.raises(RequestRefused, match="no further"), program.guard.run("f", fork_of=program.run, at=9):
        pytest.fail("entered")
    nobody = program.guard.run("f", fork_of=f"nobody-{program.run}", at=0)
    with pytest.raises(RequestRefused) as raised, nobody:
        pytest.fail("entered")
    assert raised.value.code == "not-found"


def test_terms_that_say_too_little_or_too_much_are_refused_at_once(program: Program) -> None:
    with pytest.raises(SetupError, match="fork_of"):
        program.guard.run("f", at=1)
    with pytest.raises(SetupError, match="at"):
        program.guard.run("f", fork_of="main")
    with pytest.raises(SetupError, match="named once"):
        program.guard.run("f", fork_of="main", at=0, live=["pay", "pay"])
    with pytest.raises(SetupError, match="at must be a whole number, 0 or more"):
        program.guard.run("f", fork_of="main", at=-1)
    misspelt = {"fork_off": "main"}
    with pytest.raises(TypeError, match="fork_of"):
        getattr(program.guard, "run")("f", **misspelt)  # noqa: B009 - a type checker would not let it through
