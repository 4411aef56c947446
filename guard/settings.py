"""Settings of the service: from the environment `TWICESHY_*` and the command line, checked before anything starts."""

import base64
import binascii
import ipaddress
from collections.abc import Mapping
from typing import Final

import msgspec

DEFAULT_DATABASE: Final = "sqlite:///twiceshy.db"
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8700
DEFAULT_REDIS_SECONDS: Final = 3600
"""How long after its end a final effect is found in Redis."""


class SettingsRefused(ValueError):
    """The settings cannot be served with."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How to serve. Without tokens the service binds only to this machine.

    `approvers` are the names of those who may decide approvals, by their tokens; without one, everybody may.
    `inbound_secrets` sign mail that comes in; without one, none is taken. `redis` is the address of what makes true
    answers arrive sooner; without it they come from the database. It keeps them for `redis_seconds`.
    """

    database: str = DEFAULT_DATABASE
    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    tokens: tuple[str, ...] = ()
    approvers: Mapping[str, str] = {}
    inbound_secrets: tuple[bytes, ...] = ()
    redis: str = ""
    redis_seconds: int = DEFAULT_REDIS_SECONDS

    def __post_init__(self) -> None:
        if not self.approvers.keys().isdisjoint(self.tokens):
            raise SettingsRefused(
                "TWICESHY_TOKENS and TWICESHY_APPROVERS share a token: an agent that has it could approve its own "
                "calls. Give approvers tokens of their own."
            )
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
    return tuple(_token(part.strip(), "TWICESHY_TOKENS") for part in text.split(",") if part.strip())


def approvers_of(text: str) -> dict[str, str]:
    """Read a list of `name:token`, separated by commas, into names by token. Raises SettingsRefused."""
    approvers: dict[str, str] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, colon, token = part.partition(":")
        if not colon or not name.strip() or not token.strip():
            raise SettingsRefused("TWICESHY_APPROVERS holds name:token, separated by commas, such as alice:s3cret.")
        named = approvers.setdefault(_token(token.strip(), "TWICESHY_APPROVERS"), name.strip())
        if named != name.strip():
            raise SettingsRefused(f"TWICESHY_APPROVERS gives {named} and {name.strip()} one token; each needs its own.")
    return approvers


def inbound_secrets_of(text: str) -> tuple[bytes, ...]:
    """Read a list of secrets as Standard Webhooks write them, separated by commas. Raises SettingsRefused."""
    return tuple(_secret(part.strip()) for part in text.split(",") if part.strip())


def _secret(written: str) -> bytes:
    how = "TWICESHY_INBOUND_SECRETS holds secrets of 24 to 64 bytes, each whsec_ and then base64, separated by commas."
    prefix, _, text = written.partition("_")
    try:
        secret = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError) as error:
        raise SettingsRefused(how) from error
    if prefix != "whsec" or not 24 <= len(secret) <= 64:
        raise SettingsRefused(how)
    return secret


def _token(token: str, variable: str) -> str:
    if not token.isascii() or not token.isprintable() or " " in token:
        raise SettingsRefused(f"{variable} holds a token that an Authorization header cannot carry.")
    return token
