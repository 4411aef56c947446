"""Destinations from a file: YAML whose `destinations` map names to settings, as strict as the API is.

Plain words are what JSON takes them for, and all others texts: it is the file that `twiceshy destinations apply` takes.
Whatever is wrong is named by its line.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import msgspec
import yaml

from guard.core.destinations import check_destination
from guard.core.effects import TenantId
from guard.logs import logger
from guard.ports.outbox import DestinationStore
from twiceshy_contract.destination_files import ROOT, Flaw, Place, destinations_of
from twiceshy_contract.destinations import Destination
from twiceshy_contract.refusals import JsonValue, Refusal, Step, pointer

TENANT: Final = TenantId(1)
"""The tenant of a service whose callers have no tenants of their own."""
_LARGEST: Final = 1_000_000
_DEEPEST: Final = 8
_TAGS: Final = "tag:yaml.org,2002:"
_log = logger("guard.relay")


class FileRefused(Exception):
    """The file of destinations cannot be used; the text says where and why."""


def destinations_in(path: Path) -> dict[str, Destination]:
    """Read the destinations of a file. Raises FileRefused."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileRefused(f"{path} cannot be read: {error}.") from error
    if len(text) > _LARGEST:
        raise FileRefused(f"{path} has more than {_LARGEST:,} characters: it is no list of destinations.")
    try:
        root = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
        where = f"{path}" if mark is None else f"{path}:{mark.line + 1}:{mark.column + 1}"
        raise FileRefused(f"{where}: it is not YAML: {' '.join(str(error).split())}.") from error
    if root is None:
        raise FileRefused(f"{path} is empty: map names to settings under `{ROOT}`.")
    declared = destinations_of(_value(path, root, 1))
    flaws = [*declared.flaws, *_undeliverable(declared.settings)]
    if flaws:
        raise FileRefused("\n  ".join(_said(path, root, *flaw) for flaw in flaws))
    return declared.settings


async def declare_all(store: DestinationStore, destinations: Mapping[str, Destination]) -> None:
    """Declare the destinations of a file. What it does not name is left as it is. Raises StoreUnavailable."""
    for name, settings in destinations.items():
        record, is_changed = await store.declare(TENANT, name, settings)
        if is_changed:
            _log.info("destination_declared", destination=name, version=record.version)


def _undeliverable(declared: Mapping[str, Destination]) -> Iterator[Flaw]:
    """Yield the places by which nothing could be delivered."""
    for name, settings in declared.items():
        try:
            check_destination(settings)
        except Refusal as refusal:
            yield (ROOT, name, *refusal.steps), refusal.reason


def _said(path: Path, root: yaml.Node, place: Place, reason: str) -> str:
    """Say what is wrong by its line and column; of a part that is missing, by those of what holds it."""
    mark, node = root.start_mark, root
    for step in place:
        found = _member(node, step)
        if found is None:
            break
        mark, node = found
    return f"{path}:{mark.line + 1}:{mark.column + 1}: {pointer(place) or 'the document'}: {reason}."


def _member(node: yaml.Node, step: Step) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step].start_mark, node.value[step]
    return None


def _refused(path: Path, node: yaml.Node, reason: str) -> FileRefused:
    return FileRefused(f"{path}:{node.start_mark.line + 1}:{node.start_mark.column + 1}: {reason}.")


def _members(path: Path, node: yaml.Node) -> list[tuple[str, yaml.Node]]:
    if not isinstance(node, yaml.MappingNode):
        raise _refused(path, node, "names are mapped to settings here")
    members: list[tuple[str, yaml.Node]] = []
    lines: dict[str, int] = {}
    for key, value in node.value:
        if not isinstance(key, yaml.ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            raise _refused(path, key, "a key is a text; merge keys (<<) are not read")
        if key.value in lines:
            raise _refused(path, key, f"the key {key.value!r} stands twice, first in line {lines[key.value]}")
        lines[key.value] = key.start_mark.line + 1
        members.append((key.value, value))
    return members


def _value(path: Path, node: yaml.Node, depth: int) -> JsonValue:
    if depth > _DEEPEST:
        raise _refused(path, node, "settings are not nested so deep")
    if isinstance(node, yaml.MappingNode):
        return {key: _value(path, value, depth + 1) for key, value in _members(path, node)}
    if isinstance(node, yaml.SequenceNode):
        return [_value(path, item, depth + 1) for item in node.value]
    if not isinstance(node, yaml.ScalarNode) or not node.tag.startswith(_TAGS):
        raise _refused(path, node, f"the tag {node.tag} is not read")
    return str(node.value) if node.style is not None else _plain(node.value)


def _plain(word: str) -> JsonValue:
    """Return what JSON takes a word for, or else the word."""
    if word in ("", "~"):
        return None
    try:
        value: JsonValue = msgspec.json.decode(word)
    except msgspec.DecodeError:
        return word
    return value
