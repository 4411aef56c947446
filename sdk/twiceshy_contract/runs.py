"""Wire structs of a run: one execution of an agent."""

from typing import Literal

import msgspec

from twiceshy_contract.names import RunName

RunState = Literal["open", "finished", "failed", "cancelled"]


class OpenRunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Open a run, or find it open."""

    run: RunName


class FinishRunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """End a run. It serves its record and takes no new effects."""

    as_: Literal["finished", "failed", "cancelled"] = msgspec.field(name="as", default="finished")


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run; `effects` counts what it began, which is the `step` of its newest effect."""

    run: str
    id: str
    state: RunState
    effects: int
    started_at: str
    ended_at: str | None


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of runs, newest first."""

    items: tuple[RunView, ...]
    next: str | None
