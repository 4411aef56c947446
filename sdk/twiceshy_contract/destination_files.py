"""What a document that declares destinations must say: every place that is wrong, whoever reads it.

    destinations:
      NAME: {kind: ..., ...}

No secret stands in it.
"""

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias, get_args
from urllib.parse import urlsplit

import msgspec

from twiceshy_contract.destinations import Destination, DestinationName, SinkKind
from twiceshy_contract.refusals import JsonValue, Refusal, Step
from twiceshy_contract.variables import did_you_mean
from twiceshy_contract.wire import convert

ROOT: Final = "destinations"
Place: TypeAlias = tuple[Step, ...]
Flaw: TypeAlias = tuple[Place, str]
_SECRETS: Final = ("secrets", "secret_headers", "password", "token", "credentials")
_URLS: Final = ("url", "servers")
_SPEAKING: Final = ("authorization", "cookie", "proxy-authorization", "x-api-key", "api-key", "x-auth-token")
"""Headers whose value is a secret."""
_NAMED: Final = (
    "a secret never stands here: say env:TWICESHY_SECRET_… (a variable of whoever sends, such as "
    "env:TWICESHY_SECRET_MAIL) or file:/path"
)
_IN_URL: Final = "a secret does not stand in a URL: name it in a field of its own, such as `password`"
_IN_HEADER: Final = "this header is a secret: name it in `secret_headers`, as env:TWICESHY_SECRET_… or file:/path"


class _Settings(msgspec.Struct, frozen=True):
    """A destination by itself: a union has no room of its own in a refusal."""

    settings: Destination


class Declared(msgspec.Struct, frozen=True):
    """The destinations that a document declares, by name in its order, and every place in it that is wrong."""

    settings: dict[str, Destination]
    flaws: tuple[Flaw, ...]


def destinations_of(root: JsonValue) -> Declared:
    """Read a document. Where it has flaws, the settings are those of the destinations that have none."""
    named = root.get(ROOT) if isinstance(root, dict) else None
    flaws = list(_flaws_of_the_root(root))
    settings: dict[str, Destination] = {}
    for name, value in named.items() if isinstance(named, dict) else ():
        found = list(_flaws_of_the_name(name)) + list(_flaws(name, value))
        flaws += found
        if not found:
            settings[name] = convert({"settings": value}, _Settings).settings
    return Declared(settings, tuple(flaws))


def _flaws_of_the_root(root: JsonValue) -> Iterator[Flaw]:
    if not isinstance(root, dict) or not isinstance(root.get(ROOT), dict):
        yield (ROOT,), "destinations is missing: it is a mapping of names to settings"
    elif not root[ROOT]:
        yield (ROOT,), "no destination is declared here"
    yield from (
        ((name,), "this field is not known") for name in (root if isinstance(root, dict) else {}) if name != ROOT
    )


def _flaws_of_the_name(name: str) -> Iterator[Flaw]:
    try:
        msgspec.convert(name, DestinationName)
    except msgspec.ValidationError:
        yield (ROOT, name), "a destination's name has 1 to 100 letters, digits, dots, dashes and underscores"


def _flaws(name: str, value: JsonValue) -> Iterator[Flaw]:
    """Yield what is wrong with the settings of one destination."""
    here: Place = (ROOT, name)
    kinds = get_args(SinkKind)
    if not isinstance(value, dict):
        yield here, "settings are a mapping that begins with `kind`"
        return
    kind = value.get("kind")
    if kind not in kinds:
        near = did_you_mean(kind, kinds).rstrip(".") if isinstance(kind, str) else "."
        said = "kind is missing" if kind is None else f"there is no kind {str(kind)[:40]!r}{near.rstrip('.')}"
        yield (*here, "kind"), f"{said}; the kinds are {', '.join(kinds)}"
        return
    secrets = dict(_secrets_in(value))
    yield from (((*here, *place), why) for place, why in secrets.items())
    try:
        convert({"settings": value}, _Settings)
    except Refusal as refusal:
        place = tuple(refusal.steps[1:])
        if place not in secrets:
            yield (*here, *place), refusal.reason


def _secrets_in(value: dict[str, JsonValue]) -> Iterator[Flaw]:
    """Yield the places where a secret stands, or what is none and ought to name one."""
    for field in _SECRETS:
        for place, text in _texts(value.get(field), (field,)):
            if not text.startswith(("env:TWICESHY_SECRET_", "file:/")):
                yield place, _NAMED
    for field in _URLS:
        yield from ((place, _IN_URL) for place, text in _texts(value.get(field), (field,)) if _has_password(text))
    headers = value.get("headers")
    if isinstance(headers, dict):
        yield from ((("headers", name), _IN_HEADER) for name in headers if name.lower() in _SPEAKING)


def _texts(value: JsonValue, place: Place) -> Iterator[tuple[Place, str]]:
    match value:
        case str():
            yield place, value
        case list() | dict():
            members: Sequence[tuple[Step, JsonValue]] = (
                list(enumerate(value)) if isinstance(value, list) else list(value.items())
            )
            for step, member in members:
                if isinstance(member, str):
                    yield (*place, step), member
        case _:
            pass


def _has_password(url: str) -> bool:
    try:
        return urlsplit(url).password is not None
    except ValueError:  # what is no URL is refused by the service
        return False
