"""YAML as JSON values: what JSON cannot say, or what two readers could understand differently, is refused."""

import json
import math
import re
from typing import Final

import yaml

from twiceshy_contract.refusals import JsonValue
from twiceshy_contract.strict_json import MAX_DEPTH

MAX_VALUES: Final = 1_000_000
"""Values that a document may have, those of its aliases written out."""
_TYPES: Final = "tag:yaml.org,2002:"
_TEXT: Final = f"{_TYPES}str"

_FORMS: Final = {
    f"{_TYPES}null": re.compile(r"^(?:null|~|)$"),
    f"{_TYPES}bool": re.compile(r"^(?:true|false)$"),
    f"{_TYPES}int": re.compile(r"^-?(?:0|[1-9][0-9]*)$"),
    f"{_TYPES}float": re.compile(r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?$"),
}


class Loader(yaml.SafeLoader):
    """Takes plain words for what JSON takes them for, and all others for texts."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.yaml_implicit_resolvers = {None: list(_FORMS.items())}


class Flaw(Exception):
    """What cannot be taken, and its line and column, counted from 1."""

    def __init__(self, reason: str, node: yaml.Node | None = None) -> None:
        self.reason: Final = reason
        self.at: Final = None if node is None else (node.start_mark.line + 1, node.start_mark.column + 1)
        super().__init__(reason)


class _Budget:
    """How many more values a document may have: an alias within aliases could stand for billions."""

    def __init__(self) -> None:
        self._left = MAX_VALUES

    def spend(self, node: yaml.Node) -> None:
        self._left -= 1
        if self._left < 0:
            raise Flaw(f"the document has more than {MAX_VALUES:,} values, with its aliases written out", node)


def value_of(root: yaml.Node | None) -> JsonValue:
    """Return what a document says. Raises Flaw."""
    if root is None:
        raise Flaw("the document is empty")
    return _value(root, _Budget(), 1)


def _value(node: yaml.Node, budget: _Budget, depth: int) -> JsonValue:
    budget.spend(node)
    if depth > MAX_DEPTH + 1:
        raise Flaw(f"nested more than {MAX_DEPTH} deep", node)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    if isinstance(node, yaml.SequenceNode) and node.tag == f"{_TYPES}seq":
        return [_value(item, budget, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode) and node.tag == f"{_TYPES}map":
        return _members(node, budget, depth)
    raise Flaw(f"the tag {node.tag} is not read", node)


def _members(node: yaml.MappingNode, budget: _Budget, depth: int) -> JsonValue:
    members: dict[str, JsonValue] = {}
    lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, yaml.ScalarNode):
            raise Flaw("a key is a text", key_node)
        key = _text(key_node)
        if key == "<<" and key_node.style is None:
            raise Flaw("merge keys (<<) are not read; write out what they stand for", key_node)
        if key in members:
            raise Flaw(f"the key {key!r} stands twice in one mapping, first in line {lines[key]}", key_node)
        lines[key] = key_node.start_mark.line + 1
        members[key] = _value(value_node, budget, depth + 1)
    return members


def _scalar(node: yaml.ScalarNode) -> JsonValue:
    if node.tag == _TEXT:
        return _text(node)
    form = _FORMS.get(node.tag)
    if form is None:
        raise Flaw(f"the tag {node.tag} is not read", node)
    if not form.match(node.value):
        raise Flaw(f"{node.value[:40]!r} is not of the type of its tag", node)
    return None if node.tag == f"{_TYPES}null" else _plain(node)


def _plain(node: yaml.ScalarNode) -> JsonValue:
    try:
        value: JsonValue = json.loads(node.value)
    except ValueError as error:
        raise Flaw("the number has too many digits", node) from error
    if isinstance(value, float) and math.isinf(value):
        raise Flaw("the number is larger than any double", node)
    return value


def _text(node: yaml.ScalarNode) -> str:
    try:
        return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError as error:
        raise Flaw("a lone surrogate is not a character", node) from error
