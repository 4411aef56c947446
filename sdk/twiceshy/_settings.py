"""Where the guard is and how to enter: said in code, else by the environment, else ./twiceshy.db in this process."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import msgspec

from twiceshy.exceptions import SetupError
from twiceshy_contract.variables import refusal_of_unknown

URL_VARIABLE: Final = "TWICESHY_URL"
TOKEN_VARIABLE: Final = "TWICESHY_TOKEN"
DEFAULT_URL: Final = "http://127.0.0.1:8700"
EMBEDDED_URL: Final = "sqlite:///twiceshy.db"

_SQLITE: Final = "sqlite:///"
_POSTGRESQL: Final = ("postgresql", "postgres", "postgresql+asyncpg")
_SCHEMES: Final = ("http", "https", "sqlite", *_POSTGRESQL)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A service and the token for it. `shown` is the URL as it may be printed, without a password."""

    url: str
    token: str | None
    shown: str


def settle(url: str | None, token: str | None) -> Settings:
    """Fill in from the environment and check. Raises SetupError that says what to set."""
    refusal = refusal_of_unknown(os.environ)
    if refusal is not None:
        raise SetupError(refusal)
    chosen = _checked_url(_lowered(url or os.environ.get(URL_VARIABLE) or EMBEDDED_URL))
    return Settings(
        url=chosen, token=_checked_token(token or os.environ.get(TOKEN_VARIABLE)), shown=_without_password(chosen)
    )


def is_database(url: str) -> bool:
    """Say whether a URL names a database, so that the guard is embedded in this process."""
    return url.partition(":")[0] in ("sqlite", *_POSTGRESQL)


def file_of(url: str) -> Path | None:
    """Return the SQLite file that a checked URL names, if it names one."""
    return Path(unquote(url.removeprefix(_SQLITE))) if url.startswith(_SQLITE) else None


def _lowered(url: str) -> str:
    """Write the scheme in small letters, for it is the same in any case; what has none stays as it was said."""
    scheme, colon, rest = url.partition(":")
    return f"{scheme.lower()}{colon}{rest}" if scheme.lower() in _SCHEMES else url


def _checked_url(url: str) -> str:
    scheme = url.partition(":")[0]
    if scheme == "sqlite":
        return _checked_file(url)
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SetupError(f"{_without_password(url)!r} is not a service URL: {error}.") from error
    if scheme in _POSTGRESQL:
        return url
    if parts.scheme not in ("http", "https") or not host:
        raise SetupError(
            f"{_without_password(url)!r} is not a service URL: it must look like {DEFAULT_URL!r}, or name a database "
            f"like {EMBEDDED_URL!r} or 'postgresql://user:password@host:port/name'."
        )
    if parts.username is not None or parts.query or parts.fragment:
        raise SetupError(
            f"The URL of {host} is not a service URL: leave out user, query and fragment; pass a secret as token=."
        )
    return url.rstrip("/")


def _checked_file(url: str) -> str:
    """Name the file by its real path: one name a file, and the same when the program goes to another folder."""
    path = url.removeprefix(_SQLITE)
    if not url.startswith(_SQLITE) or path in ("", ":memory:") or "?" in path:
        raise SetupError(f"{url!r} is not a service URL: it must name one file, like {EMBEDDED_URL!r}.")
    try:
        real = Path(os.path.realpath(unquote(path))).as_posix()
    except ValueError as error:
        raise SetupError(f"{url!r} is not a service URL: {error}.") from error
    for character, quoted in (("%", "%25"), ("?", "%3F"), (" ", "%20")):
        real = real.replace(character, quoted)
    return f"{_SQLITE}{real}"


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    shown = f"{user.partition(':')[0]}{at}{host}"
    return f"{scheme}{separator}{shown}{slash}{path.partition('?')[0] if scheme in _POSTGRESQL else path}"


def _checked_token(token: str | None) -> str | None:
    if not token:
        return None
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SetupError(f"The token has characters that no HTTP header carries; check {TOKEN_VARIABLE}.")
    return token
