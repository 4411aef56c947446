"""The front of the service: names, admits and logs every request, and serves the hot verbs itself.

A begin or a commit costs less here than the framework's routing alone would; all other requests go on to it.
"""

import asyncio
from typing import Final
from urllib.parse import unquote_to_bytes

from litestar import Litestar
from litestar.enums import ScopeType
from litestar.types import HTTPScope, Message, Receive, Scope, Send

from guard.core.effects import RunId
from guard.ports.store import StoreUnavailable
from guard.service.use_cases import UseCases
from guard.web import problems
from guard.web.answer import CONTRACT, REQUEST_ID, Answer
from guard.web.authorization import BearerTokens, Caller, credential_in
from guard.web.exchange import Exchange, body_of
from guard.web.fork_access import fenced, refusal
from guard.web.line import Line
from guard.web.requests import DEFAULT_TENANT
from guard.web.room import Held, Room, is_small
from guard.web.verb import Asked, Verbs
from twiceshy_contract.effects import BeginRequest

_CLIENT_GONE: Final = 499
_BODILESS: Final = frozenset({"GET", "HEAD"})


class Front:
    """An ASGI application around the framework's."""

    def __init__(self, rest: Litestar, verbs: Verbs, tokens: BearerTokens) -> None:
        self.rest: Final = rest
        self._verbs = verbs
        self._tokens = tokens
        self._use_cases: UseCases | None = None
        self._room = Room()

    def use_cases(self) -> UseCases:
        """Return the service that the application was started with."""
        if self._use_cases is None:
            self._use_cases = self.rest.state["use_cases"]
        return self._use_cases

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the application's life."""
        if scope["type"] == ScopeType.HTTP:
            await self._request(scope, receive, send)
        else:
            self._use_cases = None  # a life that begins brings a service of its own
            await self.rest(scope, receive, send)

    async def _request(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        line = Line(scope)
        asked = self._verbs.find(scope["path"])
        is_utf8 = "\ufffd" not in scope["path"] or _is_utf8(scope["raw_path"])
        answer: Answer | None
        credential = credential_in(scope)
        caller = self._tokens.admit(scope) if credential is None else await self._driver(credential)
        if isinstance(caller, Answer):
            answer = caller
        elif caller is None:
            answer = problems.answer("unauthorized", "The request has no valid token.")
        elif not caller.is_allowed:
            answer = problems.answer("forbidden", f"The token of {caller.approver} decides approvals and reads.")
        elif not is_utf8:
            answer = problems.answer("invalid-request", "The path is not in UTF-8.")
        elif asked is None or scope["method"] in asked.verb.also:
            scope["user"] = caller
            refused = await self._rest(caller.fork, scope, receive, send, line)
            if refused is None:
                return
            answer = refused
        elif scope["method"] != "POST":
            answer = _other_method(scope, asked)
        else:
            answer = await self._served(asked, scope, receive, line, caller.fork)
        if answer is None:
            line.write(_CLIENT_GONE)
            return
        await answer.send_by(scope, send, line.request_id)
        line.facts["said"] = answer.said
        line.write(answer.status)

    async def _driver(self, credential: str) -> Caller | Answer | None:
        """Say which fork a credential drives; None for a forged one."""
        try:
            fork = await self.use_cases().credentials.run_of(DEFAULT_TENANT, credential)
        except StoreUnavailable as error:
            return problems.of_error("credential", error)
        return None if fork is None else Caller(fork=fork)

    async def _rest(
        self, fork: RunId | None, scope: HTTPScope, receive: Receive, send: Send, line: Line
    ) -> Answer | None:
        """Let the framework serve it; or say what it is refused with."""
        held = Held(self._room, self.use_cases())
        if scope["method"] not in _BODILESS:
            receive = held.watching(receive)
        try:
            allowed = receive if fork is None else await self._fenced(fork, scope, receive)
            if isinstance(allowed, Answer):
                return allowed
            await self._pass_on(scope, allowed, send, line)
            return None
        finally:
            held.give_back()

    async def _fenced(self, fork: RunId, scope: HTTPScope, receive: Receive) -> Receive | Answer:
        """Let a fork's request pass that its credential may make, its body to be read again; or refuse it."""
        try:
            return await fenced(self.use_cases(), fork, scope, receive)
        except Exception as error:  # noqa: BLE001 - the last place where a request can be answered
            return problems.of_error(scope["path"], error)

    async def _served(
        self, asked: Asked, scope: HTTPScope, receive: Receive, line: Line, fork: RunId | None
    ) -> Answer | None:
        """Do what is asked, whatever comes of it; None where the client has gone before it had asked."""
        use_cases, begins, room = self.use_cases(), asked.verb.begins, self._room
        held = None if is_small(scope) else Held(room, use_cases)
        try:
            room.check(use_cases, begins=begins)
            body = await body_of(scope, receive, None if held is None else held.take)
            if body is None:
                return None
            room.enter(use_cases, begins=begins)
            try:
                return await self._done(asked, scope, body, line, fork)
            finally:
                room.leave()
        except Exception as error:  # noqa: BLE001 - the last place where a request can be answered
            return problems.of_error(scope["path"], error)
        finally:
            if held is not None:
                held.give_back()

    async def _done(self, asked: Asked, scope: HTTPScope, body: bytes, line: Line, fork: RunId | None) -> Answer:
        exchange = Exchange(self.use_cases(), scope["headers"], body, line.facts, fork)
        kind = asked.verb.body
        message = await asyncio.to_thread(exchange.message, kind) if exchange.is_large else exchange.message(kind)
        if isinstance(message, BeginRequest):
            line.facts["tool"], line.facts["run"] = message.tool, message.run
        if not asked.is_key:
            return problems.answer("not-found", f"Nothing is served at {scope['path']}.")
        refused = None if fork is None else await refusal(exchange, scope["path"], message)
        return refused or await asked.verb.do(exchange, message, asked.key)

    async def _pass_on(self, scope: HTTPScope, receive: Receive, send: Send, line: Line) -> None:
        """Let the framework serve it, and watch the status go by."""
        status = _CLIENT_GONE

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (REQUEST_ID, line.request_id.encode()), CONTRACT]
            await send(message)

        try:
            await self.rest(scope, receive, watched)
        finally:
            line.write(status)


def _is_utf8(raw_path: bytes) -> bool:
    """Say whether a path was sent in UTF-8; the server puts U+FFFD in the place of what is not."""
    try:
        unquote_to_bytes(raw_path).decode()
    except UnicodeDecodeError:
        return False
    return True


def _other_method(scope: HTTPScope, asked: Asked) -> Answer:
    allowed = ", ".join(sorted(("POST", *asked.verb.also)))
    return problems.answer(
        "method-not-allowed", f"{scope['path']} has no method {scope['method']}.", headers={"Allow": allowed}
    )
