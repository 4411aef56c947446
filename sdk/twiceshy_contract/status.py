"""Wire structs of the status: what the service says of itself, its database and what waits for a person."""

from typing import Literal

import msgspec


class DatabaseView(msgspec.Struct, frozen=True, kw_only=True):
    """A database: the `revision` of its schema (null: none) and the one that is `needed`.

    `durability` are the settings that decide whether a power cut can take back what was answered, in the database's
    own words. `free_bytes` is the room that is left where a SQLite file is; null on PostgreSQL.
    """

    kind: Literal["sqlite", "postgresql"]
    version: str
    revision: str | None
    needed: str
    is_current: bool
    durability: dict[str, str]
    is_durable: bool
    free_bytes: int | None


class EffectTally(msgspec.Struct, frozen=True, kw_only=True):
    """How many effects wait for a person to settle them, and how many are being executed."""

    in_doubt: int
    executing: int


class OutboxTally(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages wait to be sent, how many of them wait for a person, and why.

    `dead` cannot be delivered, `unknown` may have arrived, `parked` wait before they are sent.
    """

    pending: int = 0
    dead: int = 0
    unknown: int = 0
    parked: int = 0
    oldest_pending_seconds: float = 0


class RedisView(msgspec.Struct, frozen=True, kw_only=True):
    """What makes answers arrive sooner: where it is, without its password, and whether it is reached; if not, why."""

    address: str
    is_reached: bool
    why: str | None = None


class StatusView(msgspec.Struct, frozen=True, kw_only=True):
    """A service: its version, the contract that it speaks, and the time by its database's clock.

    `lanes` is how many batches it keeps in flight at once. `redis` is null where the service was given none.
    """

    version: str
    contract: int
    now: str
    lanes: int
    database: DatabaseView
    effects: EffectTally
    outbox: OutboxTally = OutboxTally()
    redis: RedisView | None = None


class DatabaseStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A database that was looked at without a service in between, and its time."""

    now: str
    database: DatabaseView
    effects: EffectTally
    outbox: OutboxTally = OutboxTally()
