"""What the SDK reads of the service's answers. Members that it does not need, or that are newer, are passed over."""

from typing import TypeAlias
from uuid import UUID

import msgspec

from twiceshy_contract.effects import Drift, Outcome
from twiceshy_contract.names import EffectClass, PublicState


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """Which effect an answer is about."""

    key: str
    tool: str
    run: str | None
    fence: int


class Execute(_About, frozen=True, kw_only=True, tag_field="decision", tag="execute"):
    """The lease is held; `arguments`, where not null, are the ones to run."""

    attempt: UUID
    arguments: dict[str, object] | None
    downstream_key: str
    lease_seconds_left: float


class Replay(_About, frozen=True, kw_only=True, tag_field="decision", tag="replay"):
    """It happened before."""

    outcome: Outcome
    committed_at: str
    drift: Drift | None = None


Begun: TypeAlias = Execute | Replay


class Effect(_About, frozen=True, kw_only=True):
    """The effect after commit, fail, renew or resolve."""

    state: PublicState
    lease_seconds_left: float | None = None
    retry_after_seconds: float | None = None


class DeclaredClass(msgspec.Struct, frozen=True, kw_only=True):
    """The class that the registry holds."""

    class_: EffectClass = msgspec.field(name="class")


class DeclaredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool in the registry."""

    declaration: DeclaredClass
