"""One service process on each database for the whole session; every test has names of its own.

The variable WEATHER says what befalls the Redis of both: `none` (they have none), `fair`, `lying`, `killed` or
`partitioned`. Where it is not set, the service on SQLite has no Redis, and the one on PostgreSQL has one whose weather
changes from one file of tests to the next, so that the whole suite meets every weather.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal
from uuid import uuid4

import pytest

from guard.store.sql.schema import migrate
from tests.integration.inbound import INBOUND_SECRETS
from tests.redis_weather import WEATHERS, Weather, WeatheredRedis, weather_of
from tests.servers import PostgresServer
from tests.service import ServiceProcess


@pytest.fixture(scope="session")
def weather() -> Weather | Literal["none"] | None:
    """What befalls Redis in all tests; None where each file of tests has a weather of its own."""
    said = os.environ.get("WEATHER", "")
    if said not in ("", "none", *WEATHERS):
        raise ValueError(f"WEATHER is none of none, {', '.join(WEATHERS)}: {said}")
    return next((one for one in WEATHERS if one == said), "none" if said else None)


@pytest.fixture(scope="session")
def weathered_redis() -> Iterator[WeatheredRedis]:
    redis = WeatheredRedis()
    try:
        yield redis
    finally:
        redis.remove()


@pytest.fixture(scope="session")
def sqlite_service(
    tmp_path_factory: pytest.TempPathFactory,
    weather: Weather | Literal["none"] | None,
    request: pytest.FixtureRequest,
) -> Iterator[ServiceProcess]:
    path: Path = tmp_path_factory.mktemp("service") / "guard.db"
    has_redis = weather not in (None, "none")
    redis = request.getfixturevalue("weathered_redis").url if has_redis else ""
    with ServiceProcess(f"sqlite:///{path}", TWICESHY_INBOUND_SECRETS=INBOUND_SECRETS, TWICESHY_REDIS=redis) as process:
        yield process


@pytest.fixture(scope="session")
def postgresql_service(
    postgres_server: PostgresServer, weather: Weather | Literal["none"] | None, request: pytest.FixtureRequest
) -> Iterator[ServiceProcess]:
    url = postgres_server.url()
    asyncio.run(migrate(url))
    redis = "" if weather == "none" else request.getfixturevalue("weathered_redis").url
    with ServiceProcess(url, TWICESHY_INBOUND_SECRETS=INBOUND_SECRETS, TWICESHY_REDIS=redis) as process:
        yield process


@pytest.fixture
def service(backend: str, weather: Weather | Literal["none"] | None, request: pytest.FixtureRequest) -> ServiceProcess:
    """A running service on the database of the test; what befalls its Redis is the test file's weather."""
    process: ServiceProcess = request.getfixturevalue(f"{backend}_service")
    if weather != "none" and (weather is not None or backend == "postgresql"):
        redis: WeatheredRedis = request.getfixturevalue("weathered_redis")
        redis.turn(weather_of(request.path) if weather is None else weather)
    return process


@pytest.fixture
def run() -> str:
    """A run that no other test uses."""
    return f"run-{uuid4().hex[:12]}"
