"""What is wrong with what was said, in words that name the option: those of the library are about its own types."""

import re
from typing import Any, Final, get_args

import msgspec

from twiceshy_contract.destinations import DestinationName, EmailAddress
from twiceshy_contract.names import NAME_FORM
from twiceshy_contract.policies import POINTER_FORM

_SHAPE: Final = re.compile(r"Expected `(?P<kinds>[^`]+)`(?:, got `(?P<got>[^`]+)`)?(?P<bound>.*)", re.DOTALL)
_BOUND: Final = re.compile(r" (?P<length>of length )?(?P<way>[<>]=?) (?P<number>\S+)")
_FIELD: Final = re.compile(r"Object (?P<what>contains unknown|missing required) field `(?P<field>[^`]+)`")
_KINDS: Final = {
    "array": "a list",
    "bool": "True or False",
    "float": "a number",
    "int": "a whole number",
    "null": "None",
    "object": "an object with members",
    "str": "a text",
}
_KEY: Final = "key` in `"
_MATCHING: Final = " matching regex "


def _form_of(kind: Any) -> str:
    """Return how the pattern of a named kind of text begins in a message."""
    return repr(get_args(kind)[1].pattern)[:-1]


_FORMS: Final = {
    repr(NAME_FORM)[:-1]: " without '/' and control characters, and is not '.' or '..'",
    repr(POINTER_FORM)[:-1]: " that is a JSON Pointer: it begins with '/', such as '/title'",
    repr(r"^[A-Za-z0-9-]{1,100}$")[:-1]: " of letters, digits and '-'",
    repr(r"^[^\x00-\x1f\x7f]+$")[:-1]: " without control characters",
    repr(r"^[^\x00-\x1f\x7f]*$")[:-1]: " in one line, without control characters",
    repr(r"^[\x20-\x7e]*$")[:-1]: " in one line of printable ASCII characters",
    repr(r"^[A-Za-z0-9._-]+$")[:-1]: " of letters, digits, '.', '-' and '_'",
    _form_of(DestinationName): " of 1 to 100 letters, digits, '.', '-' and '_'",
    repr(r"^[^\x00]*$")[:-1]: " without the character NUL",
    _form_of(EmailAddress): " that is one e-mail address, such as ann@example.com",
}
_OF_OPTIONS: Final = ("key.", "arguments.")
"""Parts of a declaration whose members are options of their own."""


def in_words(error: msgspec.ValidationError, subject: str = "it") -> str:
    """Say what is wrong and what may be said there; `subject` is what it is called where it is all that was said."""
    text, _, place = str(error).partition(" - at `")
    where = place.rstrip("`").removeprefix(_KEY).removeprefix("$").removeprefix(".")
    for part in _OF_OPTIONS:
        where = where.removeprefix(part)
    if place.startswith(_KEY):
        where = f"a name in {where or subject}"
    field = _FIELD.fullmatch(text)
    if field is not None:
        inner = f"{where or subject}: " if where else ""
        missing = field["what"].startswith("missing")
        return f"{inner}{field['field']} is missing" if missing else f"{inner}there is no {field['field']}"
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        return f"{where or subject}: {text}"
    kinds = " or ".join(_KINDS.get(kind, kind) for kind in shape["kinds"].split(" | "))
    if where.endswith("_seconds"):
        kinds = kinds.replace("a number", "a number of seconds")
    kinds = kinds.replace("True or False or None", "True, False or None")
    if " of length " in shape["bound"]:
        kinds = kinds.replace("an object with members", "an object")
    got = (
        ""
        if shape["got"] is None
        else f", not {_KINDS.get(shape['got'], shape['got'])}".replace("True or False", "a boolean")
    )
    return f"{where or subject} must be {kinds}{_bound(shape['bound'], shape['kinds'])}{got}"


def _bound(bound: str, kinds: str) -> str:
    found = _BOUND.fullmatch(bound)
    if found is None:
        return next((words for form, words in _FORMS.items() if bound.startswith(form, len(_MATCHING))), bound)
    number = found["number"].removesuffix(".0")
    unit = f", {number}"
    if found["length"]:
        unit = f" of {number} {'character' if kinds.startswith('str') else 'member'}{'' if number == '1' else 's'}"
    return {
        ">=": f"{unit} or more",
        "<=": f"{unit} or less",
        ">": f", more than {number}",
        "<": f", less than {number}",
    }[found["way"]]
