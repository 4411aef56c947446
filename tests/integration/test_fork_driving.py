"""An agent's program drives a fork by its credential: its calls, its children, its declarations, and its pauses."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.service import ServiceProcess
from twiceshy import ApprovalAwaited, ForkSuspended, Guard, LiveTerms, PolicyDenied, Rejected, RequestRefused
from twiceshy._commands import main

TOKEN = "secret-of-the-agent"


@pytest.fixture(scope="module")
def guarded_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that has tokens, and an approver."""
    path = tmp_path_factory.mktemp("guarded") / "guard.db"
    with ServiceProcess(f"sqlite:///{path}", TWICESHY_TOKENS=TOKEN, TWICESHY_APPROVERS="ann:ann-token") as process:
        yield process


class Program:
    """A guard with tools, and what really ran."""

    def __init__(self, service: ServiceProcess, run: str, token: str | None = None) -> None:
        self.guard = Guard(service.url, token=token)
        self.service = service
        self.run = run
        self.ran: list[str] = []
        self.pay = self.guard.tool(effect="idempotent", name=f"pay-{run}")(self._pay)

    def _pay(self, to: str) -> str:
        self.ran.append(to)
        return f"paid {to}"

    def note(self, to: str) -> None:
        """Note that something ran."""
        self.ran.append(to)

    def fork(self, name: str = "f", **terms: Any) -> Any:
        """Return a fork of the run."""
        return self.guard.run(f"{self.run}-{name}", fork_of=self.run, **{"at": 1} | terms)


@pytest.fixture
def program(service: ServiceProcess, run: str) -> Iterator[Program]:
    """A program whose run paid Ann."""
    made = Program(service, run)
    with made.guard:
        with made.guard.run(run):
            made.pay("ann")
        yield made


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWICESHY_") and name != "TWICESHY_SPOOL"]:
        monkeypatch.delenv(name)


def runs(service: ServiceProcess, *words: str, code: int = 0, **more: Any) -> Result:
    result = CliRunner().invoke(main, ["runs", *words, "--url", service.url], **more)
    assert result.exit_code == code, result.output
    return result


def stopped(program: Program, to: str) -> str:
    """Let the fork stop at a payment; return the key of the pause."""
    with program.fork(), pytest.raises(ForkSuspended) as raised:
        program.pay(to)
    assert raised.value.pause is not None
    return raised.value.pause


def test_where_there_are_tokens_the_calls_of_a_fork_go_by_its_credential(
    guarded_service: ServiceProcess, run: str
) -> None:
    program = Program(guarded_service, run, TOKEN)
    with program.guard, program.guard.run(run):
        program.pay("ann")
        live = [LiveTerms(tool=f"pay-{run}", calls=1)]
        with program.fork(live=live):
            assert [program.pay(to) for to in ("ann", "dan")] == ["paid ann", "paid dan"]
            with pytest.raises(ForkSuspended):
                program.pay("eve")
            with program.guard.run(f"{run}-f.sub"), pytest.raises(ForkSuspended, match="live calls used up"):
                program.pay("eve")
            with pytest.raises(RequestRefused, match="new runs only"), program.guard.run(run):
                pytest.fail("entered")
        assert program.pay("fay") == "paid fay"
    assert program.ran == ["ann", "dan", "fay"]
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded_service.ask("GET", f"/v1/runs/{run}-f.sub", **token).body["parent"] == f"{run}-f"


def test_what_is_entered_inside_of_a_fork_is_its_child_and_may_do_no_more(program: Program) -> None:
    tool = f"pay-{program.run}"
    with program.fork(live=[LiveTerms(tool=tool, calls=1)], at=0):
        with program.guard.run(f"{program.run}-f.one") as one:
            assert one.is_fork
            assert program.pay("dan") == "paid dan"
            with program.guard.run(f"{program.run}-f.one.two"), pytest.raises(ForkSuspended, match="used up"):
                program.pay("eve")
        with pytest.raises(ForkSuspended, match="used up"):
            program.pay("fay")
    view = program.service.ask("GET", f"/v1/runs/{program.run}-f.one.two").body
    assert (view["parent"], view["live"]) == (f"{program.run}-f.one", [{"tool": tool, "calls": 1}])
    with program.guard.run(f"{program.run}-f.one"), pytest.raises(ForkSuspended):
        program.pay("gus")
    assert program.ran == ["ann", "dan"]


def test_a_tool_that_only_the_fork_declares_is_not_registered_and_is_declared_later(program: Program) -> None:
    ran: list[str] = []

    def note(of: str) -> None:
        ran.append(of)

    look = program.guard.tool(effect="read", name=f"look-{program.run}")(note)
    with program.fork(), pytest.raises(ForkSuspended, match="not registered"):
        look("ann")
    assert (ran, program.service.ask("GET", f"/v1/tools/look-{program.run}").status) == ([], 404)
    with program.guard.run(f"{program.run}-2"):
        look("ann")
    with program.fork("g"):
        look("bob")
    assert ran == ["ann", "bob"]


def test_a_live_call_of_a_fork_that_is_approved_waits_by_the_credential(
    guarded_service: ServiceProcess, run: str
) -> None:
    program = Program(guarded_service, run, TOKEN)
    mail = program.guard.tool(name=f"mail-{run}")(program.note)
    with program.guard, program.guard.run(run):
        program.pay("ann")
        with program.fork(live=[f"mail-{run}"]), pytest.raises(ApprovalAwaited) as raised:
            mail("dan")
        path = f"/v1/approvals/{raised.value.approval}/decide"
        guarded_service.ask("POST", path, {"verdict": "approve"}, Authorization="Bearer ann-token")
        with program.fork(live=[f"mail-{run}"]):
            mail("dan")
    assert program.ran == ["ann", "dan"]


def test_a_fork_that_stopped_goes_on_with_what_a_person_injects(program: Program) -> None:
    key = stopped(program, "dan")
    listed = runs(program.service, "pauses", f"{program.run}-f").output.splitlines()
    assert listed[1].startswith(key)
    assert '{"to": "dan"}' in listed[1]
    said = runs(program.service, "answer", f"{program.run}-f", key, "--inject", '"as if"', "--as", "ann").output
    assert "answer      inject" in said
    with program.fork():
        assert program.pay("dan") == "as if"
    assert program.ran == ["ann"]
    page = json.loads(runs(program.service, "pauses", f"{program.run}-f", "--json").output)
    assert [(item["by"], item["spent"]) for item in page["items"]] == [("ann", True)]
    assert "inject, used" in runs(program.service, "pauses", f"{program.run}-f").output
    assert "No pauses that are open." in runs(program.service, "pauses", f"{program.run}-f", "--state", "open").output


def test_a_fork_that_stopped_hears_no_an_error_or_a_yes(program: Program) -> None:
    fork = f"{program.run}-f"
    runs(program.service, "answer", fork, stopped(program, "dan"), "--deny", "not now")
    error = '{"type": "Declined", "message": "no money"}'
    runs(program.service, "answer", fork, stopped(program, "eve"), "--inject-error", error)
    answered = runs(program.service, "answer", fork, stopped(program, "fay"), "--allow", "ours", "--json").output
    assert json.loads(answered)["answer"] == "allow"
    with program.fork():
        with pytest.raises(PolicyDenied, match="not now"):
            program.pay("dan")
        with pytest.raises(Rejected, match="no money"):
            program.pay("eve")
        assert program.pay("fay") == "paid fay"
    assert program.ran == ["ann", "fay"]


def test_the_error_says_how_a_person_answers(program: Program) -> None:
    with program.fork(), pytest.raises(ForkSuspended) as raised:
        program.pay("dan")
    notes = "\n".join(raised.value.__notes__)
    for words in (f"twiceshy runs pauses {program.run}-f", f"{program.run}-f {raised.value.pause} --inject JSON"):
        assert words in notes


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Give one answer"),
        (("--deny", "a", "--allow", "b"), "Give one answer"),
        (("--inject", "{"), "--inject is not JSON"),
        (("--inject-error", '{"type": "E"}'), "--inject-error takes an object"),
        (("--allow", " "), "--allow needs a reason"),
    ],
)
def test_an_answer_that_cannot_be_is_refused_before_it_is_sent(
    program: Program, words: tuple[str, ...], said: str
) -> None:
    refused = runs(program.service, "answer", f"{program.run}-f", "0" * 64, *words, code=2)
    assert said in refused.output


def test_what_cannot_be_answered_is_said(program: Program) -> None:
    unknown = runs(program.service, "answer", f"{program.run}-f", "0" * 64, "--deny", "x", code=1).output
    assert "There is no run" in unknown
    key = stopped(program, "dan")
    runs(program.service, "answer", f"{program.run}-f", key, "--deny", "x")
    late = runs(program.service, "answer", f"{program.run}-f", key, "--allow", "y", code=1).output
    assert "it was denied" in late


async def test_an_async_program_drives_a_fork_as_well(guarded_service: ServiceProcess, run: str) -> None:
    guard = Guard(guarded_service.url, token=TOKEN)
    ran: list[str] = []

    @guard.tool(effect="idempotent", name=f"pay-{run}")
    async def pay(to: str) -> str:
        ran.append(to)
        return to

    async with guard.run(run):
        await pay("ann")
    async with guard.run(f"{run}-f", fork_of=run, at=1, live=[f"pay-{run}"]):
        await pay("dan")
        async with guard.run(f"{run}-f.sub"):
            await pay("eve")
    await guard.close_async()
    assert ran == ["ann", "dan", "eve"]


def test_many_threads_in_a_fork_and_out_of_it_do_not_share_a_batch(guarded_service: ServiceProcess, run: str) -> None:
    program = Program(guarded_service, run, TOKEN)

    def paid(number: int) -> str:
        if number % 2:
            with program.guard.run(run):
                return program.pay(f"n{number}")
        with program.fork(at=0, live=[f"pay-{run}"]):
            return program.pay(f"n{number}")

    with program.guard:
        with program.guard.run(run):
            program.pay("ann")
        with ThreadPoolExecutor(16) as pool:
            assert list(pool.map(paid, range(64))) == [f"paid n{number}" for number in range(64)]
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded_service.ask("GET", f"/v1/runs/{run}-f", **token).body["effects"] == 32


def test_an_agent_that_has_nothing_but_the_credential_is_in_the_fork_whatever_it_names(
    guarded_service: ServiceProcess, run: str
) -> None:
    program = Program(guarded_service, run, TOKEN)
    with program.guard, program.guard.run(run):
        program.pay("ann")
    terms = {"fork": f"{run}-f", "at": 1, "live": [{"tool": f"pay-{run}", "calls": 1}], "reads": "recorded"}
    made = guarded_service.ask("POST", f"/v1/runs/{run}/forks", terms, Authorization=f"Bearer {TOKEN}")
    agent = Program(guarded_service, run, made.body["credential"])
    look = agent.guard.tool(effect="read", name=f"look-{run}")(agent.note)
    with agent.guard:
        with agent.guard.run(f"{run}-f", fork_of=run, at=0, live=[f"pay-{run}", f"look-{run}"]):
            assert agent.pay("ann") == "paid ann"
        with agent.guard.run(f"{run}-f") as fork, pytest.raises(ForkSuspended):
            look("ann")
        assert fork.is_fork
        for other in (run, f"{run}-new"):
            with agent.guard.run(other), pytest.raises(PolicyDenied, match="credential of a fork"):
                agent.pay("dan")
        with agent.guard.run(f"{run}-f"), agent.guard.run(f"{run}-new"):
            assert agent.pay("dan") == "paid dan"
            with pytest.raises(ForkSuspended, match="used up"):
                agent.pay("eve")
        with pytest.raises(PolicyDenied):
            agent.pay.with_key(business_key=f"key-{run}")("gus")
    assert agent.ran == ["dan"]
