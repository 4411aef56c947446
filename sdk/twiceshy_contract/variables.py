"""Every environment variable that Twiceshy reads. A name that is none of them is a slip, and is refused."""

import difflib
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

PREFIX: Final = "TWICESHY_"
SECRET_PREFIX: Final = "TWICESHY_SECRET_"
"""How the names of those variables begin that the headers of HTTP probes may hold; the rest of the name is free."""


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A setting from the environment: what it says, who reads it, and what holds where it is not set.

    `option` is the option of the command line, or the argument of `Guard`, that comes before it.
    """

    name: str
    meaning: str
    read_by: Literal["sdk", "server"]
    option: str = ""
    default: str = ""


VARIABLES: Final = (
    Variable(
        name="TWICESHY_URL",
        meaning="where the guard is: a service's `http://…` or `https://…`, or a database to embed it over, "
        "`sqlite:///file.db` or `postgresql://user:password@host:port/name`; commands without it fall back to "
        "`./twiceshy.db` where no service answers",
        read_by="sdk",
        option="Guard(url), --url",
        default="`sqlite:///twiceshy.db` for `Guard()`, `http://127.0.0.1:8700` for commands",
    ),
    Variable(
        name="TWICESHY_TOKEN",
        meaning="the bearer token for the service",
        read_by="sdk",
        option="Guard(token=…), --token",
    ),
    Variable(
        name="TWICESHY_SPOOL",
        meaning="the folder where outcomes wait that the service could not be told of",
        read_by="sdk",
        option="Guard(spool=…)",
        default="./twiceshy.spool",
    ),
    Variable(
        name="TWICESHY_RECORD",
        meaning="whether runs are recorded that do not say so themselves: `1` or `0`",
        read_by="sdk",
        option="Guard(record=…), guard.run(record=…)",
        default="0",
    ),
    Variable(
        name="TWICESHY_HOST",
        meaning="address to bind to; anything else than this machine needs tokens",
        read_by="server",
        option="--host",
        default="127.0.0.1",
    ),
    Variable(
        name="TWICESHY_PORT",
        meaning="port to bind to; 0 takes a free one",
        read_by="server",
        option="--port",
        default="8700",
    ),
    Variable(
        name="TWICESHY_DATABASE",
        meaning="`sqlite:///file.db` or `postgresql://user:password@host:port/name`",
        read_by="server",
        option="--database",
        default="sqlite:///twiceshy.db",
    ),
    Variable(
        name="TWICESHY_TOKENS",
        meaning="bearer tokens that are let in, separated by commas",
        read_by="server",
        option="--tokens",
    ),
    Variable(
        name="TWICESHY_APPROVERS",
        meaning="who alone may decide approvals: `name:token`, separated by commas; where it is not set, whoever is "
        "let in may, and is believed the name that is given",
        read_by="server",
        option="--approvers",
    ),
    Variable(
        name="TWICESHY_INBOUND_SECRETS",
        meaning="secrets of Standard Webhooks that sign mail which comes in, `whsec_…`, separated by commas; without "
        "one, none is taken",
        read_by="server",
        option="--inbound-secrets",
    ),
    Variable(
        name="TWICESHY_REDIS",
        meaning="Redis or Valkey that makes answers arrive sooner: `redis://user:password@host:6379/0`, `rediss://…`, "
        "`unix://…`, `redis+cluster://…` or `redis+sentinel://…`; without it all answers come from the database",
        read_by="server",
        option="--redis",
    ),
    Variable(
        name="TWICESHY_REDIS_SECONDS",
        meaning="how long after its end a final effect is found in Redis, a day at the most",
        read_by="server",
        option="--redis-seconds",
        default="3600",
    ),
    Variable(
        name="TWICESHY_RELAY_ALLOW",
        meaning="networks besides the public ones that messages may be sent into, separated by commas, such as "
        "`10.0.0.0/8,127.0.0.1/32`",
        read_by="server",
        option="--allow",
    ),
    Variable(
        name="TWICESHY_RELAY_FILES",
        meaning="the folder below which destinations of the kind `log` write their files, and nowhere else",
        read_by="server",
        default="the current folder",
    ),
    Variable(
        name="TWICESHY_SECRET_FILES",
        meaning="the folders below which destinations read secrets of the form `file:/path`, and nowhere else, "
        "separated by colons",
        read_by="server",
        default="/run/secrets",
    ),
    Variable(
        name="TWICESHY_WORKERS",
        meaning="how many processes serve the port together, on PostgreSQL",
        read_by="server",
        option="--workers",
        default="1",
    ),
    Variable(
        name="TWICESHY_LINGER_SECONDS",
        meaning="how long the service serves on after it is asked to stop, while `/health/ready` says 503, so that a "
        "load balancer takes it out first",
        read_by="server",
        option="--linger-seconds",
        default="0",
    ),
    Variable(
        name="TWICESHY_LOG",
        meaning="what is logged: `requests`, one line each, or `problems` alone",
        read_by="server",
        option="--log",
        default="requests",
    ),
    Variable(
        name="TWICESHY_SECRET_…",
        meaning="a secret that the headers of HTTP probes may hold, as `${env.TWICESHY_SECRET_…}`; the rest of the "
        "name is free",
        read_by="server",
    ),
)


def refusal_of_unknown(names: Iterable[str]) -> str | None:
    """Say which names of an environment look like settings and are none, and what was probably meant."""
    known = [variable.name.removeprefix(PREFIX) for variable in VARIABLES]
    settings = (name for name in names if name.startswith(PREFIX) and not name.startswith(SECRET_PREFIX))
    given = (name.removeprefix(PREFIX) for name in settings)
    unknown = sorted(name for name in given if name not in known)
    if not unknown:
        return None
    said = " ".join(f"{PREFIX}{name} is not a setting{did_you_mean(name, known, PREFIX)}" for name in unknown)
    return f"{said} Unset it or correct it."


def did_you_mean(name: str, known: Iterable[str], prefix: str = "") -> str:
    """End a sentence with the nearest known name, where one is near."""
    nearest = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {prefix}{nearest[0]}?" if nearest else "."
