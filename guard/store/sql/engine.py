"""The store over one SQL database, opened by its address."""

import asyncio

import sqlalchemy as sa

from guard.ports.approvals import ApprovalStore
from guard.ports.description import Description
from guard.ports.epochs import CacheEpochStore
from guard.ports.events import EventStore
from guard.ports.flags import FlagStore
from guard.ports.forks import ForkStore
from guard.ports.holds import HoldStore
from guard.ports.loops import LoopStore
from guard.ports.outbox import DestinationStore, OutboxStore
from guard.ports.pauses import PauseStore
from guard.ports.probes import ProbeStore
from guard.ports.replies import ReplyStore
from guard.ports.retention import RetentionStore
from guard.ports.run_facts import RunFactStore
from guard.ports.sagas import SagaStore
from guard.ports.salts import SaltStore
from guard.ports.search import SearchStore
from guard.ports.store import EffectStore, RunStore, Store, ToolStore
from guard.ports.wire import Wire
from guard.store.sql import schema
from guard.store.sql.address import FileAddress, parse
from guard.store.sql.approvals import SqlApprovals
from guard.store.sql.database import Database
from guard.store.sql.describe import describe
from guard.store.sql.destinations import SqlDestinations
from guard.store.sql.effects import SqlEffects
from guard.store.sql.epochs import SqlCacheEpochs
from guard.store.sql.event_search import SqlSearch
from guard.store.sql.events import SqlEvents
from guard.store.sql.flags import SqlFlags
from guard.store.sql.fork_records import SqlForks
from guard.store.sql.holds import SqlHolds
from guard.store.sql.loops import SqlLoops
from guard.store.sql.outbox import SqlOutbox
from guard.store.sql.pauses import SqlPauses
from guard.store.sql.postgresql import PostgresDatabase
from guard.store.sql.probes import SqlProbes
from guard.store.sql.relay import SqlRelay
from guard.store.sql.relay_postgresql import PostgresTurns
from guard.store.sql.relay_sqlite import SqliteTurns
from guard.store.sql.replies import SqlReplies
from guard.store.sql.retention import SqlRetention
from guard.store.sql.run_facts import SqlRunFacts
from guard.store.sql.runs import SqlRuns
from guard.store.sql.sagas import SqlSagas
from guard.store.sql.salts import Salts
from guard.store.sql.sqlite import SqliteDatabase
from guard.store.sql.tools import SqlTools
from guard.store.sql.wake import FileBell, ServerBell
from guard.store.sql.wire import FileWire, ServerWire


class SqlStore:
    """The port's store over one database."""

    def __init__(self, database: Database, relay: SqlRelay, wire: Wire) -> None:
        """Stand on a database whose schema is this code's."""
        self._database = database
        self.wire: Wire = wire
        self.salts: SaltStore = Salts(database)
        self.cache_epochs: CacheEpochStore = SqlCacheEpochs(database)
        self.effects: EffectStore = SqlEffects(database)
        self.runs: RunStore = SqlRuns(database)
        self.run_facts: RunFactStore = SqlRunFacts(database)
        self.search: SearchStore = SqlSearch(database)
        self.tools: ToolStore = SqlTools(database)
        self.loops: LoopStore = SqlLoops(database)
        self.events: EventStore = SqlEvents(database, self.salts)
        self.retention: RetentionStore = SqlRetention(database)
        self.holds: HoldStore = SqlHolds(database)
        self.flags: FlagStore = SqlFlags(database)
        self.probes: ProbeStore = SqlProbes(database)
        self.forks: ForkStore = SqlForks(database)
        self.pauses: PauseStore = SqlPauses(database)
        self.approvals: ApprovalStore = SqlApprovals(database)
        self.sagas: SagaStore = SqlSagas(database)
        self.outbox: OutboxStore = SqlOutbox(database)
        self.destinations: DestinationStore = SqlDestinations(database)
        self.relay: SqlRelay = relay
        self.replies: ReplyStore = SqlReplies(database)

    async def check(self) -> None:
        """Ask the database for anything. Raises StoreUnavailable."""
        await self._database.read(lambda connection: connection.execute(sa.select(sa.literal(1))).scalar_one())

    async def describe(self) -> Description:
        """Describe the database, by a transaction that could write. Raises StoreUnavailable."""
        needed = await asyncio.to_thread(schema.head)
        return await self._database.write(lambda connection, at: describe(connection, at, needed))

    async def close(self) -> None:
        """Give back all connections."""
        await self.wire.close()
        await self.relay.close()
        await self._database.close()


async def open_store(url: str) -> Store:
    """Open the database of `sqlite:///path` or `postgresql://user:password@host:port/database`.

    Raises DatabaseRefused where it cannot be used (address, file or schema), and StoreUnavailable.
    """
    address = parse(url)
    if isinstance(address, FileAddress):
        await schema.require_file(address)
        database: Database = SqliteDatabase(address)
        relay = SqlRelay(database, SqliteTurns(database), FileBell(address))
        wire: Wire = FileWire(address)
    else:
        server = PostgresDatabase(address)
        database, relay = server, SqlRelay(server, PostgresTurns(server), ServerBell(server))
        wire = ServerWire(server)
    try:
        await schema.require_current(database, address)
    except BaseException:
        await database.close()
        raise
    return SqlStore(database, relay, wire)
