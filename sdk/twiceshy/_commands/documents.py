"""Documents on the command line, YAML or JSON, read as JSON values; whatever is wrong in one is named by its line.

Of YAML only what JSON can say is taken: numbers, `true`, `false` and `null` are written as in JSON, all other plain
words (`yes`, `12:30`, `2026-10-12`, `007`) are texts. Keys are texts. Merge keys and tags of other types are refused.
"""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

import click
import yaml

from twiceshy._commands.parameters import bytes_in_file
from twiceshy._commands.yaml_values import Flaw, Loader, value_of
from twiceshy_contract.refusals import JsonValue, Refusal, Step, pointer
from twiceshy_contract.strict_json import MAX_DEPTH, decode

_CONTEXT: Final = re.compile(r"[\n\r]+")


class Document:
    """A document that was read: its value, and where in its text each part of that stands."""

    def __init__(self, name: str, text: str, value: JsonValue) -> None:
        self.name = name
        self.value = value
        self._text = text
        self._root: yaml.Node | None = None

    def place(self, steps: Sequence[Step]) -> str:
        """Say where a part stands: file, line and column; of a part that is missing, where what holds it stands."""
        at = self._position(steps)
        return self.name if at is None else f"{self.name}:{at[0]}:{at[1]}"

    def refused(self, flaws: Iterable[tuple[Sequence[Step], str]]) -> click.UsageError:
        """Return the error that names each place and what is wrong there."""
        lines = (f"{self.place(steps)}: {pointer(steps) or 'the document'}: {reason}." for steps, reason in flaws)
        return click.UsageError("\n  ".join([*lines, "Nothing was applied."]))

    def _position(self, steps: Sequence[Step]) -> tuple[int, int] | None:
        node = self._root = self._root or _composed(self._text)
        if node is None:
            return None
        mark = node.start_mark
        for step in steps:
            found = _member(node, step)
            if found is None:
                break
            mark, node = found
        return mark.line + 1, mark.column + 1


def read_document(name: str, argument: str) -> Document:
    """Read a file (`-`: standard input) of YAML, or of JSON where it begins like an object.

    Raises click.UsageError with line and column.
    """
    shown = "standard input" if name == "-" else name
    body = bytes_in_file(name, argument)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise _unread(shown, (line, 1), f"byte {error.start} is not UTF-8") from error
    is_json = text.lstrip(" \t\r\n").startswith(("{", "["))
    return Document(shown, text, _json(shown, text) if is_json else _yaml(shown, text))


def _json(name: str, text: str) -> JsonValue:
    try:
        return decode(text.encode(errors="surrogatepass"))
    except Refusal as refusal:
        at = _json_error(text)
        if at is not None:
            raise _unread(name, at, refusal.reason) from refusal
        raise Document(name, text, None).refused([(refusal.steps, refusal.reason)]) from refusal


def _json_error(text: str) -> tuple[int, int] | None:
    """Return the line and column where a text stops to be JSON; None where it is JSON, but not a strict one."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno, error.colno
    except (ValueError, RecursionError):
        return None
    return None


def _yaml(name: str, text: str) -> JsonValue:
    try:
        return value_of(Loader(text).get_single_node())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        said = ", ".join(part for part in (error.context, error.problem) if part)
        raise _unread(name, None if mark is None else (mark.line + 1, mark.column + 1), f"not YAML: {said}") from error
    except yaml.reader.ReaderError as error:
        at = text.count("\n", 0, error.position) + 1, error.position - text.rfind("\n", 0, error.position)
        raise _unread(name, at, f"not YAML: {error.reason}") from error
    except Flaw as flaw:
        raise _unread(name, flaw.at, flaw.reason) from flaw
    except RecursionError as error:
        raise _unread(name, None, f"nested more than {MAX_DEPTH} deep") from error


def _unread(name: str, at: tuple[int, int] | None, reason: str) -> click.UsageError:
    where = name if at is None else f"{name}:{at[0]}:{at[1]}"
    return click.UsageError(f"{where}: {_CONTEXT.sub(' ', reason)}.\n  Nothing was applied.")


def _composed(text: str) -> yaml.Node | None:
    """Read the marks of a document that could be read; JSON is YAML but for its tabs."""
    try:
        return Loader(text.replace("\t", " ")).get_single_node()
    except (yaml.YAMLError, RecursionError):
        return None


def _member(node: yaml.Node, step: Step) -> tuple[yaml.Mark, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark, value) for key, value in node.value if key.value == str(step)), None)
    if isinstance(node, yaml.SequenceNode) and str(step).isdigit() and int(step) < len(node.value):
        item = node.value[int(step)]
        return item.start_mark, item
    return None
