"""Wire structs of probes: effects in doubt, handed to workers that can find out what became of them."""

from typing import Annotated

import msgspec

from twiceshy_contract.names import RunName, ToolName, WaitSeconds, Worker
from twiceshy_contract.wire import EffectKey

ClaimSeconds = Annotated[float, msgspec.Meta(ge=1, le=300)]


class ClaimProbesRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Ask for effects of these tools in open doubt, to find out at their providers what became of them.

    Nobody else is given them for `claim_seconds`, or for as long as one pauses after so many questions. Answer each by
    `resolve`, with its `fence` and its `as_of`; what cannot be found out needs no answer.
    """

    tools: Annotated[tuple[ToolName, ...], msgspec.Meta(min_length=1, max_length=100)]
    worker: Worker | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=100)] = 10
    wait_seconds: WaitSeconds = 0
    claim_seconds: ClaimSeconds = 30


class DoubtfulEffect(msgspec.Struct, frozen=True, kw_only=True):
    """An effect in doubt as it was read at `as_of`. That nothing was applied is believed from `settles_at` on.

    `tries` counts how often its provider was asked, this time too.
    """

    key: EffectKey
    tool: ToolName
    run: RunName | None
    step: int | None
    arguments: dict[str, object]
    fence: int
    downstream_key: str
    as_of: str
    settles_at: str | None
    settles_in_seconds: float
    claimed_until: str
    tries: int


class DoubtfulEffects(msgspec.Struct, frozen=True, kw_only=True):
    """What was claimed, longest in doubt first."""

    items: tuple[DoubtfulEffect, ...]


class ProbeView(msgspec.Struct, frozen=True, kw_only=True):
    """How often a doubtful effect's provider was asked, when it is asked next, and what it said last.

    Shown while the effect is in doubt.
    """

    tries: int
    next_at: str
    said: str | None
