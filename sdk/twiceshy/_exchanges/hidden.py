"""The secrets of one request, taken out of what is kept of its error.

Libraries put the URL, and at times a header's value, into the text of what they raise.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

import msgspec

from twiceshy._exchanges.asked import Asked
from twiceshy._exchanges.secrets import IN_QUERIES, IN_REQUESTS, fields_without_secrets, without_secrets
from twiceshy._raised import written_error
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.redaction import REDACTED

_SHORTEST: Final = 4
"""A value that is shorter hides in any text: it is taken out of URLs alone."""
_FORM: Final = "application/x-www-form-urlencoded"
_USERINFO: Final = re.compile(r"(?<=//)[^/?#\s@]+@")


class Hidden:
    """What an error of a request must not tell."""

    def __init__(self, asked: Asked, more: frozenset[str]) -> None:
        self._asked = asked
        self._more = more

    def written(self, error: BaseException) -> ErrorOutcome:
        """Write an error without the secrets of its request."""
        told, replaced = written_error(error), self._replacing()
        return ErrorOutcome(type=told.type, message=replaced(told.message), data=_everywhere(told.data, replaced))

    def _replacing(self) -> Callable[[str], str]:
        url, more = self._asked.url, self._more
        parts = urlsplit(url)
        target = f"{parts.path}?{parts.query}"
        pairs = {url: without_secrets(url, more)}
        if parts.query:
            pairs[target] = f"{parts.path}?{fields_without_secrets(parts.query, more)}"
        for secret in set(self._secrets()):
            if len(secret) >= _SHORTEST:
                pairs |= dict.fromkeys(_ways_to_write(secret), REDACTED)
        longest_first = sorted((each for each in pairs if each), key=len, reverse=True)
        wanted = re.compile("|".join(map(re.escape, longest_first)))
        return lambda text: _USERINFO.sub("", wanted.sub(lambda found: pairs[found[0]], text))

    def _secrets(self) -> Iterator[str]:
        asked = self._asked
        parts = urlsplit(asked.url)
        yield from asked.credentials
        user, _, password = parts.netloc.rpartition("@")[0].partition(":")
        yield from (user, password)
        yield from self._of_fields(parts.query)
        if dict(asked.headers).get("content-type", "").lower().startswith(_FORM):
            yield from self._of_fields(asked.body.decode(errors="replace"))
        else:
            yield from self._of_members()

    def _of_fields(self, query: str) -> Iterator[str]:
        for field in query.split("&"):
            name, _, value = field.partition("=")
            if unquote_plus(name).lower() in IN_QUERIES | self._more:
                yield value

    def _of_members(self) -> Iterator[str]:
        try:
            value: Any = msgspec.json.decode(self._asked.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return
        for name, member in value.items() if isinstance(value, dict) else ():
            if isinstance(member, str) and name.lower() in IN_REQUESTS | self._more:
                yield member


def _ways_to_write(secret: str) -> set[str]:
    """Return a secret as it stands, without its quotes, and quoted in each of the ways that libraries have."""
    plain = {secret, secret.strip(), unquote(secret), unquote_plus(secret)}
    if secret.partition(" ")[2]:
        plain.add(secret.partition(" ")[2].strip())  # what follows `Bearer`
    ways = plain | {repr(each)[1:-1] for each in plain} | {msgspec.json.encode(each).decode()[1:-1] for each in plain}
    for each in plain:
        ways |= {quote(each), quote(each, safe=""), quote_plus(each)}
    return {way for way in ways if len(way) >= _SHORTEST}


def _everywhere(value: Any, replaced: Callable[[str], str]) -> Any:
    match value:
        case str():
            return replaced(value)
        case list():
            return [_everywhere(item, replaced) for item in value]
        case dict():
            return {name: _everywhere(member, replaced) for name, member in value.items()}
        case _:
            return value
