"""Bearer tokens: without one of them nothing answers but the health of the process and the documents.

Where approvers have tokens of their own, these read everything, decide and take back approvals, declare tools, and
declare and look after destinations and what waits for them; nothing else. An agent's token decides nothing then, lowers
no rule of approval, and moves no message but by staging, so that no agent can approve what it asks for itself.

The credential of a fork is a token too, with tokens or without: whoever sends one can do what that fork may, and no
more.

Mail comes in without a token: who sends it signs it, see `guard.web.signed`.
"""

import hmac
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec
from litestar.types import HTTPScope

from guard.core.effects import RunId
from twiceshy_contract.forks import CREDENTIAL
from twiceshy_contract.replies import INBOUND_PATH

_OPEN: Final = ("/health", "/schema", "/problems")
_APPROVER_POSTS: Final = re.compile(
    r"/v1/approvals/[^/]+/(?:decide|cancel)|/v1/tools/(?:plan|apply)|/v1/blobs/read"
    r"|/v1/runs/[^/]+/pauses/[^/]+|/v1/destinations/[^/]+/(?:pause|resume|remove|check)"
    r"|/v1/outbox/(?:redrive|[^/]+/cancel)"
)
_CREDENTIAL: Final = CREDENTIAL.encode()
_NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


class Caller(msgspec.Struct, frozen=True):
    """Who asks: an approver by name, who drives a fork, or anybody else; and whether this request is theirs to make."""

    approver: str | None = None
    is_allowed: bool = True
    fork: RunId | None = None


_ANYBODY: Final = Caller()


class BearerTokens:
    """Compares in constant time with every token that is known; without agents' tokens everybody is admitted."""

    def __init__(self, tokens: Sequence[str], approvers: Mapping[str, str] = _NOBODY) -> None:
        """Know the tokens of agents, and the names of approvers by their tokens."""
        self._tokens = [token.encode() for token in tokens]
        self._approvers = {token.encode(): name for token, name in approvers.items()}

    @property
    def knows_approvers(self) -> bool:
        """Whether approvers are known by their tokens."""
        return bool(self._approvers)

    def admit(self, scope: HTTPScope) -> Caller | None:
        """Say who asks; None where the request may not be served."""
        path = scope["path"]
        if not (self._tokens or self._approvers) or path.startswith(_OPEN) or path == INBOUND_PATH:
            return _ANYBODY
        headers = dict(scope["headers"])
        scheme, _, text = headers.get(b"authorization", b"").partition(b" ")
        token = text.strip() if scheme.lower() == b"bearer" else b""
        names = [name for known, name in self._approvers.items() if hmac.compare_digest(token, known)]
        if names:
            return Caller(approver=names[0], is_allowed=_may_approver(scope))
        is_known = [hmac.compare_digest(token, known) for known in self._tokens]
        return _ANYBODY if any(is_known) or not self._tokens else None


def credential_in(scope: HTTPScope) -> str | None:
    """Return the credential of a fork that a request has, forged or not; None where it has none, or needs none."""
    for name, value in scope["headers"]:
        if name == b"authorization":
            scheme, _, text = value.partition(b" ")
            token = text.strip()
            if scheme.lower() == b"bearer" and token.startswith(_CREDENTIAL) and not scope["path"].startswith(_OPEN):
                return token.decode("latin-1")
    return None


def _may_approver(scope: HTTPScope) -> bool:
    if scope["method"] == "PUT":
        return scope["path"].startswith(("/v1/tools/", "/v1/destinations/"))
    return scope["method"] in ("GET", "HEAD", "OPTIONS") or bool(_APPROVER_POSTS.fullmatch(scope["path"]))
