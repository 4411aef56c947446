"""Normalisers: one spelling for what a tool says is written in several ways."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from twiceshy_contract.canonical import utc
from twiceshy_contract.refusals import JsonValue
from twiceshy_contract.tools import NormaliserName

_AMBIGUOUS: Final = frozenset("ßς\u200c\u200d")
"""Characters that the old IDNA maps to others and today's keeps, so that one spelling means two domains."""
_ADDRESS: Final = re.compile(r"\s*(?:[^<>@]*<)?(?P<local>[^<>\s@]+)@(?P<domain>[^<>\s@]+?)\.?>?\s*")


def utc_instant(value: JsonValue) -> JsonValue:
    """Write a date-time with offset in UTC. A tagged date-time is the same as its text."""
    if isinstance(value, dict) and isinstance(tagged := value.get("$dt"), str):
        return utc(tagged)
    if not isinstance(value, str):
        raise ValueError("a date-time is a string or a $dt")
    return utc(value)


def email_address(value: JsonValue) -> JsonValue:
    """Write a mail address in lower case without its display name, the domain in its ASCII form (IDNA)."""
    if not isinstance(value, str):
        raise ValueError("a mail address is a string")
    address = _ADDRESS.fullmatch(value)
    if address is None:
        raise ValueError("this is not a mail address")
    if _AMBIGUOUS & set(address["domain"]) or address["domain"].endswith("."):
        raise ValueError("the domain of the mail address is ambiguous; write it in its ASCII form")
    try:
        domain = address["domain"].lower().encode("idna").decode()
    except UnicodeError as error:
        raise ValueError("the domain of the mail address cannot exist") from error
    return f"{address['local'].lower()}@{domain}"


NORMALISERS: Final[Mapping[NormaliserName, Callable[[JsonValue], JsonValue]]] = MappingProxyType(
    {"utc": utc_instant, "email": email_address}
)
