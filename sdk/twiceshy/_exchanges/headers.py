"""Which headers of an answer are kept: the few that code reads, and none that holds a credential."""

from collections.abc import Iterable
from typing import Final

from twiceshy._exchanges.secrets import without_secrets

ENCODING: Final = "content-encoding"
TYPE: Final = "content-type"
_KEPT_HEADERS: Final = frozenset((
    "allow", "content-disposition", "content-language", TYPE, "etag", "last-modified", "link", "location",
    "openai-processing-ms", "request-id", "retry-after", "retry-after-ms", "www-authenticate", "x-request-id",
    "x-should-retry",
))  # fmt: skip


def kept_headers(
    headers: Iterable[tuple[str, str]], secrets: frozenset[str] = frozenset(), *, is_encoded: bool = False
) -> dict[str, str]:
    """Return the headers that are kept, by their names in lower case; of an encoded body, the encoding too."""
    kept: dict[str, str] = {}
    for given, value in headers:
        name = given.lower()
        if name in _KEPT_HEADERS or (is_encoded and name == ENCODING):
            said = without_secrets(value, secrets) if name == "location" else value
            kept[name] = f"{kept[name]}, {said}" if name in kept else said
    return kept
