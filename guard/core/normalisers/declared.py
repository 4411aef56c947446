"""What a declaration says of one path, as one function."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeAlias

from msgspec import UNSET

from guard.core.normalisers.instants import utc_instant
from guard.core.normalisers.mail import email_address
from guard.core.normalisers.money import money
from guard.core.normalisers.phone import phone_number, phone_number_of
from guard.core.normalisers.texts import composed, trimmed_casefold
from guard.core.normalisers.url import uniform_url
from twiceshy_contract.canonical import is_tag
from twiceshy_contract.refusals import JsonValue, Refusal
from twiceshy_contract.tools import Normaliser, NormaliserName, NormaliserWith

Normalise: TypeAlias = Callable[[JsonValue], JsonValue]

NORMALISERS: Final[Mapping[NormaliserName, Normalise]] = MappingProxyType(
    {
        "email": email_address,
        "money": money,
        "nfc": composed,
        "phone": phone_number,
        "trim_casefold": trimmed_casefold,
        "url": uniform_url,
        "utc": utc_instant,
    }
)


def normaliser_of(declared: Normaliser) -> Normalise:
    """Return the function that a declaration means. Raises Refusal with the place in what is declared."""
    if not isinstance(declared, tuple):
        return _single(declared, ())
    functions: list[Normalise] = []
    for index, part in enumerate(declared):
        try:
            functions.append(_single(part, tuple(functions)))
        except Refusal as refusal:
            raise refusal.under(index) from refusal
    if isinstance(declared[-1], NormaliserWith) and declared[-1].alias is not UNSET:
        return functions[-1]
    return _in_order(functions)


def _single(declared: NormaliserName | NormaliserWith, before: Sequence[Normalise]) -> Normalise:
    if isinstance(declared, str):
        return NORMALISERS[declared]
    if declared.alias is not UNSET:
        return _aliased(declared.alias, _in_order(before))
    try:
        return phone_number_of(str(declared.phone))
    except ValueError as error:
        raise Refusal(str(error), ("phone",)) from error


def _in_order(functions: Sequence[Normalise]) -> Normalise:
    def normalise(value: JsonValue) -> JsonValue:
        for function in functions:
            value = function(value)
        return value

    return normalise


def _require_one_spelling(meaning: str | int, read: Normalise, spelling: str) -> None:
    """Refuse a meaning that callers may also send, and that would then be written in another way."""
    try:
        written = read(meaning)
    except ValueError:  # no caller can send it but as it stands in the map
        return
    if written != meaning:
        raise Refusal(
            f"what it means is written {written!r} by the normalisers before it; write it so", ("alias", spelling)
        )


def _aliased(meanings: Mapping[str, str | int], read: Normalise) -> Normalise:
    """Return what looks up a value as `read` writes it. What the map leads to is the meaning, and is not read."""
    known = frozenset(meanings.values())
    for spelling, meaning in meanings.items():
        try:
            written = read(spelling)
        except ValueError as error:
            raise Refusal(f"no value is read as this spelling: {error}", ("alias", spelling)) from error
        if written != spelling:
            raise Refusal(
                f"no value is read as this spelling; the normalisers before write it {written!r}", ("alias", spelling)
            )
        if meaning in meanings:
            raise Refusal("what it means is a spelling of the map itself", ("alias", spelling))
        _require_one_spelling(meaning, read, spelling)

    def normalise(value: JsonValue) -> JsonValue:
        if isinstance(value, (str, int)) and not isinstance(value, bool) and value in known:
            return value
        found = read(value)
        if isinstance(found, (dict, list)) and not is_tag(found):
            raise ValueError("an alias stands for one value, not for an object or a list")
        return meanings.get(found, found) if isinstance(found, str) else found

    return normalise
