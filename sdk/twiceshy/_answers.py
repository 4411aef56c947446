"""What the SDK reads of the service's answers. Members that it does not need, or that are newer, are passed over."""

from typing import TypeAlias
from uuid import UUID

import msgspec

from twiceshy_contract.effects import Drift, Outcome, Provenance, RepeatOf, SharedFrom
from twiceshy_contract.names import EffectClass, OnDoubt, PublicState


class _About(msgspec.Struct, frozen=True, kw_only=True):
    """Which effect an answer is about; `next_seq` is where the run's log goes on, where events were brought."""

    key: str
    tool: str
    run: str | None
    fence: int
    step: int | None = None
    next_seq: int | None = None


class Execute(_About, frozen=True, kw_only=True, tag_field="decision", tag="execute"):
    """The lease is held; `arguments`, where not null, are the ones to run."""

    attempt: UUID
    arguments: dict[str, object] | None
    downstream_key: str
    lease_seconds_left: float


class Replay(_About, frozen=True, kw_only=True, tag_field="decision", tag="replay"):
    """It happened before, where `repeat_of` says; `shared` where another run did it. `said` tells a model so."""

    outcome: Outcome
    committed_at: str
    repeat_of: RepeatOf | None = None
    drift: Drift | None = None
    shared: SharedFrom | None = None
    said: str = ""


class Stub(msgspec.Struct, frozen=True, kw_only=True, tag_field="decision", tag="stub"):
    """A fork may not run the tool: an outcome in its place, where it comes from, and the rule that decided so."""

    tool: str
    run: str
    outcome: Outcome
    provenance: Provenance
    rule: str
    origin: str | None = None
    next_seq: int | None = None


class Await(_About, frozen=True, kw_only=True, tag_field="decision", tag="await_approval"):
    """A person must decide; no lease is held meanwhile."""

    approval: UUID
    summary: str
    expires_at: str | None = None


class StagedNow(_About, frozen=True, kw_only=True, tag_field="decision", tag="staged"):
    """The messages are staged: one id for every row."""

    messages: tuple[UUID, ...]


class RenderAnew(_About, frozen=True, kw_only=True, tag_field="decision", tag="render"):
    """Nothing is staged: messages are to be made of these arguments, which a person has put in the call's place."""

    arguments: dict[str, object]


Begun: TypeAlias = Execute | Replay | Stub | Await
Settled: TypeAlias = StagedNow | RenderAnew | Replay | Stub | Await
"""What a call of a stage-only tool is answered with."""


class Effect(_About, frozen=True, kw_only=True):
    """The effect after commit, fail, renew or resolve."""

    state: PublicState
    lease_seconds_left: float | None = None
    retry_after_seconds: float | None = None


class HeldDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """What the registry holds of a tool, as far as the SDK obeys it."""

    class_: EffectClass = msgspec.field(name="class")
    share: bool | None = None
    on_doubt: OnDoubt | None = None
    provider_window_seconds: float | None = None
    provider_key_header: str | None = None
    redacted: tuple[str, ...] = ()


class DeclaredTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool in the registry."""

    declaration: HeldDeclaration
