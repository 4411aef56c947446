"""Declare: tell the registry of a tool once a guard, and obey what the registry holds of it."""

import logging
from typing import Final
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from twiceshy._answers import DeclaredTool, HeldDeclaration
from twiceshy._ask import Answered, ask
from twiceshy._calls import ToolCall
from twiceshy._environment import Environment
from twiceshy._options import STRICTNESS, ToolRules
from twiceshy._problems import refused, unavailable
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow
from twiceshy._transports.base import Request
from twiceshy_contract.problems import Problem

_TOOL: Final = msgspec.json.Decoder(DeclaredTool)
_log = logging.getLogger("twiceshy")


def declare(environment: Environment, call: ToolCall) -> Flow[ToolCall]:
    """Declare the call's tool, where this guard has not yet, and return the call under the rules that hold."""
    spec = call.spec
    held = environment.declared.get(spec.name)
    if held is None:
        asked = Request(
            method="PUT", path=f"/v1/tools/{quote(spec.name, safe='')}", body=msgspec.json.encode(spec.declaration)
        )
        until = environment.clock() + environment.limits.unavailable_seconds
        answer = yield from ask(environment, asked, _TOOL, until=until)
        match answer:
            case Unanswered():
                raise unavailable(environment, call.reference, answer.reason)
            case Problem():
                raise refused(answer, call.reference)
            case Answered(view):
                held = environment.declared[spec.name] = view.declaration
                _say_where_stricter(spec.name, spec.rules, held)
    rules = _obeying(spec.rules, held)
    return call if rules is spec.rules else replace(call, spec=replace(spec, rules=rules))


def _say_where_stricter(name: str, said: ToolRules, held: HeldDeclaration) -> None:
    if STRICTNESS[held.class_] > STRICTNESS[said.effect]:
        _log.warning(
            "The registry holds %s as %s, its code says %s. The registry counts; correct the code or the registry.",
            name, held.class_, said.effect,
        )  # fmt: skip


def _obeying(said: ToolRules, held: HeldDeclaration) -> ToolRules:
    """Return what the code says with what the registry says in its place; of the class, the stricter one."""
    effect = max(held.class_, said.effect, key=lambda name: STRICTNESS[name])
    share = said.share if held.share is None else held.share
    on_doubt = held.on_doubt or said.on_doubt
    window = held.provider_window_seconds or said.provider_window_seconds
    header = held.provider_key_header or said.provider_key_header
    if (effect, share, on_doubt, window, header) == (
        said.effect, said.share, said.on_doubt, said.provider_window_seconds, said.provider_key_header,
    ):  # fmt: skip
        return said
    return replace(
        said,
        effect=effect,
        share=share,
        on_doubt=on_doubt,
        provider_window_seconds=window,
        provider_key_header=header,
    )
