"""From a request to what a version of its tool makes of it: what names the call, and its arguments as they are read."""

from guard.core.arguments import Reading
from guard.service.registry import KnownTool
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.keys import KeyRequest
from twiceshy_contract.names import KeyRule
from twiceshy_contract.refusals import Refusal


def understood_by(request: BeginRequest, known: KnownTool) -> tuple[KeyRule, Reading] | Refusal:
    """Read a call by one version of its tool; a run that is pinned to another may understand what this one refuses."""
    try:
        return rule_of(request, known), read_arguments(request.arguments, known)
    except Refusal as refusal:
        return refusal


def rule_of(request: BeginRequest | KeyRequest, known: KnownTool) -> KeyRule:
    """Say what names the call: the key or step that it brings, else what its tool declares."""
    if request.business_key is not None and request.step is not None:
        raise Refusal("an effect has one name: send either a step or a business key", ("step",))
    if request.business_key is not None:
        return "business_key"
    if request.run is None:
        raise Refusal("the scope is missing: name the run, or give a business key", ("run",))
    if request.step is not None:
        return "step"
    rule = known.tool.declaration.key.rule
    if rule != "once":
        what = "a step" if rule == "step" else "a business key"
        raise Refusal(f"tool {request.tool!r} is declared to be named by {what}; send it", (rule,))
    return rule


def read_arguments(arguments: dict[str, object], known: KnownTool) -> Reading:
    """Read the arguments by the tool's roles. Raises Refusal with the place in the request."""
    try:
        return known.reader.read(arguments)
    except Refusal as refusal:
        raise refusal.under("arguments") from refusal


def slot_value(request: BeginRequest | KeyRequest, rule: KeyRule, reading: Reading) -> bytes:
    """Return what stands for the intent in its slot."""
    match rule:
        case "once":
            return reading.identity_digest
        case "step":
            return str(request.step).encode()
        case "business_key":
            return str(request.business_key).encode()
