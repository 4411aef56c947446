"""A database that cannot be used: one message for each cause, the same embedded and by `twiceshy serve`."""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import asyncpg
import pytest

from guard import preparation
from tests.integration.test_serve import said_plainly, twiceshy
from tests.servers import PostgresServer, _open_folder
from twiceshy import Guard, SetupError
from twiceshy._transports.embedded import EmbeddedTransport

HOLD = """
import sqlite3, sys
held = sqlite3.connect(sys.argv[1], isolation_level=None)
if sys.argv[2] == "BEGIN EXCLUSIVE":
    held.execute("PRAGMA locking_mode = EXCLUSIVE")
held.execute(sys.argv[2])
held.execute("CREATE TABLE IF NOT EXISTS theirs (a)")
print("held", flush=True)
sys.stdin.readline()
held.execute("COMMIT")
held.close()
"""


def first_call(url: str) -> str:
    """Make the first call of an embedded guard; return what it was refused with."""
    with Guard(url, spool=None) as guard, guard.run("weather"):
        pay = guard.tool(name="pay")(lambda: None)
        with pytest.raises(SetupError) as refused:
            pay()
        with pytest.raises(SetupError):  # nothing is remembered: the next call tries again
            asyncio.run(_awaited(guard))
    return str(refused.value)


async def _awaited(guard: Guard) -> None:
    @guard.tool
    async def pay_async() -> None: ...

    await pay_async()


def both_say(url: str, *words: str) -> None:
    """Check that the words are in what an embedded guard and `twiceshy serve` are refused with."""
    said = first_call(url)
    for word in ("The embedded guard did not start: ", *words):
        assert word in said
    said_plainly(twiceshy("serve", "--port", "0", "--database", url), *words)


@contextmanager
def locked(path: Path, begin: str = "BEGIN EXCLUSIVE") -> Iterator[subprocess.Popen[str]]:
    """Let another process hold the file for itself, or only its write lock."""
    command = [sys.executable, "-c", HOLD, str(path), begin]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.send_signal(signal.SIGKILL)


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody can reach."""
    folder = Path(tempfile.mkdtemp(prefix="twiceshy-weather-", dir=_open_folder()))
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def tried_without_privileges(database: Path) -> list[str]:
    command = [sys.executable, "-m", "tests.integration.unprivileged", f"sqlite:///{database}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    embedded, served = done.stdout.split("\n1 ")
    return [embedded, served]


def test_a_file_in_a_folder_that_may_not_be_written(open_folder: Path) -> None:
    open_folder.chmod(0o555)
    for said in tried_without_privileges(open_folder / "a.db"):
        assert f"a.db cannot be written: no right to write {open_folder}. Grant it" in said
    assert list(open_folder.iterdir()) == []


def test_a_file_that_may_not_be_written(open_folder: Path) -> None:
    file = open_folder / "a.db"
    sqlite3.connect(file).close()
    open_folder.chmod(0o777)
    file.touch()
    file.chmod(0o444)
    if os.geteuid() != 0:
        open_folder.chmod(0o755)
    for said in tried_without_privileges(file):
        assert f"a.db cannot be written: no right to write {file}. Grant it" in said


def test_a_folder_where_the_system_lets_no_file_be_made() -> None:
    both_say("sqlite:////proc/1/a.db", "/proc/1/a.db", "writ")


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    both_say(f"sqlite:///{tmp_path}/nowhere/a.db", f"the folder {tmp_path}/nowhere does not exist. Make it first")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear diary, this is not a database at all. " * 50)
    both_say(f"sqlite:///{path}", f"{path} is not a database that can be used: file is not a database")


def test_a_file_of_a_newer_version(sqlite_template: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "newer.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999_later'")
    both_say(f"sqlite:///{path}", "is at 9999_later, which is newer than this version", "pip install --upgrade")


@pytest.mark.parametrize("file", ["ours", "new"])
def test_a_file_that_another_program_holds(
    file: str, sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "LOCKED_SECONDS", 0.0)
    path = tmp_path / "held.db"
    if file == "ours":
        shutil.copy(sqlite_template, path)
    with locked(path) as holder:
        named = f" (process {holder.pid})" if Path("/proc/locks").exists() else ""
        both_say(f"sqlite:///{path}", f"{path} is locked by another program{named}. Close that program")


def test_a_file_that_is_given_back_in_time_is_opened(sqlite_template: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(sqlite_template, tmp_path / "held.db"))
    with locked(path) as holder, Guard(f"sqlite:///{path}", spool=None) as guard:
        assert isinstance(guard._environment.transport, EmbeddedTransport)
        guard._environment.transport._held()  # starts to open, and does not wait
        assert holder.stdin is not None
        threading.Timer(0.2, lambda: holder.communicate("go\n")).start()
        with guard.run("r"):
            assert guard.tool(name="pay")(lambda: 7)() == 7


def test_a_server_that_is_not_there() -> None:
    both_say("postgresql://u:secret@127.0.0.1:1/d", "postgresql://127.0.0.1:1/d cannot be reached", "Check that the")


def test_a_server_without_the_database(postgres_server: PostgresServer) -> None:
    both_say(postgres_server.url("nowhere"), 'database "nowhere" does not exist', "CREATE DATABASE")


def test_a_server_with_a_database_that_was_not_migrated(postgres_server: PostgresServer) -> None:
    both_say(postgres_server.url("template1"), "has no schema yet: run `twiceshy migrate --database URL`")


def test_a_server_that_refuses_the_password() -> None:
    server = PostgresServer()
    try:
        rules = server._data / "pg_hba.conf"
        rules.write_text("host all guest 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        server.start()
        asyncio.run(_make_guest(server.url()))
        url = server.url().replace("postgres@", "guest:wrong@")
        both_say(url, "refuses the login", "Correct user and password")
        assert "wrong" not in first_call(url)
    finally:
        server.remove()


async def _make_guest(url: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("CREATE ROLE guest LOGIN PASSWORD 'right'")
    finally:
        await connection.close()
