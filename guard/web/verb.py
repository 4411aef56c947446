"""The table of hot verbs: which path asks for which, with which body, and what may share the path."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, NamedTuple

import msgspec
from litestar.openapi.spec import Operation

from guard.core.effects import Key
from guard.web.answer import Answer
from guard.web.exchange import Exchange
from guard.web.wire import key_of

KEYED: Final = "/v1/effects/"
"""What the paths begin with that name a key: `/v1/effects/{key}/{verb}`."""
BEGIN_PATH: Final = "/v1/effects"
NO_KEY: Final = Key(b"")


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """A verb that is served without the framework's routes. `also` are methods of its path that the framework has.

    `begins` says that it begins something, and so is put off before what ends something. Without an `operation_id`,
    the description calls it by the last part of its path.
    """

    path: str
    body: type[msgspec.Struct]
    do: Callable[[Exchange, Any, Key], Awaitable[Answer]]
    operation: type[Operation]
    also: tuple[str, ...] = ()
    begins: bool = False
    operation_id: str = ""


class Asked(NamedTuple):
    """A verb and the key that its path names; a text that is no key names no effect."""

    verb: Verb
    key: Key
    is_key: bool = True


class Verbs:
    """All hot verbs, found by path."""

    def __init__(self, verbs: Iterable[Verb]) -> None:
        self.all = tuple(verbs)
        self._plain = {verb.path: Asked(verb, NO_KEY) for verb in self.all if "{key}" not in verb.path}
        self._keyed = {verb.path.rpartition("/")[2]: verb for verb in self.all if "{key}" in verb.path}

    def find(self, path: str) -> Asked | None:
        """Return the verb of a path."""
        plain = self._plain.get(path)
        if plain is not None or not path.startswith(KEYED):
            return plain
        text, _, name = path[len(KEYED) :].partition("/")
        verb = self._keyed.get(name)
        if verb is None:
            return None
        key = key_of(text)
        return Asked(verb, NO_KEY, is_key=False) if key is None else Asked(verb, key)
