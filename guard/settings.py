"""Settings of the service: from the environment `TWICESHY_*` and the command line, checked before anything starts."""

import ipaddress
from typing import Final

import msgspec

DEFAULT_DATABASE: Final = "sqlite:///twiceshy.db"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8700


class SettingsRefused(ValueError):
    """The settings cannot be served with."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to serve. Without tokens the service binds only to this machine."""

    database: str = DEFAULT_DATABASE
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    tokens: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.tokens and not is_loopback(self.host):
            raise SettingsRefused(
                f"{self.host} can be reached from other machines and there are no tokens. "
                "Set TWICESHY_TOKENS to one or more secrets, separated by commas, or bind to 127.0.0.1."
            )


def is_loopback(host: str) -> bool:
    """Say whether a host to bind to is this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def tokens_of(text: str) -> tuple[str, ...]:
    """Read a list of tokens, separated by commas. Raises SettingsRefused for what a header cannot carry."""
    tokens = tuple(part.strip() for part in text.split(",") if part.strip())
    for token in tokens:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise SettingsRefused("TWICESHY_TOKENS holds a token that an Authorization header cannot carry.")
    return tokens
