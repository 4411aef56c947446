"""Declare: tell the registry of a tool once a guard, again where it is defined anew, and obey what the registry holds.

What counts for a name is its newest definition: a tool that was defined before under it obeys that too.
"""

import logging
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from twiceshy._answers import DeclaredTool, HeldDeclaration
from twiceshy._ask import Answered, ask
from twiceshy._calls import ToolCall
from twiceshy._environment import Declared, Environment
from twiceshy._options import STRICTNESS, ToolRules, ToolSpec
from twiceshy._problems import refused, unavailable
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow
from twiceshy._transports.base import Request
from twiceshy_contract.names import EffectClass
from twiceshy_contract.problems import Problem

_TOOL: Final = msgspec.json.Decoder(DeclaredTool)
_log = logging.getLogger("twiceshy")


def declare(environment: Environment, call: ToolCall) -> Flow[ToolCall]:
    """Declare the call's tool, where this guard has not yet, and return the call under the rules that hold."""
    credential = environment.credential_of(call.run)
    held = known(environment, call.spec, credential)
    if held is None:
        until = environment.clock() + environment.limits.unavailable_seconds
        answer = yield from told(environment, call.spec, until=until, credential=credential)
        match answer:
            case Unanswered():
                raise unavailable(environment, call.reference, answer.reason)
            case Problem():
                raise refused(answer, call.reference)
            case DeclaredTool():
                held = answer.declaration
    return obeying(call, held)


def known(environment: Environment, spec: ToolSpec, credential: str | None = None) -> HeldDeclaration | None:
    """Return what the registry holds of a tool; None where it was not told of the newest definition."""
    kept = environment.declared.get(spec.name)
    said = _newest(environment, spec).declaration
    if kept is not None and (kept.said is said or kept.said == said):
        return kept.held
    heard = None if credential is None else environment.held_in_forks.get((credential, spec.name))
    return None if heard is None or heard.said != said else heard.held


def told(
    environment: Environment, spec: ToolSpec, *, until: float, credential: str | None = None
) -> Flow[DeclaredTool | Problem | Unanswered]:
    """Tell the registry of a tool's newest definition, and keep what it holds.

    The `credential` of a fork declares nothing: what the registry holds is heard, and the tool is declared later.
    """
    newest = _newest(environment, spec)
    body = msgspec.json.encode(newest.declaration)
    asked = Request(method="PUT", path=f"/v1/tools/{quote(spec.name, safe='')}", body=body, token=credential)
    answer = yield from ask(environment, asked, _TOOL, until=until)
    if not isinstance(answer, Answered):
        return answer
    held = answer.value.declaration
    before = environment.declared.get(spec.name)
    if before is None or before.held != held:
        _say_where_stricter(spec.name, newest.rules, held)
    heard = Declared(said=newest.declaration, held=held, at=environment.clock())
    if credential is None:
        environment.declared[spec.name] = heard
    else:
        environment.held_in_forks[credential, spec.name] = heard
    return answer.value


def obeying(call: ToolCall, held: HeldDeclaration) -> ToolCall:
    """Return a call under the rules that hold."""
    spec = call.spec
    rules = _obeying(spec.rules, held)
    return call if rules is spec.rules else replace(call, spec=replace(spec, rules=rules))


def class_of(environment: Environment, spec: ToolSpec) -> EffectClass:
    """Return the stricter of the class that the code says and the one that the registry is known to hold."""
    kept = environment.declared.get(spec.name)
    said = spec.rules.effect
    return said if kept is None else max(kept.held.class_, said, key=lambda name: STRICTNESS[name])


def _newest(environment: Environment, spec: ToolSpec) -> ToolSpec:
    newest = environment.tools.get(spec.name)
    return spec if newest is None else newest.spec


def _say_where_stricter(name: str, said: ToolRules, held: HeldDeclaration) -> None:
    if STRICTNESS[held.class_] > STRICTNESS[said.effect]:
        _log.warning(
            "The registry holds %s as %s, its code says %s. The registry counts; correct the code or the registry.",
            name, held.class_, said.effect,
        )  # fmt: skip


def _obeying(said: ToolRules, held: HeldDeclaration) -> ToolRules:
    """Return what the code says with what the registry says in its place; the stricter class, and both redactions."""
    effect = max(held.class_, said.effect, key=lambda name: STRICTNESS[name])
    share = said.share if held.share is None else held.share
    on_doubt = held.on_doubt or said.on_doubt
    window = held.provider_window_seconds or said.provider_window_seconds
    header = held.provider_key_header or said.provider_key_header
    redacted = tuple(dict.fromkeys((*said.redacted, *held.redacted)))
    if (effect, share, on_doubt, window, header, redacted) == (
        said.effect, said.share, said.on_doubt, said.provider_window_seconds, said.provider_key_header,
        tuple(said.redacted),
    ):  # fmt: skip
        return said
    return replace(
        said,
        effect=effect,
        share=share,
        on_doubt=on_doubt,
        provider_window_seconds=window,
        provider_key_header=header,
        redacted=redacted,
    )
