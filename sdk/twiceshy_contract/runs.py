"""Wire structs of a run: one execution of an agent."""

from typing import Literal

import msgspec

from twiceshy_contract.forks import LiveTerms, Reads
from twiceshy_contract.names import RunName

RunState = Literal["open", "finished", "failed", "cancelled"]


class OpenRunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Open a run, or find it open."""

    run: RunName


class FinishRunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """End a run. It serves its record and takes no new effects."""

    as_: Literal["finished", "failed", "cancelled"] = msgspec.field(name="as", default="finished")


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run; `effects` is the `step` of its newest effect.

    A fork says of which run it is, and its terms; its steps count on from the cut, `at`.
    """

    run: str
    id: str
    state: RunState
    effects: int
    started_at: str
    ended_at: str | None
    fork_of: str | msgspec.UnsetType = msgspec.UNSET
    at: int | msgspec.UnsetType = msgspec.UNSET
    reads: Reads | msgspec.UnsetType = msgspec.UNSET
    live: tuple[LiveTerms, ...] | msgspec.UnsetType = msgspec.UNSET


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of runs, newest first."""

    items: tuple[RunView, ...]
    next: str | None
