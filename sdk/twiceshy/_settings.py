"""Where the service is and how to enter: said in code, else by the environment."""

import os
from typing import Final
from urllib.parse import urlsplit

import msgspec

from twiceshy.exceptions import SetupError

URL_VARIABLE: Final = "TWICESHY_URL"
TOKEN_VARIABLE: Final = "TWICESHY_TOKEN"
DEFAULT_URL: Final = "http://127.0.0.1:8700"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A service and the token for it."""

    url: str
    token: str | None


def settle(url: str | None, token: str | None) -> Settings:
    """Fill in from the environment and check. Raises SetupError that says what to set."""
    chosen = url or os.environ.get(URL_VARIABLE)
    if not chosen:
        raise SetupError(
            f"No service is named: pass Guard({DEFAULT_URL!r}) or set {URL_VARIABLE}. "
            "`twiceshy serve` starts a service."
        )
    return Settings(url=_checked_url(chosen), token=_checked_token(token or os.environ.get(TOKEN_VARIABLE)))


def _checked_url(url: str) -> str:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise SetupError(f"{url!r} is not a service URL: {error}.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise SetupError(f"{url!r} is not a service URL: it must look like {DEFAULT_URL!r}.")
    if parts.username is not None or parts.query or parts.fragment:
        raise SetupError(
            f"The URL of {host} is not a service URL: leave out user, query and fragment; pass a secret as token=."
        )
    return url.rstrip("/")


def _checked_token(token: str | None) -> str | None:
    if not token:
        return None
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SetupError(f"The token has characters that no HTTP header carries; check {TOKEN_VARIABLE}.")
    return token
