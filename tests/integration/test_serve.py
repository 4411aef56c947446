"""`twiceshy serve` and `migrate`: what is wrong is said in one line; what runs is stopped in order."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.servers import PostgresServer
from tests.service import ServiceProcess


def twiceshy(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")}
    return subprocess.run(
        [sys.executable, "-m", "twiceshy", *words],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def said_plainly(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


def test_beyond_this_machine_it_needs_tokens(tmp_path: Path) -> None:
    said_plainly(twiceshy("serve", "--host", "0.0.0.0", "--database", f"sqlite:///{tmp_path}/a.db"), "TWICESHY_TOKENS")  # noqa: S104
    assert not (tmp_path / "a.db").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said_plainly(twiceshy("serve", "--port", port, "--database", f"sqlite:///{tmp_path}/a.db"), port, "--port")


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("mysql://localhost/x", "postgresql://"),
        ("sqlite:////nowhere/at/all/a.db", "/nowhere/at/all"),
        ("postgresql://postgres@127.0.0.1:1/none", "reached"),
    ],
)
def test_a_database_that_cannot_be_used_is_said_in_one_line(address: str, word: str) -> None:
    said_plainly(twiceshy("serve", "--port", "0", "--database", address), word)


def test_a_file_that_is_no_database_is_said_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear diary, this is not a database at all. " * 50)
    before = path.read_bytes()
    said_plainly(twiceshy("serve", "--port", "0", "--database", f"sqlite:///{path}"), str(path))
    assert path.read_bytes() == before


def test_postgresql_without_a_schema_says_migrate_and_migrate_may_be_repeated(postgres_server: PostgresServer) -> None:
    created = twiceshy("serve", "--port", "0", "--database", postgres_server.url("template1"))
    said_plainly(created, "twiceshy migrate")
    for _ in range(2):
        done = twiceshy("migrate", "--database", postgres_server.url())
        assert (done.returncode, done.stdout) == (0, "The schema is at 0006_plain_batches.\n")


def test_with_tokens_nothing_below_v1_answers_without_one(tmp_path: Path) -> None:
    with ServiceProcess(f"sqlite:///{tmp_path}/a.db", TWICESHY_TOKENS="first-secret, second-secret") as service:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic first-secret"}):
            refused = service.ask("GET", "/v1/effects", **headers)
            assert (refused.status, refused.code) == (401, "unauthorized")
            assert refused.headers["www-authenticate"] == "Bearer"
        for token in ("first-secret", "second-secret"):
            assert service.ask("GET", "/v1/effects", Authorization=f"Bearer {token}").status == 200
        assert service.ask("GET", "/health/live").status == 200


def test_a_begin_that_waits_is_answered_when_the_service_stops(tmp_path: Path) -> None:
    with ServiceProcess(f"sqlite:///{tmp_path}/a.db") as service, ThreadPoolExecutor() as pool:
        service.begin("r", lease_seconds=3600)
        waiting = pool.submit(service.begin, "r", wait_seconds=30)
        assert service.begin("r", wait_seconds=1).code == "in-progress"  # the other was asked before, and waits
        began = time.monotonic()
        service.stop()
        assert waiting.result(timeout=20).code == "in-progress"
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_in_order(tmp_path: Path, how: signal.Signals) -> None:
    command = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", f"sqlite:///{tmp_path}/a.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"Twiceshy serves http://127.0.0.1:")
        process.send_signal(how)
        process.wait(20)
        assert b"Traceback" not in process.stderr.read()
    assert not (tmp_path / "a.db-wal").exists()


@pytest.mark.parametrize("verb", ["serve", "migrate"])
def test_a_variable_that_is_no_setting_stops_it_with_the_nearest_name(verb: str, tmp_path: Path) -> None:
    done = twiceshy(verb, "--database", f"sqlite:///{tmp_path}/a.db", TWICESHY_TOKNES="secret")
    assert done.returncode == 2
    assert "TWICESHY_TOKNES is not a setting; did you mean TWICESHY_TOKENS? Unset it or correct it." in done.stderr
    assert not (tmp_path / "a.db").exists()


def test_a_database_that_may_lose_what_was_answered_is_named_at_the_start(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    """The server of the tests runs without fsync; a SQLite file of ours does not."""
    twiceshy("migrate", "--database", postgres_server.url())
    for url, is_warned in ((postgres_server.url(), True), (f"sqlite:///{tmp_path}/a.db", False)):
        command = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", url]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert "Twiceshy serves" in process.stdout.readline()
            process.terminate()
            said = process.stderr.read()
        assert ("a power cut may take back what was answered" in said) == is_warned
        assert ("fsync is off" in said) == is_warned
