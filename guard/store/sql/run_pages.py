"""Listings of runs, newest first. An index leads to the runs of each workflow, reference, tag, fact and parent."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy import Connection

from guard.core.effects import TenantId
from guard.core.runs import Run
from guard.ports.search import RunFilter
from guard.store.sql.codes import RUN_STATE_CODES
from guard.store.sql.recording_tables import run_facts, run_tags
from guard.store.sql.rows import run_of
from guard.store.sql.run_facts import is_latest
from guard.store.sql.tables import runs
from twiceshy_contract.facts import fact_text
from twiceshy_contract.runs import Fact


def select_page(connection: Connection, tenant: TenantId, chosen: RunFilter, last: UUID | None) -> list[Run]:
    """Select the chosen runs that come next, newest first, one more than the page holds."""
    statement = sa.select(runs).where(runs.c.tenant == tenant)
    for tag in dict.fromkeys(chosen.tags):
        statement = _tagged(statement, tenant, tag)
    for name, value in dict.fromkeys(chosen.facts):
        statement = _with_fact(statement, tenant, name, value)
    statement = statement.where(*_conditions(chosen))
    if last is not None:
        statement = statement.where(runs.c.id < last)
    statement = statement.order_by(runs.c.id.desc()).limit(chosen.limit + 1)
    return [run_of(row) for row in connection.execute(statement)]


def _tagged(statement: sa.Select[Any], tenant: TenantId, tag: str) -> sa.Select[Any]:
    tagged = run_tags.alias()
    is_tagged = (tagged.c.tenant == tenant) & (tagged.c.tag == tag) & (tagged.c.run_id == runs.c.id)
    return statement.join(tagged, is_tagged)


def _with_fact(statement: sa.Select[Any], tenant: TenantId, name: str, value: Fact) -> sa.Select[Any]:
    told = run_facts.alias()
    is_told = (told.c.tenant == tenant) & (told.c.name == name) & (told.c.value == fact_text(value))
    return statement.join(told, is_told & (told.c.run_id == runs.c.id)).where(is_latest(told))


def _conditions(chosen: RunFilter) -> list[sa.ColumnElement[bool]]:
    """Say which rows of runs are chosen."""
    wanted: list[sa.ColumnElement[bool]] = []
    if chosen.state is not None:
        wanted.append(runs.c.state == RUN_STATE_CODES[chosen.state])
    if chosen.fork_of is not None:
        wanted.append(runs.c.parent_id == chosen.fork_of)
    if chosen.child_of is not None:
        wanted.append(runs.c.child_of == chosen.child_of)
    if chosen.workflow is not None:
        wanted.append(runs.c.workflow == chosen.workflow)
    if chosen.reference is not None:
        wanted.append(runs.c.reference == chosen.reference)
    return wanted
