"""A fork: a run that goes on from a point of another one, and may do less."""

from typing import Literal

import msgspec

from guard.core.effects import RunId
from twiceshy_contract.names import ToolName
from twiceshy_contract.policies import Expression


class LiveTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that may really run in a fork: calls whose `arguments` make `when` true, at most `calls` of them."""

    tool: ToolName
    when: Expression | None = None
    calls: int | None = None


class Fork(msgspec.Struct, frozen=True, kw_only=True):
    """Where a fork comes from and what it may do: up to step `at` of its parent all is from the record."""

    parent: str
    parent_id: RunId
    at: int
    reads: Literal["live", "recorded"] = "live"
    live: tuple[LiveTool, ...] = ()
