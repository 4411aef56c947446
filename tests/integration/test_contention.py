"""What operators see of Redis and of contention: a Redis that is away is a warning, and what is counted says where."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.service import Reply, ServiceProcess
from twiceshy._commands import main


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("TWICESHY_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def without_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service whose Redis is not there; the port is kept so that nobody else takes it."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        redis = f"redis://:s3cret@127.0.0.1:{nobody.getsockname()[1]}/0"
        database = f"sqlite:///{tmp_path_factory.mktemp('contention')}/guard.db"
        with ServiceProcess(database, TWICESHY_REDIS=redis) as process:
            yield process


def twiceshy(service: ServiceProcess, *words: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [*words, "--url", service.url])
    assert result.exit_code == code, result.output
    return result


def contended(service: ServiceProcess, run: str, times: int, tool: str = "pay") -> Reply:
    """Begin, and begin so many times again."""
    granted = service.begin(run, tool)
    assert [service.begin(run, tool).status for _ in range(times)] == [409] * times
    return granted


def test_nothing_is_contended_at_first(without_redis: ServiceProcess) -> None:
    assert without_redis.ask("GET", "/v1/contention").body == {"counted_in": "process", "minutes": 5, "items": []}
    said = twiceshy(without_redis, "contention").output
    assert said == (
        "No begin found another attempt's lease.\n"
        "Counted in the process that answered, and in no other, in the last 5 minutes.\n"
    )


def test_the_hottest_keys_come_first_and_it_is_said_where_they_were_counted(
    without_redis: ServiceProcess, run: str
) -> None:
    cool, hot = contended(without_redis, run, 2, "book"), contended(without_redis, run, 5, "pay")
    found = without_redis.ask("GET", "/v1/contention").body
    assert found["counted_in"] == "process"
    assert [(item["key"], item["tool"], item["begins"]) for item in found["items"]] == [
        (hot.body["key"], "pay", 5),
        (cool.body["key"], "book", 2),
    ]
    assert without_redis.ask("GET", "/v1/contention?limit=1").body["items"] == found["items"][:1]
    assert json.loads(twiceshy(without_redis, "contention", "--json").stdout) == found
    lines = twiceshy(without_redis, "contention").output.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["begins", "tool", "effect"],
        ["5", "pay", hot.body["key"]],
        ["2", "book", cool.body["key"]],
    ]


@pytest.mark.parametrize("query", ["limit=0", "limit=201", "limit=many", "after=x"])
def test_a_query_that_means_nothing_is_refused(without_redis: ServiceProcess, query: str) -> None:
    assert without_redis.ask("GET", f"/v1/contention?{query}").code == "invalid-request"


def test_a_redis_that_is_away_is_a_warning_and_the_service_is_ready(without_redis: ServiceProcess) -> None:
    redis = without_redis.ask("GET", "/v1/status").body["redis"]
    assert redis["is_reached"] is False
    assert "refused" in redis["why"].lower()
    assert redis["address"].startswith("redis://127.0.0.1:")
    assert without_redis.ask("GET", "/health/ready").status == 200
    said = twiceshy(without_redis, "doctor").output
    assert "warn  redis" in said
    assert "all answers come from the database" in said
    report: dict[str, Any] = json.loads(twiceshy(without_redis, "doctor", "--json").stdout)
    assert report["ok"] is True
    assert "s3cret" not in json.dumps(report)
    metrics = without_redis.ask("GET", "/metrics").body
    assert "twiceshy_redis_reached 0.0" in metrics
    assert 'twiceshy_redis_failures_total{why="unreachable"}' in metrics


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--redis", "reds://cache"], "did you mean redis"),
        (["--redis", "redis+sentinel://cache"], "redis+sentinel://user:password@host:26379,other:26379/service/0"),
        (["--redis-seconds", "86401"], "86401 is not in the range 1<=x<=86400"),
    ],
)
def test_a_redis_that_cannot_be_meant_stops_the_service_before_it_serves(
    words: list[str], said: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "twiceshy", "serve", "--database", f"sqlite:///{tmp_path}/a.db", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "a.db").exists()
