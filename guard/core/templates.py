"""Templates: JSON whose texts may hold `${…}`, an expression in JMESPath over what is known of a call.

A text that is one placeholder becomes the value that its expression has; within a longer text the value is written out.
There is no way to write a plain `${`: nobody has needed one.

What is known is tagged JSON, and expressions see plain values: `$int` and `$dec` as numbers, `$dt`, `$uuid` and `$b64`
as texts, a member `$$x` as `$x`. A value that a template passes on goes under the tag that it came with.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Final, TypeVar

import jmespath
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.parser import ParsedResult

from twiceshy_contract.canonical import MAX_SAFE_INTEGER, canonical, is_tag
from twiceshy_contract.refusals import JsonValue, Refusal, Step

_PLACEHOLDER: Final = re.compile(r"\$\{(?P<expression>[^{}]+)\}")
_LONGEST_WHOLE: Final = 40
"""Digits of a decimal number that is seen as an integer."""
Known = Mapping[str, JsonValue]
"""What an expression sees: names with values of tagged JSON."""
_Read = TypeVar("_Read")


class _Whole(int):
    """An integer that came under a tag."""

    tag: str
    text: str


class _Fraction(float):
    """A decimal number that came under a tag; as a double, so that it compares with those of an expression."""

    tag: str
    text: str


class _Text(str):
    """A text that came under a tag."""

    tag: str
    text: str


_Tagged = _Whole | _Fraction | _Text
_Whole.__name__, _Fraction.__name__, _Text.__name__ = "int", "float", "str"  # JMESPath knows types by these names


def compiled(expression: str, *place: Step) -> ParsedResult:
    """Return an expression ready for use. Raises Refusal with its place in the declaration."""
    try:
        return jmespath.compile(expression)
    except Exception as error:
        raise Refusal(f"this is no JMESPath expression: {_words(error)}", place) from error


def value_of(expression: str, known: Known) -> JsonValue:
    """Return what an expression says of what is known, as a plain value; null where it finds nothing.

    Raises Refusal.
    """
    return _found(expression, known, _plain)


def tagged_value_of(expression: str, known: Known) -> JsonValue:
    """Return the same as tagged JSON. Raises Refusal."""
    return _found(expression, known, _tagged)


def is_true(expression: str, known: Known) -> bool:
    """Say whether an expression has the value true; any other value is not. Raises Refusal where it fails."""
    return value_of(expression, known) is True


def as_tagged(value: JsonValue) -> JsonValue:
    """Return plain JSON, such as another's answer, as tagged JSON. Raises Refusal."""
    return _tagged(value)


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


def expressions(text: str) -> list[str]:
    """Return the expressions of a template of a text."""
    return [found["expression"] for found in _PLACEHOLDER.finditer(text)]


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
    """Return a template with the values of its expressions, as tagged JSON. Raises Refusal where one fails."""
    return _rendered(template, known, tagged_value_of)


def rendered_plain(template: JsonValue, known: Known) -> JsonValue:
    """Return the same with plain values, for readers who know no tags. Raises Refusal where one fails."""
    return _rendered(template, known, value_of)


def rendered_text(template: str, known: Known, quoted: Callable[[str], str] = str) -> str:
    """Return a template of a text; every value is written out and passed through `quoted`. Raises Refusal."""
    return _PLACEHOLDER.sub(lambda found: quoted(_found(found["expression"], known, _written)), template)


def _rendered(template: JsonValue, known: Known, read: Callable[[str, Known], JsonValue]) -> JsonValue:
    match template:
        case str():
            whole = _PLACEHOLDER.fullmatch(template)
            return read(whole["expression"], known) if whole else rendered_text(template, known)
        case list():
            return [_rendered(item, known, read) for item in template]
        case dict():
            return {name: _rendered(member, known, read) for name, member in template.items()}
        case _:
            return template


def _written(value: object) -> str:
    match value:
        case _Whole() | _Fraction() | _Text():
            return value.text
        case str():
            return value
        case None:
            return ""
        case _:
            return canonical(_tagged(value)).decode()


def _found(expression: str, known: Known, read: Callable[[object], _Read]) -> _Read:
    """Evaluate an expression; values of what is read then remember the tag that they came under. Raises Refusal."""
    parsed = compiled(expression)
    try:
        return read(parsed.search({name: _seen(value) for name, value in known.items()}))
    except Exception as error:  # the library lets through what Python says of values that do not go together
        raise Refusal(f"the expression {expression!r} fails: {_words(error)}") from error


def _seen(value: JsonValue) -> object:
    """Return tagged JSON as an expression sees it."""
    match value:
        case dict() if is_tag(value):
            ((tag, text),) = value.items()
            return _seen_tag(tag, text) if isinstance(text, str) else value
        case dict():
            return {name[1:] if name.startswith("$$") else name: _seen(member) for name, member in value.items()}
        case list():
            return [_seen(item) for item in value]
        case _:
            return value


def _seen_tag(tag: str, text: str) -> _Tagged:
    seen = _number(text) if tag in ("$int", "$dec") else _Text(text)
    seen.tag, seen.text = tag, text
    return seen


def _number(text: str) -> _Whole | _Fraction:
    number = Decimal(text)
    is_whole = number.adjusted() < _LONGEST_WHOLE and number == number.to_integral_value()
    return _Whole(number) if is_whole else _Fraction(number)


def _plain(value: object) -> JsonValue:
    """Return what an expression has found without the tags."""
    return _json(value, lambda tagged: tagged.text if isinstance(tagged, _Text) else _untagged(tagged), str)


def _untagged(number: _Whole | _Fraction) -> JsonValue:
    return int(number) if isinstance(number, _Whole) else _finite(float(number))


def _tagged(value: object) -> JsonValue:
    """Return what an expression has found under the tags that it came with."""
    return _json(value, lambda tagged: {tagged.tag: tagged.text}, lambda name: f"${name}" if name[:1] == "$" else name)


def _json(value: object, of_tagged: Callable[[_Tagged], JsonValue], of_name: Callable[[str], str]) -> JsonValue:
    match value:
        case _Whole() | _Fraction() | _Text():
            return of_tagged(value)
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= MAX_SAFE_INTEGER else of_tagged(_seen_tag("$int", str(value)))
        case float():
            return _finite(value)
        case list():
            return [_json(item, of_tagged, of_name) for item in value]
        case dict():
            return {of_name(name): _json(member, of_tagged, of_name) for name, member in value.items()}
        case _:
            raise Refusal("an expression has a value that is no JSON")


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise Refusal("an expression has a number that is too large")
    return number


def _words(error: Exception) -> str:
    """Say what is wrong, without the value that it is wrong about: that may be a secret."""
    match error:
        case Refusal():
            return error.reason
        case JMESPathTypeError():
            return f"{error.function_name}() takes {' or '.join(error.expected_types)}, not {error.actual_type}"
        case JMESPathError():
            hint = "; numbers stand in backticks: amount > `50`" if getattr(error, "token_type", "") == "NUMBER" else ""
            return str(error).partition("\n")[0].removesuffix(", for expression:").rstrip(":") + hint
        case TypeError():
            return "it puts together values of kinds that do not go together"
        case _:
            return f"it cannot be evaluated ({type(error).__name__})"
