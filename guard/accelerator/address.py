"""Where Redis is: read from a URL, and refused where it is none, with what is wrong and what would do."""

from collections.abc import Iterable, Mapping
from importlib import util
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from twiceshy_contract.variables import did_you_mean

Kind = Literal["single", "file", "cluster", "sentinel"]
Host = tuple[str, int]

_PORT: Final = 6379
_SENTINEL_PORT: Final = 26379
_SCHEMES: Final[Mapping[str, tuple[Kind, bool]]] = {
    "redis": ("single", False),
    "rediss": ("single", True),
    "unix": ("file", False),
    "redis+cluster": ("cluster", False),
    "rediss+cluster": ("cluster", True),
    "redis+sentinel": ("sentinel", False),
    "rediss+sentinel": ("sentinel", True),
}
_EXAMPLES: Final[Mapping[Kind, str]] = {
    "single": "redis://user:password@host:6379/0",
    "file": "unix:///run/valkey/valkey.sock?db=0",
    "cluster": "redis+cluster://user:password@host:6379,other:6379",
    "sentinel": "redis+sentinel://user:password@host:26379,other:26379/service/0",
}
_TLS_OPTIONS: Final = ("ca",)
_OPTIONS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "single": (),
    "file": ("db",),
    "cluster": (),
    "sentinel": ("sentinel_user", "sentinel_password"),
}


class AddressRefused(ValueError):
    """The URL names no Redis that could be spoken to; the text says why, and what would do."""


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where Redis is, and how to log in. `ca` is a file of certificates to trust instead of the system's.

    With sentinels, `hosts` are theirs, and they may want another login than the server that they watch.
    """

    kind: Kind
    hosts: tuple[Host, ...] = ()
    path: str = ""
    db: int = 0
    service: str = ""
    is_encrypted: bool = False
    ca: str | None = None
    user: str | None = None
    password: str | None = None
    sentinel_user: str | None = None
    sentinel_password: str | None = None

    @property
    def shown(self) -> str:
        """The address without what is secret."""
        if self.kind == "file":
            return f"unix://{self.path}?db={self.db}"
        scheme = next(name for name, meant in _SCHEMES.items() if meant == (self.kind, self.is_encrypted))
        hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.hosts)
        place = {"single": f"/{self.db}", "sentinel": f"/{self.service}/{self.db}"}.get(self.kind, "")
        return f"{scheme}://{hosts}{place}"


def address_of(url: str) -> Address:
    """Read a URL. Raises AddressRefused."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _refused("single", f"it cannot be read ({error})") from error
    if parts.scheme not in _SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
        raise _refused("single", f"it begins with none of {known}{_perhaps(parts.scheme, _SCHEMES)}")
    kind, is_encrypted = _SCHEMES[parts.scheme]
    login, _, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    options = _options(kind, parts.query, is_encrypted=is_encrypted)
    place = unquote(parts.path)
    service, db = _place(kind, place, options)
    return Address(
        kind=kind,
        hosts=_hosts(kind, hosts),
        path=place if kind == "file" else "",
        db=db,
        service=service,
        is_encrypted=is_encrypted,
        ca=options.get("ca"),
        user=unquote(user) or None,
        password=unquote(password) or None,
        sentinel_user=options.get("sentinel_user"),
        sentinel_password=options.get("sentinel_password"),
    )


def check(url: str) -> None:
    """Check a URL, and that what speaks to Redis is installed. Raises AddressRefused."""
    address_of(url)
    if util.find_spec("redis") is None or util.find_spec("hiredis") is None:
        raise AddressRefused("Redis needs its client, which is not installed: pip install 'twiceshy-server[redis]'.")


def _options(kind: Kind, query: str, *, is_encrypted: bool) -> dict[str, str]:
    known = _OPTIONS[kind] + (_TLS_OPTIONS if is_encrypted else ())
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in known:
            raise _refused(kind, f"its option {name!r} means nothing here{_perhaps(name, known)}")
    return options


def _place(kind: Kind, place: str, options: Mapping[str, str]) -> tuple[str, int]:
    """Return the service that sentinels watch, and the number of the database."""
    if kind == "file":
        if not place.startswith("/"):
            raise _refused(kind, "it has no path to a socket")
        return "", _number(kind, options.get("db", "0"))
    names = [name for name in place.split("/") if name]
    if kind == "single" and len(names) <= 1:
        return "", _number(kind, *names or ["0"])
    if kind == "cluster" and not names:
        return "", 0
    if kind == "sentinel" and 1 <= len(names) <= 2:
        return names[0], _number(kind, *names[1:] or ["0"])
    wanted: Mapping[Kind, str] = {
        "single": "it has more behind its host than the number of a database",
        "cluster": "it has a database behind its hosts, and a cluster has but one",
        "sentinel": "it does not say which service the sentinels watch",
    }
    raise _refused(kind, wanted[kind])


def _number(kind: Kind, text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _refused(kind, f"its database {text!r} is no number")
    return int(text)


def _hosts(kind: Kind, text: str) -> tuple[Host, ...]:
    if kind == "file":
        if text:
            raise _refused(kind, f"it names a host, {text!r}, and a socket is a path")
        return ()
    written = text.split(",")
    if kind == "single" and len(written) > 1:
        raise _refused(kind, "it names several hosts: say redis+cluster:// or redis+sentinel://")
    default = _SENTINEL_PORT if kind == "sentinel" else _PORT
    return tuple(_host(kind, one, default) for one in written)


def _host(kind: Kind, text: str, default: int) -> Host:
    host, colon, port = text.rpartition(":") if not text.endswith("]") else (text, "", "")
    if not colon:
        host = text
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise _refused(kind, f"its host {host!r} has more than one colon: write an IPv6 address in brackets")
    if not host:
        raise _refused(kind, "it names no host")
    if colon and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise _refused(kind, f"its port {port!r} is none")
    return host, int(port) if colon else default


def _perhaps(name: str, known: Iterable[str]) -> str:
    return did_you_mean(name, known).rstrip(".?")


def _refused(kind: Kind, why: str) -> AddressRefused:
    return AddressRefused(f"The address of Redis cannot be used: {why}. Write it like {_EXAMPLES[kind]}.")
