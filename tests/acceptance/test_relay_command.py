"""`twiceshy relay` and `twiceshy serve --with-relay` as an operator meets them."""

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from guard.ports.store import Store
from outbox_relay.command import relay
from tests.acceptance.relays import RelayProcess, receiving, staged
from tests.brokers import free_port
from tests.integration.relaying import TENANT, declared, delivered, stage, until
from tests.service import ServiceProcess
from twiceshy_contract.destinations import LogDestination

pytestmark = pytest.mark.anyio
POSTGRESQL = pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
EMBEDDED_AGENT = """
import sys
from twiceshy import Guard

guard = Guard(sys.argv[1])

@guard.tool(sink="there")
def tell(number: int) -> dict[str, int]:
    return {"number": number}

with guard.run("beside"):
    for number in range(3):
        tell(number)
guard.close()
"""


def said(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("TWICESHY_")} | variables
    command = [sys.executable, "-m", "twiceshy", "relay", *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)


def test_a_relay_over_a_sqlite_file_is_refused_and_told_what_to_do(tmp_path: Path) -> None:
    ended = CliRunner().invoke(relay, ["--database", f"sqlite:///{tmp_path}/guard.db", "--once"])
    assert ended.exit_code == 2
    assert f"twiceshy serve --with-relay --database sqlite:///{tmp_path}/guard.db" in ended.stderr


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--allow", "10.0.0.1/8"), "'10.0.0.1/8' is not a network"),
        (("--database", "mysql://x"), "There is no store for mysql"),
    ],
)
def test_what_is_wrong_on_the_command_line_is_said_before_anything_starts(words: tuple[str, ...], reason: str) -> None:
    ended = CliRunner().invoke(relay, ["--database", "postgresql://127.0.0.1:1/nothing", *words])
    assert ended.exit_code == 2
    assert reason in ended.stderr


@POSTGRESQL
async def test_once_declares_delivers_what_is_due_and_ends(store: Store, database_url: str, tmp_path: Path) -> None:
    there = await declared(store)
    slow = await declared(store, "slow")
    await stage(store, there, ["a", "b"])
    await stage(store, slow, ["c", "d", "e"], name="slow")
    lines, file = tmp_path / "lines", tmp_path / "destinations.yaml"
    slowly = f"{{kind: log, path: {tmp_path / 'slow'}, rate_per_second: 0.01}}"
    file.write_text(f"destinations:\n  there: {{kind: log, path: {lines}}}\n  slow: {slowly}\n")
    words = ("--database", database_url, "--destinations", str(file), "--once")
    ended = await asyncio.to_thread(said, *words, TWICESHY_RELAY_FILES=str(tmp_path))
    assert (ended.returncode, ended.stdout) == (0, "3 delivered, 0 tries that did not deliver.\n")
    assert ended.stderr.splitlines()[-1].startswith("2 left: not due yet, or held back by")
    assert len(lines.read_text().splitlines()) == 2
    record = await store.destinations.get(TENANT, "there")
    assert record is not None
    assert record.place.settings == LogDestination(path=str(lines))


@POSTGRESQL
async def test_a_relay_says_that_it_works_shows_its_meters_and_ends_in_order(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    port = free_port()
    async with receiving() as receiver:
        await staged(store, receiver, 80)
        relay = RelayProcess(database_url, tmp_path, "--metrics-port", str(port)).start()
        try:
            line = await asyncio.to_thread(relay.first_line)
            assert line.startswith("Twiceshy relays from postgresql://")
            assert line.endswith("Ctrl-C stops it.")
            await receiver.wait_for(80)
            url = f"http://127.0.0.1:{port}/metrics"
            text = (await asyncio.to_thread(urllib.request.urlopen, url)).read().decode()
            assert 'twiceshy_relay_tries_total{destination="there",result="delivered"}' in text
            assert await asyncio.to_thread(relay.end, signal.SIGINT) == 0
        finally:
            relay.end()
    assert len(await delivered(store)) == 80


async def test_a_service_that_relays_delivers_and_says_whether_a_destination_can_be_reached(
    database_url: str, tmp_path: Path
) -> None:
    async with receiving() as receiver:
        file = tmp_path / "destinations.yaml"
        file.write_text(f"destinations: {{hooks: {{kind: webhook, url: 'http://127.0.0.1:{receiver.port}/'}}}}\n")
        options = ("--with-relay", "--destinations", str(file), "--allow", "127.0.0.1/32")
        with ServiceProcess(database_url, options=options) as service:
            body = {
                "tool": "tell",
                "run": "one",
                "arguments": {},
                "attempt": "6f2c8a1e-0b1d-4c59-9b7e-2f6f3d1f8a55",
                "messages": [{"destination": "hooks", "payload": {"a": 1}}],
            }
            answer = await asyncio.to_thread(service.ask, "POST", "/v1/outbox", body)
            assert answer.status == 201, answer.body
            await receiver.wait_for(1)
            seen = await asyncio.to_thread(service.ask, "POST", "/v1/destinations/hooks/check")
            assert seen.body["ok"] is True
            text = (await asyncio.to_thread(urllib.request.urlopen, f"{service.url}/metrics")).read().decode()
            assert 'twiceshy_relay_tries_total{destination="hooks",result="delivered"}' in text
    assert receiver.bodies == ['{"a":1}']


@SQLITE
async def test_what_an_embedded_guard_stages_is_delivered_by_the_service_beside_it(
    store: Store, database_url: str, tmp_path: Path
) -> None:
    lines, program = tmp_path / "lines", tmp_path / "agent.py"
    program.write_text(EMBEDDED_AGENT)
    await declared(store, settings=LogDestination(path=str(lines)))
    with ServiceProcess(database_url, options=("--with-relay",), TWICESHY_RELAY_FILES=str(tmp_path)):
        ended = await asyncio.to_thread(
            subprocess.run, [sys.executable, str(program), database_url], check=False, capture_output=True, text=True
        )
        assert ended.returncode == 0, ended.stderr

        async def all_delivered() -> bool:
            return len(await delivered(store)) == 3

        await until(all_delivered)
    assert len(lines.read_text().splitlines()) == 3
