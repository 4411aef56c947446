"""The guard embedded in this very process, on both databases, called in every way that a program may call it."""

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import structlog
from click.testing import CliRunner

from tests.integration.test_weather import locked
from twiceshy import Guard, GuardUnavailable, SetupError, Tool
from twiceshy._commands import main
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy._transports.embedded import EmbeddedTransport
from twiceshy._transports.service_thread import ServiceThread
from twiceshy._transports.services import Services

READY = Request(method="GET", path="/health/ready")


def adder(guard: Guard, calls: list[int]) -> Tool[[int], int]:
    """Put a tool behind a guard that notes each call."""

    @guard.tool
    def add(number: int) -> int:
        calls.append(number)
        return number + 1

    return add


def service_of(guard: Guard) -> ServiceThread:
    transport = guard._environment.transport
    assert isinstance(transport, EmbeddedTransport)
    assert transport._service is not None
    return transport._service


def service_loop(transport: EmbeddedTransport) -> asyncio.AbstractEventLoop:
    assert transport._service is not None
    assert transport._service._loop is not None
    return transport._service._loop


def test_a_call_runs_once_and_is_answered_from_the_record_by_another_guard(database_url: str) -> None:
    calls: list[int] = []
    for _ in range(2):
        with Guard(database_url, spool=None) as guard, guard.run("r"):
            assert adder(guard, calls)(1) == 2
    assert calls == [1]


async def test_calls_that_wait_on_a_loop_together_all_get_their_own_answers(database_url: str) -> None:
    async with Guard(database_url, spool=None) as guard:

        @guard.tool
        async def double(number: int) -> int:
            await asyncio.sleep(0)
            return number * 2

        async with guard.run("r"):
            for _ in range(2):
                assert await asyncio.gather(*map(double, range(100))) == [number * 2 for number in range(100)]


def test_threads_and_their_loops_share_one_guard(database_url: str) -> None:
    with Guard(database_url, spool=None) as guard:
        calls: list[int] = []
        add = adder(guard, calls)

        @guard.tool
        async def add_async(number: int) -> int:
            return number + 1

        async def several(thread: int) -> list[int]:
            async with guard.run(f"r{thread}"):
                return await asyncio.gather(*map(add_async, range(10)))

        def work(thread: int) -> list[int]:
            with guard.run(f"r{thread}"):
                return [add(number) for number in range(10)] + asyncio.run(several(thread))

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(work, range(8)))
        assert found == [[*range(1, 11), *range(1, 11)]] * 8
        assert len(calls) == 80
        asyncio.run(several(9))
        transport = guard._environment.transport
        assert isinstance(transport, EmbeddedTransport)
        assert len(transport._homecomings) == 1  # the loops that are closed are forgotten


@pytest.mark.parametrize("backend", ["sqlite"])
def test_guards_over_one_database_share_one_service_until_the_last_is_closed(database_url: str) -> None:
    first, second = Guard(database_url, spool=None), Guard(database_url, spool=None)
    calls: list[int] = []
    with first.run("r"):
        adder(first, calls)(1)
    with second.run("r"):
        adder(second, calls)(1)
    shared = service_of(first)
    assert shared is service_of(second)
    first.close()
    assert not shared.ended.done()
    with first.run("r"):  # a guard that was closed opens again
        adder(first, calls)(1)
    assert service_of(first) is shared
    first.close()
    second.close()
    second.close()
    assert shared.ended.done()
    assert calls == [1]


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_relative_file_stays_the_same_when_the_program_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with Guard("sqlite:///a.db", spool=None) as guard, guard.run("r"):
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir("elsewhere")
        adder(guard, [])(1)
    assert (tmp_path / "a.db").exists()


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_a_request_that_takes_too_long_is_only_silence(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = asyncio.Event()
    transport = EmbeddedTransport(database_url)
    assert isinstance(transport.send(READY), Reply)

    async def hanging(*_: object) -> Reply:
        await go_on.wait()
        raise RuntimeError("too late")

    monkeypatch.setattr("twiceshy._transports.service_thread.respond", hanging)
    late = Request(method="GET", path="/", timeout_seconds=0.05)
    assert transport.send(late) == NoReply(reason="no answer within 0.05 seconds")
    assert await transport.send_async(late) == NoReply(reason="no answer within 0.05 seconds")
    loop = service_loop(transport)
    loop.call_soon_threadsafe(go_on.set)
    assert transport.send(READY) == NoReply(reason="RuntimeError: too late")
    await transport.close_async()


@pytest.mark.parametrize("backend", ["sqlite"])
async def test_a_caller_that_is_cancelled_disturbs_nobody(database_url: str) -> None:
    transport = EmbeddedTransport(database_url)
    first = asyncio.ensure_future(transport.send_async(READY))  # opens the database
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert isinstance(await transport.send_async(READY), Reply)
    await transport.close_async()


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_service_that_was_closed_under_a_guard_is_weather(database_url: str) -> None:
    services = Services()
    transport = EmbeddedTransport(database_url, services)
    assert isinstance(transport.send(READY), Reply)
    services._end()  # as at the end of the interpreter
    assert isinstance(transport.send(READY), NoReply)
    assert isinstance(transport.send(READY), NoReply)
    transport.close()


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_database_that_is_gone_after_it_had_served_is_weather(database_url: str, tmp_path: Path) -> None:
    guard = Guard(database_url, spool=None, unavailable_seconds=0.2)
    with guard.run("r"):
        adder(guard, [])(1)
        guard.close()
        (tmp_path / "guard.db").unlink()
        (tmp_path / "guard.db").mkdir()
        with pytest.raises(GuardUnavailable, match=r"embedded over sqlite:.*is a folder, not a database file"):
            adder(guard, [])(2)
        (tmp_path / "guard.db").rmdir()
        adder(guard, [])(3)
    guard.close()


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_record_that_is_removed_under_a_guard_stops_its_calls(database_url: str, tmp_path: Path) -> None:
    calls: list[int] = []
    with Guard(database_url, spool=None, unavailable_seconds=0.3) as guard, guard.run("r"):
        add = adder(guard, calls)
        add(1)
        (tmp_path / "guard.db").unlink()
        with pytest.raises(GuardUnavailable, match=r"guard\.db is gone: the record was removed"):
            add(2)
    assert calls == [1]


@pytest.mark.parametrize("backend", ["sqlite"])
def test_the_last_try_of_a_call_does_not_hide_who_locks_the_file(database_url: str, tmp_path: Path) -> None:
    with Guard(database_url, spool=None, unavailable_seconds=5) as guard, guard.run("r"):
        add = adder(guard, [])
        add(1)
        with locked(tmp_path / "guard.db", "BEGIN IMMEDIATE") as holder:
            named = rf"\(process {holder.pid}\)" if Path("/proc/locks").exists() else ""
            with pytest.raises(GuardUnavailable, match=rf"guard\.db is locked by another program.*{named}"):
                add(2)


@pytest.mark.parametrize("backend", ["sqlite"])
def test_one_file_under_several_names_is_one_service(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.db").symlink_to(tmp_path / "guard.db")
    names = ("guard.db", "link.db", "folder/../guard.db")
    guards = [Guard(f"SQLite:///{tmp_path}/{name}", spool=None) for name in names]
    assert {guard.url for guard in guards} == {database_url}
    for guard in guards:
        with guard.run("r"):
            adder(guard, [])(1)
    assert len({service_of(guard) for guard in guards}) == 1
    for guard in guards:
        guard.close()


def test_nothing_is_printed_or_logged_below_a_warning(
    database_url: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    is_configured = structlog.is_configured()
    with Guard(database_url, spool=None) as guard, guard.run("r"):
        adder(guard, [])(1)
    assert capfd.readouterr() == ("", "")
    assert [record for record in caplog.records if record.name.startswith("twiceshy")] == []
    assert structlog.is_configured() == is_configured


@pytest.mark.parametrize("backend", ["sqlite"])
def test_commands_work_on_a_database_without_a_service(database_url: str, tmp_path: Path) -> None:
    with Guard(database_url, spool=None) as guard, guard.run("by-command"):
        adder(guard, [])(1)
    listed = CliRunner().invoke(main, ["effects", "list", "--json", "--url", database_url])
    assert listed.exit_code == 0, listed.output
    assert '"run": "by-command"' in listed.output
    missing = CliRunner().invoke(main, ["effects", "list", "--url", f"sqlite:///{tmp_path}/missing.db"])
    assert missing.exit_code != 0
    assert not (tmp_path / "missing.db").exists()


def test_without_the_server_the_guard_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twiceshy._transports.embedded.metadata.entry_points", lambda **_: ())
    with pytest.raises(SetupError, match=r"pip install 'twiceshy\[server\]'.*pip install \./sdk \."):
        Guard("sqlite:///a.db")
