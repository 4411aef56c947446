"""Domains in their ASCII form (IDNA), as mail addresses and URLs hold them."""

import re
from typing import Final

_AMBIGUOUS: Final = frozenset("ßς\u200c\u200d")
"""Characters that the old IDNA maps to others and today's keeps, so that one spelling means two domains."""
_DOMAIN: Final = re.compile(r"[a-z0-9._-]+")


def ascii_domain(domain: str, of: str) -> str:
    """Write a domain in lower-case ASCII. Raises ValueError that says of what it is the domain."""
    if _AMBIGUOUS & set(domain):
        raise ValueError(f"the domain of {of} is ambiguous; write it in its ASCII form")
    try:
        written = domain.lower().encode("idna").decode().lower()
    except UnicodeError as error:
        raise ValueError(f"the domain of {of} cannot exist") from error
    if _DOMAIN.fullmatch(written) is None:
        raise ValueError(f"the domain of {of} cannot exist")
    return written
