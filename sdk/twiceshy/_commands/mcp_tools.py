"""An MCP server's answer to `tools/list` as declarations: what its annotations hint at.

A hint that is missing is the specification's default: not read-only, destructive, not idempotent. `destructiveHint` and
`openWorldHint` change no class: an effect that only adds must not happen twice either.
"""

from collections.abc import Mapping
from typing import Final

from twiceshy._commands.imported import Imported, Named, Place
from twiceshy_contract.names import EffectClass
from twiceshy_contract.refusals import JsonValue

_HINTS: Final = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def tools_of(document: JsonValue) -> Imported:
    """Read the result of `tools/list`, bare or in its JSON-RPC response."""
    found = Imported()
    place: Place = ()
    body = document
    if isinstance(body, dict) and "result" in body:
        body, place = body["result"], ("result",)
    if isinstance(document, dict) and isinstance(document.get("error"), dict):
        found.flaw(("error",), "this is the server's refusal, not its list of tools")
        return found
    tools = body.get("tools") if isinstance(body, dict) else None
    if not isinstance(body, dict) or not isinstance(tools, list):
        found.flaw(place, "this is no result of tools/list: it has no list `tools`")
        return found
    for number, tool in enumerate(tools):
        _add(found, tool, (*place, "tools", number))
    if body.get("nextCursor"):
        found.remark((*place, "nextCursor"), "the list goes on: import its other pages as well")
    return found


def _add(found: Imported, tool: JsonValue, place: Place) -> None:
    if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
        found.flaw(place, "a tool is an object with a `name`")
        return
    annotations = tool.get("annotations")
    if annotations is None:
        annotations = {}
    if not isinstance(annotations, dict):
        found.flaw((*place, "annotations"), "annotations are an object")
        return
    for hint in _HINTS:
        if not isinstance(annotations.get(hint, False), bool):
            found.flaw((*place, "annotations", hint), "a hint is true or false")
    found.add(Named(name=name, place=(*place, "name"), declaration={"class": _class(annotations)}))


def _class(annotations: Mapping[str, JsonValue]) -> EffectClass:
    if annotations.get("readOnlyHint") is True:
        return "read"
    return "idempotent" if annotations.get("idempotentHint") is True else "side_effect"
