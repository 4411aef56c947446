"""Two replicas on one PostgreSQL whose Redis lies, hangs, is cut off or loses everything: the answers are the same."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from tests.brokers import ValkeyServer
from tests.conftest import fresh_database
from tests.redis_proxy import Command, Lies, RedisProxy
from tests.servers import PostgresServer
from tests.service import Reply, ServiceProcess

LIES: Final = (
    Lies.another_entry,
    Lies.an_older_entry,
    Lies.a_flipped_bit,
    Lies.foreign_bytes,
    Lies.something_huge,
    Lies.a_bomb,
    Lies.a_wrong_type,
    Lies.a_number,
    Lies.a_list,
    Lies.nothing,
    Lies.half_of_it,
)
DECLINED: Final = {"type": "CardDeclined", "message": "no funds"}


class Pair:
    """Two replicas, each behind a proxy of its own in front of one Valkey."""

    def __init__(self, valkey: ValkeyServer, proxies: tuple[RedisProxy, RedisProxy], url: str) -> None:
        self.valkey = valkey
        self.proxies = proxies
        self.one, self.other = (
            ServiceProcess(url, TWICESHY_REDIS=proxy.url, TWICESHY_LOG="problems") for proxy in proxies
        )
        self._before: dict[tuple[int, str], float] = {}

    def calm(self) -> None:
        """Let the weather be fair, and count anew."""
        for proxy in self.proxies:
            proxy.lie = None
            proxy.pass_on()
        for service in (self.one, self.other):
            reached(service)
            self._before |= {(service.port, name): value for name, value in meters(service).items()}

    def count(self, service: ServiceProcess, name: str) -> float:
        """Say by how much a meter of Redis has grown since, as `recalls_total{answer="hit"}`."""
        return meters(service).get(name, 0.0) - self._before.get((service.port, name), 0.0)

    def done(self, run: str, number: int, *, by: ServiceProcess) -> Reply:
        """Begin and commit."""
        granted = by.begin(run, arguments={"n": number})
        assert granted.status == 201, granted
        assert by.report("commit", granted, result={"paid": number}).status == 200
        return granted


@pytest.fixture(scope="module")
def replicas(postgres_server: PostgresServer, postgres_template: str) -> Iterator[Pair]:
    valkey = ValkeyServer()
    databases = fresh_database(postgres_server, postgres_template)
    try:
        valkey.start()
        with RedisProxy(valkey.port) as left, RedisProxy(valkey.port) as right:
            two = Pair(valkey, (left, right), next(databases))
            with two.one, two.other:
                two.one.ask("PUT", "/v1/tools/pay", {"arguments": {"identity": ["/n"]}})
                yield two
        next(databases, None)
    finally:
        valkey.remove()


@pytest.fixture
def pair(replicas: Pair) -> Pair:
    replicas.calm()
    return replicas


def reached(service: ServiceProcess, *, is_reached: bool = True) -> None:
    """Wait until a replica says that it reaches Redis, or that it does not."""
    wait_until(lambda: service.ask("GET", "/v1/status").body["redis"]["is_reached"] is is_reached)


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def meters(service: ServiceProcess) -> dict[str, float]:
    """Read all meters of Redis."""
    lines = str(service.ask("GET", "/metrics").body).splitlines()
    told = (
        line.removeprefix("twiceshy_redis_").rpartition(" ") for line in lines if line.startswith("twiceshy_redis_")
    )
    return {name: float(value) for name, _, value in told}


def about_entries(lie: Callable[[Command, Any], Any]) -> Callable[[Command, Any], Any]:
    """Tell the truth about all but entries."""
    return lambda command, true: lie(command, true) if command[0] == b"GETRANGE" else true


def answers_of_every_state(pair: Pair, run: str) -> None:
    """Let the first replica begin effects that come to every state, and the second be asked about each of them."""
    pair.done(run, 0, by=pair.one)
    rejected, executing, doubtful = (pair.one.begin(run, arguments={"n": number}) for number in (1, 2, 3))
    assert pair.one.report("fail", rejected, kind="rejected", error=DECLINED).status == 200
    assert pair.one.report("fail", doubtful, kind="unknown", error=DECLINED).status == 200
    answers = [pair.other.begin(run, arguments={"n": number}) for number in range(5)]
    assert [answer.status for answer in answers] == [200, 200, 409, 409, 201]
    assert answers[0].body["outcome"] == {"result": {"paid": 0}}
    assert answers[1].body["outcome"] == {"error": DECLINED}
    assert (answers[2].code, answers[3].code) == ("in-progress", "outcome-in-doubt")
    assert pair.other.report("commit", answers[4], result="fresh").status == 200
    assert pair.one.report("commit", executing, result="slow").status == 200
    assert pair.other.begin(run, arguments={"n": 2}).body["outcome"] == {"result": "slow"}
    assert pair.one.begin(run, arguments={"n": 4}).body["outcome"] == {"result": "fresh"}


def test_no_lie_about_any_effect_changes_an_answer(pair: Pair) -> None:
    proxy = pair.proxies[1]
    for lie in LIES:
        proxy.lie = about_entries(lie.__get__(proxy.lies))
        answers_of_every_state(pair, lie.__name__)
    assert pair.count(pair.other, 'recalls_total{answer="hit"}') <= len(LIES)  # where the older entry is the true one
    assert pair.count(pair.other, 'refused_total{why="unsealed"}') >= 12
    assert pair.count(pair.other, 'refused_total{why="oversized"}') >= 6
    assert pair.count(pair.other, 'refused_total{why="wrong-type"}') >= 6
    assert meters(pair.other)["reached"] == 1
    assert pair.count(pair.one, 'recalls_total{answer="hit"}') >= len(LIES)


def test_a_redis_that_loses_everything_loses_no_answer(pair: Pair) -> None:
    for number in range(10):
        pair.done("lost", number, by=pair.one)
    wait_until(lambda: pair.count(pair.one, 'writes_total{answer="sent"}') >= 10)
    with socket.create_connection(("127.0.0.1", pair.valkey.port), timeout=5) as connection:
        connection.sendall(b"FLUSHALL\r\n")
        assert connection.recv(10) == b"+OK\r\n"
    for number in range(10):
        assert pair.other.begin("lost", arguments={"n": number}).body["outcome"] == {"result": {"paid": number}}
    assert pair.count(pair.other, 'recalls_total{answer="hit"}') == 0


def test_a_frozen_redis_is_waited_for_by_few_and_then_by_nobody(pair: Pair) -> None:
    for number in range(60):
        pair.done("frozen", number, by=pair.one)
    pair.valkey.freeze()
    for number in range(60):
        assert pair.other.begin("frozen", arguments={"n": number}).body["outcome"] == {"result": {"paid": number}}
    reached(pair.other, is_reached=False)
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda n: pair.other.begin("crowd", arguments={"n": n}).status, range(120)))
    assert answers == [201] * 120
    assert pair.count(pair.other, 'failures_total{why="slow"}') in (
        1,
        2,
        3,
    )  # a read, and what was to be written or told just then
    assert pair.count(pair.other, 'recalls_total{answer="away"}') >= 178
    shown = pair.other.ask("GET", "/v1/status").body["redis"]
    assert (shown["address"], shown["is_reached"]) == (pair.proxies[1].url, False)
    assert pair.other.ask("GET", "/health/ready").status == 200
    pair.valkey.thaw()
    reached(pair.other)
    reached(pair.one)
    answers_of_every_state(pair, "later")
    assert pair.count(pair.other, 'recalls_total{answer="hit"}') >= 1


def test_a_replica_that_is_cut_off_from_redis_agrees_with_the_other(pair: Pair) -> None:
    pair.proxies[0].hold_up()
    answers_of_every_state(pair, "cut off")
    with ThreadPoolExecutor(16) as pool:
        asked = [pair.one, pair.other] * 20
        statuses = list(pool.map(lambda service: service.begin("at once", arguments={"n": 0}).status, asked))
    assert sorted(statuses) == [201] + [409] * 39
    reached(pair.one, is_reached=False)
    assert meters(pair.other)["reached"] == 1
    pair.proxies[0].pass_on()
    reached(pair.one)
    answers_of_every_state(pair, "again")


def test_a_redis_that_is_killed_and_started_again_is_used_again(pair: Pair) -> None:
    for number in range(5):
        pair.valkey.kill()
        answers_of_every_state(pair, f"without {number}")
        pair.valkey.start()
        answers_of_every_state(pair, f"with {number}")
    reached(pair.one)
    reached(pair.other)
    pair.calm()
    granted = pair.done("used again", 1, by=pair.one)
    wait_until(lambda: pair.count(pair.one, 'writes_total{answer="sent"}') >= 1)
    replayed = pair.other.begin("used again", arguments={"n": 1})
    assert replayed.body["key"] == granted.body["key"]
    assert pair.count(pair.other, 'recalls_total{answer="hit"}') == 1
