"""Templates: JSON whose texts may hold `${…}`, an expression in JMESPath over what is known of a call.

A text that is one placeholder becomes the value that its expression has; within a longer text the value is written out.
There is no way to write a plain `${`: nobody has needed one.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, cast

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.parser import ParsedResult

from twiceshy_contract.canonical import canonical
from twiceshy_contract.refusals import JsonValue, Refusal, Step

_PLACEHOLDER: Final = re.compile(r"\$\{(?P<expression>[^{}]+)\}")
Known = Mapping[str, JsonValue]
"""What an expression sees: names with JSON values."""


def compiled(expression: str, *place: Step) -> ParsedResult:
    """Return an expression ready for use. Raises Refusal with its place in the declaration."""
    try:
        return jmespath.compile(expression)
    except JMESPathError as error:
        raise Refusal(f"this is no JMESPath expression: {_first_line(error)}", place) from error


def value_of(expression: str, known: Known) -> JsonValue:
    """Return what an expression says of what is known; null where it finds nothing. Raises Refusal."""
    try:
        return cast("JsonValue", compiled(expression).search(dict(known)))
    except JMESPathError as error:
        raise Refusal(f"the expression {expression!r} fails: {_first_line(error)}") from error


def is_true(expression: str, known: Known) -> bool:
    """Say whether an expression has the value true; any other value is not. Raises Refusal where it fails."""
    return value_of(expression, known) is True


def check_template(template: JsonValue, *place: Step) -> None:
    """Check every expression of a template. Raises Refusal with its place in the declaration."""
    match template:
        case str():
            for found in _PLACEHOLDER.finditer(template):
                compiled(found["expression"], *place)
            if "${" in _PLACEHOLDER.sub("", template):
                raise Refusal("a `${` begins an expression without braces, and ends with a `}`", place)
        case list():
            for number, item in enumerate(template):
                check_template(item, *place, number)
        case dict():
            for name, member in template.items():
                check_template(member, *place, name)
        case _:
            pass


def unfound(template: JsonValue, known: Known, *place: Step) -> Iterator[tuple[tuple[Step, ...], str]]:
    """Name the placeholders of a template that find nothing, each by its place and expression. Raises Refusal."""
    match template:
        case str():
            for found in _PLACEHOLDER.finditer(template):
                if value_of(found["expression"], known) is None:
                    yield place, found["expression"]
        case list():
            for number, item in enumerate(template):
                yield from unfound(item, known, *place, number)
        case dict():
            for name, member in template.items():
                yield from unfound(member, known, *place, name)
        case _:
            pass


def rendered(template: JsonValue, known: Known) -> JsonValue:
    """Return a template with the values of its expressions. Raises Refusal where one fails."""
    match template:
        case str():
            return _rendered_text(template, known)
        case list():
            return [rendered(item, known) for item in template]
        case dict():
            return {name: rendered(member, known) for name, member in template.items()}
        case _:
            return template


def rendered_text(template: str, known: Known, quoted: Callable[[str], str] = str) -> str:
    """Return a template of a text; every value is written out and passed through `quoted`. Raises Refusal."""
    return _PLACEHOLDER.sub(lambda found: quoted(_written(value_of(found["expression"], known))), template)


def _rendered_text(template: str, known: Known) -> JsonValue:
    whole = _PLACEHOLDER.fullmatch(template)
    return value_of(whole["expression"], known) if whole else rendered_text(template, known)


def _written(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else canonical(value).decode()


def _first_line(error: Exception) -> str:
    """Say what is wrong, without the value that it is wrong about: that may be a secret."""
    if isinstance(error, JMESPathTypeError):
        return f"{error.function_name}() takes {' or '.join(error.expected_types)}, not {error.actual_type}"
    return str(error).partition("\n")[0]
