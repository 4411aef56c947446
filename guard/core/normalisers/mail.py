"""Mail addresses."""

import re
from typing import Final

from guard.core.normalisers.domains import ascii_domain
from twiceshy_contract.refusals import JsonValue

_ADDRESS: Final = re.compile(r"(?P<named>[^<>@]*<)?(?P<local>[^<>\s@]+)@(?P<domain>[^<>\s@]+?)\.?(?(named)>)")


def email_address(value: JsonValue) -> JsonValue:
    """Write a mail address in lower case without its display name, the domain in its ASCII form (IDNA)."""
    if not isinstance(value, str):
        raise ValueError("a mail address is a string")
    address = _ADDRESS.fullmatch(value.strip())
    if address is None:
        raise ValueError("this is not a mail address")
    if address["domain"].endswith("."):
        raise ValueError("the domain of the mail address is ambiguous; write it in its ASCII form")
    local = address["local"]
    if not local.isascii() and local.lower().isascii():
        raise ValueError("the mail address has a letter that only looks like an ASCII one")
    return f"{local.lower()}@{ascii_domain(address['domain'], 'the mail address')}"
