"""Probe: ask the providers of doubtful effects over HTTP, where their tools say how, and settle what they prove.

A provider that hangs holds up nobody else: each tool has two questions under way at once, one where the last got no
answer; all tools together have many more, some of them kept for tools with none; and every question ends. What is
asked is claimed, so that replicas do not ask twice at once; whoever dies in between leaves a claim that runs out.
"""

import asyncio
from collections import Counter
from typing import Final, assert_never

import msgspec

from guard.core import lease as leases
from guard.core.effects import Duration, Effect, TenantId, moment, seconds
from guard.core.probing import (
    Applied,
    Finding,
    NotApplied,
    Unproven,
    read_reply,
    request_of,
    room,
    secrets_in,
    without_secrets,
)
from guard.core.tools import Tool
from guard.logs import logger
from guard.ports.probes import Claim, ProbeStore
from guard.ports.probing import NoReply, Provider
from guard.ports.steps import Found
from guard.ports.store import StoreUnavailable
from guard.service.amend import look
from guard.service.intake import Intake
from guard.service.measures import Measures
from guard.service.outcomes import Refused, Settled
from guard.service.registry import Registry
from guard.service.resolve import Resolve
from twiceshy_contract.effects import ResolveRequest
from twiceshy_contract.policies import HttpProbe
from twiceshy_contract.refusals import Refusal

PROBE_SECONDS: Final = 1.0
_GRACE: Final = seconds(3)
"""How much longer than its question a claim lasts: time to write what was said."""
_LONGEST_TEXT: Final = 500

_ToolName = tuple[TenantId, str]

_log = logger("guard.probe")


class Asked(msgspec.Struct, frozen=True):
    """Who is asked, and who counts the answers."""

    provider: Provider
    measures: Measures


class Prober:
    """Asks in turn about every effect in open doubt whose tool has an HTTP probe."""

    def __init__(self, store: ProbeStore, registry: Registry, intake: Intake, resolve: Resolve, asked: Asked) -> None:
        self._store = store
        self._registry = registry
        self._intake = intake
        self._resolve = resolve
        self._provider = asked.provider
        self._measures = asked.measures
        self._asking: dict[asyncio.Task[None], _ToolName] = {}
        self._silent: set[_ToolName] = set()

    async def run(self) -> None:
        """Ask for ever; a database that is away is tried again."""
        try:
            while True:
                try:
                    if await self._start_due() and self._asking:
                        await asyncio.wait(self._asking, timeout=PROBE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                        continue
                except StoreUnavailable as error:
                    _log.warning("probes_postponed", reason=str(error))
                except Exception:  # noqa: BLE001  an end of this loop would leave every later doubt to people
                    _log.error("probes_failed", exc_info=True)
                await asyncio.sleep(PROBE_SECONDS)
        finally:
            for asking in self._asking:
                asking.cancel()
            await asyncio.gather(*self._asking, return_exceptions=True)

    async def run_once(self) -> int:
        """Ask once about what is due, as far as there is room, and wait for the answers; return how many were asked."""
        started = await self._start_due()
        if self._asking:
            await asyncio.wait(self._asking)
        return started

    async def _start_due(self) -> int:
        """Claim what is due, as far as there is room, and begin to ask."""
        started = 0
        for tenant, name in await self._store.due_tools():
            tool = (await self._registry.find(tenant, name)).tool
            of_the_tool = Counter(self._asking.values())[tenant, name]
            most = room(len(self._asking), of_the_tool, is_silent=(tenant, name) in self._silent)
            if tool.declaration.probe is None or most == 0:
                continue
            hold = Duration(seconds(tool.declaration.probe.timeout_seconds) + _GRACE)
            for claim in await self._store.claim(tenant, [name], most, hold):
                self._ask_beside(claim, tool, tool.declaration.probe)
                started += 1
        return started

    def _ask_beside(self, claim: Claim, tool: Tool, probe: HttpProbe) -> None:
        asking = asyncio.create_task(self._ask_safely(claim, tool, probe))
        self._asking[asking] = (tool.tenant, tool.name)
        asking.add_done_callback(self._asking.pop)

    async def _ask_safely(self, claim: Claim, tool: Tool, probe: HttpProbe) -> None:
        """Ask; what fails is left to the claim, which runs out."""
        try:
            await self._ask(claim, tool, probe)
        except StoreUnavailable as error:
            _log.warning("probe_postponed", key=claim.key.hex(), reason=str(error))
        except Exception:  # noqa: BLE001  one effect's failure is none of the others'
            _log.error("probe_failed", key=claim.key.hex(), exc_info=True)

    async def _ask(self, claim: Claim, tool: Tool, probe: HttpProbe) -> None:
        """Read the effect, ask its provider, and settle what the answer proves as of that reading."""
        found = await self._intake.do(claim.key, look(claim.key))
        effect = found.effect
        if effect is None or effect.life.state != "in_doubt":
            await self._store.forget(claim.key)
            return
        finding, said = await self._find_out(probe, effect, tool)
        self._measures.probed(tool, _WORDS[type(finding)])
        if isinstance(finding, Unproven):
            await self._store.answered(claim, said, None)
            return
        outcome = await self._resolve(tool.tenant, claim.key, _resolution(finding, said, effect, found))
        match outcome:
            case Settled():
                _log.info("probe_settled", key=claim.key.hex(), tool=tool.name, state=outcome.effect.life.state)
            case Refused():
                rules = await self._registry.rules_for(effect)
                await self._store.answered(claim, said, leases.settles_at(effect.life, rules))
            case _:
                assert_never(outcome)

    async def _find_out(self, probe: HttpProbe, effect: Effect, tool: Tool) -> tuple[Finding, str]:
        """Ask the provider; return what its answer proves, and the same in words, both without what is secret."""
        try:
            request = request_of(probe, effect, self._provider.secrets)
            reply = await self._provider.ask(request)
        except Refusal as refusal:
            return _nothing(f"nothing was asked: {f'at {refusal.path}: ' if refusal.path else ''}{refusal.reason}")
        except NoReply as silence:
            self._silent.add((tool.tenant, tool.name))
            return _nothing(f"no answer: {silence}")
        self._silent.discard((tool.tenant, tool.name))
        finding = without_secrets(read_reply(probe, effect, reply), secrets_in(request, self._provider.secrets))
        said = finding.reason if isinstance(finding, Unproven) else f"{_WORDS[type(finding)]}, status {reply.status}"
        return finding, _text(said)


_WORDS: Final = {Applied: "applied", NotApplied: "not applied", Unproven: "unproven"}


def _nothing(reason: str) -> tuple[Unproven, str]:
    return Unproven(reason), _text(reason)


def _resolution(finding: Applied | NotApplied, said: str, effect: Effect, found: Found) -> ResolveRequest:
    reason, as_of = f"its provider was asked over HTTP and says: {said}", moment(found.at)
    match finding:
        case Applied(result=result):
            return ResolveRequest(as_="applied", fence=effect.life.fence, reason=reason, result=result, as_of=as_of)
        case NotApplied():
            return ResolveRequest(as_="not_applied", fence=effect.life.fence, reason=reason, as_of=as_of)
        case _:
            assert_never(finding)


def _text(said: str) -> str:
    """Return words that every database takes, and not too many: some are the provider's."""
    return "".join(character if character.isprintable() else " " for character in said)[:_LONGEST_TEXT]
