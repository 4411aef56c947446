"""The port that the flow speaks through: a request goes out, a reply or the lack of one comes back.

A transport never raises for the network's weather: whatever happened, `NoReply` says only that no answer came,
never that the request was not sent.
"""

import secrets
from typing import Final, Literal, Protocol

import msgspec

from twiceshy_contract.wire import CONTRACT_HEADER, CONTRACT_VERSION

AUTHORIZATION: Final = "Authorization"
Method = Literal["GET", "POST", "PUT"]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One HTTP request. `path` begins with a slash and is already quoted; `timeout_seconds` is for all of it.

    `joins` says that it may go in one batch with others: it does not wait, and what it says is all in its body. A
    `token` is sent in the place of the guard's own, and goes in no batch: who drives a fork may not ask for others.
    """

    method: Method
    path: str
    body: bytes | None = None
    timeout_seconds: float = 10.0
    joins: bool = False
    token: str | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What came back. `contract` is the version of the contract that the service says it speaks."""

    status: int
    content_type: str
    body: bytes
    retry_after: str | None = None
    contract: str | None = None


class NoReply(msgspec.Struct, frozen=True, kw_only=True):
    """No answer came, or none that can be read. Whether the request arrived is not known.

    `is_final` says that none can come any more in this process, however often it is asked.
    """

    reason: str
    is_final: bool = False


def new_request_id() -> str:
    """Draw the id under which the service's log knows a request."""
    return secrets.token_hex(8)


def no_reply(reason: str, request_id: str) -> NoReply:
    """Say that no answer came, and under which id the service's log knows the request if it arrived."""
    return NoReply(reason=f"{reason}; request {request_id}")


def headers(token: str | None) -> dict[str, str]:
    """Return what every request says of its sender."""
    return {CONTRACT_HEADER: str(CONTRACT_VERSION), "Accept": "application/json", **authorization(token)}


def authorization(token: str | None) -> dict[str, str]:
    """Return the header that carries a token."""
    return {} if token is None else {AUTHORIZATION: f"Bearer {token}"}


class Transport(Protocol):
    """Send requests to one service, blocking or on an event loop, from any thread."""

    def send(self, request: Request) -> Reply | NoReply:
        """Send a request and wait for its reply."""
        ...

    async def send_async(self, request: Request) -> Reply | NoReply:
        """Send a request and await its reply."""
        ...

    def close(self) -> None:
        """Let go of all connections."""
        ...

    async def close_async(self) -> None:
        """Let go of all connections, those of event loops too."""
        ...
