"""Wire structs of the key preview: how a call canonicalises, without any effect."""

import msgspec

from twiceshy_contract.names import BusinessKey, CallerStep, KeyRule, Occurrence, RunName, ToolName
from twiceshy_contract.wire import EffectKey


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The part of a begin that names an effect."""

    tool: ToolName
    arguments: dict[str, object]
    run: RunName | None = None
    business_key: BusinessKey | None = None
    step: CallerStep | None = None
    occurrence: Occurrence = 1


class KeyView(msgspec.Struct, frozen=True, kw_only=True):
    """How the call is understood, by the tool as it holds now; a run that used the tool before keeps to its version.

    `key` is that of the slot's first instance; it is null while its run is unknown: a run's key begins with its start.

    `identity` and `content` are the canonical texts of the arguments with these roles.
    """

    key: EffectKey | None
    rule: KeyRule
    tool: str
    tool_version: int
    identity: str
    identity_digest: str
    content: str
    arguments_digest: str
