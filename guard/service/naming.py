"""From a call to the effect that it names: tool, scope, slot, arguments as they are read."""

from collections.abc import Mapping
from typing import Self
from uuid import UUID

import msgspec

from guard.core.admission import Call
from guard.core.arguments import Reading, arguments_of
from guard.core.effects import AttemptToken, Effect, Instant, Intent, Key, RunId, TenantId
from guard.core.keys import effect_key, slot
from guard.core.lease import Rules, narrowed, stricter
from guard.core.situation import ApprovalStanding
from guard.ports.steps import Consent
from guard.service.outcomes import Refused
from guard.service.registry import KnownTool, Registry
from guard.service.runs import KnownRun, Runs
from guard.service.saga_calls import check_compensation
from guard.service.understanding import slot_value, understood_by
from guard.service.verdicts import only_reads
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.names import KeyRule
from twiceshy_contract.policies import ApprovalRule
from twiceshy_contract.redaction import redacted, restored
from twiceshy_contract.refusals import Refusal


class NeededApproval(msgspec.Struct, frozen=True, kw_only=True):
    """The approval that an effect needs, and the arguments (JSON text) that an approver put in their place."""

    id: UUID
    key: Key
    standing: ApprovalStanding
    summary: str
    quorum: int
    expires_at: Instant | None
    edited: bytes | None = None

    def standing_at(self, now: Instant) -> ApprovalStanding:
        """Say how it stands by the clock of the database."""
        is_late = self.expires_at is not None and self.expires_at <= now
        return "expired" if self.standing == "open" and is_late else self.standing


class NamedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call with everything that its key is made of.

    How it is named is its run's version of the tool, which does not change; `rules` are those of `held`, the
    registry's version of today. Where an effect of another version may be met that is allowed less than these, the
    rules of all `versions` are known. What the gates find out is added: from which instance of the slot to `start`,
    whether it `is_newest`, how the `approval` stands, how many `edits` of persons have come to these arguments and are
    over, and the `hold` that must be held still.

    A call that a fork lets run may need an approval whatever its tool says, or by rules that the runs of the fork's
    record keep to (`also_asked`), and only so many of its tool may run: `most`, counted in the run `counted_in`. Where
    a person has let it run, it is the call of the key `allowed` and no other.

    A call repeats where an instance before `start` has succeeded and its window has not passed, however those between
    ended: a repeat that was denied does not hide the success before it.
    """

    tenant: TenantId
    named_by: KnownTool
    held: KnownTool
    rules: Rules
    reading: Reading
    rule: KeyRule
    slot: bytes
    run_id: RunId | None
    request: BeginRequest
    versions: Mapping[int, Rules] = {}
    is_forked: bool = False
    start: int = 1
    is_newest: bool = False
    approval: NeededApproval | None = None
    edits: int | None = None
    hold: UUID | None = None
    needs_approval: bool = False
    also_asked: tuple[ApprovalRule, ...] = ()
    most: int | None = None
    counted_in: RunId | None = None
    allowed: Key | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing but the effect itself decides about the call: no gate stands before it."""
        request = self.request
        return not (
            self.is_forked
            or self.named_by.needs_gates
            or self.held.needs_gates
            or request.delivered
            or request.saga is not None
        )

    @property
    def consent(self) -> Consent | None:
        """What persons have said, and must not have taken back when a lease is granted."""
        asked = self.approval
        approval = None if asked is None or asked.standing != "approved" else asked.id
        return None if self.edits is None and approval is None else Consent(edits=self.edits, approval=approval)

    @property
    def compared(self) -> Call:
        """What must agree with the effect that the key names."""
        return Call(
            tool=self.request.tool,
            identity_digest=self.reading.identity_digest,
            arguments_digest=self.reading.arguments_digest,
        )

    def is_to_the_letter(self, effect: Effect) -> bool:
        """Say whether an effect is of this very call: same tool, read by the same version, same arguments."""
        intent = effect.intent
        return (
            intent.arguments_digest == self.reading.arguments_digest
            and intent.tool_version == self.named_by.tool.version
            and intent.tool == self.request.tool
        )

    def rules_for(self, effect: Effect) -> Rules:
        """Return today's rules, but no lower class than the effect's own version has; its run's does not matter to it.

        An attempt sent the downstream key only if its version promised a window.
        """
        version = effect.intent.tool_version
        if version == self.named_by.tool.version:
            return self.rules
        own = self.versions[version].effect_class if version in self.versions else "side_effect"
        effect_class = stricter(self.held.rules.effect_class, own)
        return msgspec.structs.replace(self.rules, provider_window=None, effect_class=effect_class)

    def as_read_now(self, effect: Effect) -> Effect:
        """Return the effect with its digests as this call's roles read its arguments.

        An honest replay agrees with the record even where the tool's roles were declared anew since.
        """
        if effect.intent.tool_version == self.named_by.tool.version or effect.intent.tool != self.request.tool:
            return effect
        reading = self.reading  # a record that has expired cannot be read any more: it is one of this very call
        if effect.expired_at is None:
            recorded = restored(arguments_of(effect.intent.arguments), self.request.arguments)
            try:
                reading = self.named_by.reader.read(recorded)
            except Refusal:
                return effect
        intent = msgspec.structs.replace(
            effect.intent, identity_digest=reading.identity_digest, arguments_digest=reading.arguments_digest
        )
        return msgspec.structs.replace(effect, intent=intent)

    def may_hide_newer(self, effect: Effect) -> bool:
        """Say whether a final effect may stand before newer instances of its slot, made by rules of before.

        Within a run that is so only of what the run knew: its rules of windows and repeats stay.
        """
        is_own = effect.life.attempt(AttemptToken(self.request.attempt)) is not None
        has_others = effect.intent.slot is not None and (self.is_tenant_wide or effect.delivered)
        is_of_tool = effect.intent.tool == self.request.tool
        may_hide = effect.is_final and is_of_tool and has_others and not self.rules.is_counted
        return may_hide and not self.is_newest and not is_own

    def is_of_another_run(self, effect: Effect) -> bool:
        """Say whether an effect was done by another run than the caller's."""
        return effect.intent.run_id != self.run_id

    def from_instance_of(self, effect: Effect | None) -> Self:
        """Return the call as it starts from an instance of its slot."""
        if effect is None or not (self.named_by.looks_up or effect.intent.slot is not None):
            return self
        return msgspec.structs.replace(self, start=effect.intent.generation - effect.intent.occurrence + 1)

    @property
    def stored_arguments(self) -> dict[str, object]:
        """The arguments as they may be stored: without what the run's version or today's says must not be."""
        pinned, todays = self.named_by.tool.declaration.redacted, self.held.tool.declaration.redacted
        return redacted(self.request.arguments, pinned + todays) if pinned or todays else self.request.arguments

    @property
    def lane(self) -> bytes:
        """What decides the lane: a run's calls go through one."""
        return (self.request.run or self.request.business_key or "").encode()

    def key(self, rank: int) -> Key:
        """Return the key of the slot's instance; `rank` counts from 1 and grows with each rejected one."""
        return effect_key(self.slot, self._key_run, self.request.occurrence, rank)

    def intent(self, rank: int) -> Intent:
        """Return the intent for the slot's instance. The store sets when it began and its step."""
        request = self.request
        return Intent(
            key=self.key(rank),
            tenant=self.tenant,
            run_id=self.run_id,
            run=request.run,
            step=None,
            tool=request.tool,
            tool_version=self.named_by.tool.version,
            rule=self.rule,
            caller_step=None if request.step is None else str(request.step),
            business_key=request.business_key,
            occurrence=request.occurrence,
            generation=request.occurrence + rank - 1,
            identity_digest=self.reading.identity_digest,
            arguments_digest=self.reading.arguments_digest,
            arguments=msgspec.json.encode(self.stored_arguments),
            worker=request.worker,
            began_at=Instant(0),
            slot=self.slot if self.named_by.looks_up else None,
        )

    @property
    def may_recall(self) -> bool:
        """Whether what this process has seen of a final effect answers the call."""
        return self.is_plain and not self.named_by.looks_up

    @property
    def needs_alone(self) -> bool:
        """Whether a doubtful effect of the tool in the run may be this one in other words."""
        request = self.request
        return (
            self.rule == "once"
            and not request.distinct
            and not self.named_by.has_roles
            and self.rules.effect_class == "side_effect"
            and self.run_id is not None
        )

    @property
    def _key_run(self) -> RunId | None:
        return None if self.is_tenant_wide else self.run_id

    @property
    def is_tenant_wide(self) -> bool:
        """Whether the intent is the tenant's and not its run's."""
        return self.rule == "business_key" or (self.rule == "once" and self.named_by.is_tenant_wide)


class Naming:
    """Understands calls."""

    def __init__(self, registry: Registry, runs: Runs) -> None:
        self._registry = registry
        self._runs = runs

    async def name(self, tenant: TenantId, request: BeginRequest) -> NamedCall | Refused:
        """Name a call; its run is opened where it is new. Raises Refusal for what cannot be understood."""
        if request.compensates is not None or isinstance(request.step, str):
            check_compensation(request)
        held = await self._registry.find(tenant, request.tool)
        named_by = held
        if held.rules.effect_class == "read" and not await self._takes_begins(tenant, request.run, held):
            return only_reads(request.tool)
        understood = understood_by(request, held)
        run = await self._run_of(tenant, request.run, understood)
        run_id = None if run is None else run.id
        if run_id is not None:
            named_by = await self._registry.pinned(tenant, run_id, held)
        if named_by is not held:
            understood = understood_by(request, named_by)
        if isinstance(understood, Refusal):
            raise understood
        call = named_call(tenant, request, understood, run, held, named_by)
        if not (call.is_tenant_wide and held.allows_something):
            return call
        return msgspec.structs.replace(call, versions=await self._registry.versions(held))

    async def _takes_begins(self, tenant: TenantId, run: str | None, held: KnownTool) -> bool:
        """Say whether a `read` tool is begun: in a fork, and in a run that used it when it was declared as more."""
        known = None if run is None else await self._runs.find(tenant, run)
        if known is None or known.fork is not None:
            return known is not None
        return (await self._registry.pinned(tenant, known.id, held)).rules.effect_class != "read"

    async def _run_of(
        self, tenant: TenantId, name: str | None, understood: tuple[KeyRule, Reading] | Refusal
    ) -> KnownRun | None:
        """Return the call's run; a new one is opened only for a call that can be understood."""
        if name is None:
            return None
        if not isinstance(understood, Refusal):
            return await self._runs.identify(tenant, name)
        known = await self._runs.get(tenant, name)
        if known is None:
            raise understood
        return KnownRun(id=known.id, fork=known.fork)


def named_call(
    tenant: TenantId,
    request: BeginRequest,
    understood: tuple[KeyRule, Reading],
    run: KnownRun | None,
    held: KnownTool,
    named_by: KnownTool,
) -> NamedCall:
    """Name a call that was understood by the version of its run."""
    rule, reading = understood
    run_id = None if run is None else run.id
    return NamedCall(
        tenant=tenant,
        named_by=named_by,
        held=held,
        rules=held.rules if named_by is held else narrowed(held.rules, named_by.rules),
        reading=reading,
        rule=rule,
        slot=slot(
            tenant,
            None if rule == "once" and named_by.is_tenant_wide else run_id,
            request.tool,
            rule,
            slot_value(request, rule, reading),
        ),
        run_id=run_id,
        request=request,
        is_forked=False if run is None else run.fork is not None,
    )
