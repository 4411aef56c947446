"""What the credential of a fork may ask: one table. What it does not name is refused.

A fork drives its own runs: itself, its children and theirs. Each of their calls passes the fork's policy. It reads what
it goes on from, and declares nothing: a declaration is answered with what holds.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from litestar import Request
from litestar.types import HTTPReceiveMessage, HTTPScope, Receive, WebSocketReceiveMessage

from guard.core.effects import RunId
from guard.service.use_cases import UseCases
from guard.web import problems
from guard.web.answer import Answer
from guard.web.exchange import Exchange, body_of
from guard.web.requests import DEFAULT_TENANT
from guard.web.wire import key_of
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.names import RunName
from twiceshy_contract.outbox import StageRequest
from twiceshy_contract.policy import PolicyRequest
from twiceshy_contract.runs import OpenRunRequest
from twiceshy_contract.sagas import OpenSagaRequest


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a request is about: the name or key in its path, its body where that decides, the runs of its query."""

    named: str = ""
    body: Any = None
    runs: Sequence[str] = ()


class Driver(msgspec.Struct, frozen=True):
    """Who asks: the fork whose credential the request has."""

    use_cases: UseCases
    fork: RunId

    async def owns(self, run: str | None) -> bool:
        """Say whether a run is the fork's own."""
        return await self.use_cases.reach.owns(DEFAULT_TENANT, self.fork, _name_in(run))

    async def sees(self, run: str | None) -> bool:
        """Say whether the fork may read a run."""
        return await self.use_cases.reach.sees(DEFAULT_TENANT, self.fork, _name_in(run))


class Admission(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of request that a credential may make, where `is_within` says so of what it is about."""

    method: str
    path: re.Pattern[str]
    is_within: Callable[[Driver, Wish], Awaitable[bool]]
    body: type[msgspec.Struct] | None = None


async def _anything(driver: Driver, wish: Wish) -> bool:
    del driver, wish
    return True


async def _begun_in_own_run(driver: Driver, wish: Wish) -> bool:
    return await driver.owns(wish.body.run)


async def _decided_in_own_run(driver: Driver, wish: Wish) -> bool:
    return wish.body.fork is None and await driver.owns(wish.body.run)


async def _own_or_new_child(driver: Driver, wish: Wish) -> bool:
    """Take an own run, or a new one under an own one."""
    asked: OpenRunRequest = wish.body
    if await driver.owns(asked.run):
        return asked.parent is None or await driver.owns(asked.parent)
    is_free = await driver.use_cases.reach.is_free(DEFAULT_TENANT, asked.run)
    return is_free and await driver.owns(asked.parent)


async def _own_run(driver: Driver, wish: Wish) -> bool:
    return await driver.owns(wish.named)


async def _seen_run(driver: Driver, wish: Wish) -> bool:
    return await driver.sees(wish.named)


async def _of_seen_run(driver: Driver, wish: Wish) -> bool:
    return len(wish.runs) == 1 and await driver.sees(wish.runs[0])


async def _of_own_run(driver: Driver, wish: Wish) -> bool:
    return len(wish.runs) == 1 and await driver.owns(wish.runs[0])


async def _granted(driver: Driver, wish: Wish) -> bool:
    """Take an effect that the fork was let run; which attempt reports is proved by its token."""
    key = key_of(wish.named)
    return key is not None and await driver.use_cases.reach.was_let(driver.fork, key)


async def _seen_effect(driver: Driver, wish: Wish) -> bool:
    key = key_of(wish.named)
    shown = None if key is None else await driver.use_cases.effect(DEFAULT_TENANT, key)
    return shown is not None and await driver.sees(shown.effect.intent.run)


async def _own_saga(driver: Driver, wish: Wish) -> bool:
    name = _name_in(wish.named)
    looked = None if name is None else await driver.use_cases.sagas.look(DEFAULT_TENANT, name)
    return looked is not None and await driver.owns(looked.saga.run)


async def _own_approval(driver: Driver, wish: Wish) -> bool:
    try:
        approval = UUID(wish.named)
    except ValueError:
        return False
    found = await driver.use_cases.approvals.get(DEFAULT_TENANT, approval, 0)
    return found is not None and await driver.owns(found.approval.question.run)


def _name_in(text: str | None) -> str | None:
    """Return a name as it is; None for what can be none: nothing has it, and no database is asked for it."""
    try:
        return None if text is None else msgspec.convert(text, RunName)
    except msgspec.ValidationError:
        return None


def _admission(
    method: str,
    path: str,
    is_within: Callable[[Driver, Wish], Awaitable[bool]],
    body: type[msgspec.Struct] | None = None,
) -> Admission:
    form = re.escape(path).replace(r"\*", "([^/]+)", 1).replace(r"\*", "[^/]+")
    return Admission(method=method, path=re.compile(form), is_within=is_within, body=body)


ADMISSIONS: Final = (
    _admission("POST", "/v1/effects", _begun_in_own_run, BeginRequest),
    _admission("POST", "/v1/effects/release", _begun_in_own_run, BeginRequest),
    _admission("POST", "/v1/effects/*/commit", _granted),
    _admission("POST", "/v1/effects/*/fail", _granted),
    _admission("POST", "/v1/effects/*/renew", _granted),
    _admission("POST", "/v1/outbox", _begun_in_own_run, StageRequest),
    _admission("GET", "/v1/outbox", _of_own_run),
    _admission("POST", "/v1/batch", _anything),  # each request in it is admitted alone
    _admission("GET", "/v1/effects", _of_seen_run),
    _admission("GET", "/v1/effects/*", _seen_effect),
    _admission("POST", "/v1/runs", _own_or_new_child, OpenRunRequest),
    _admission("GET", "/v1/runs/*", _seen_run),
    _admission("POST", "/v1/runs/*/finish", _own_run),
    _admission("POST", "/v1/runs/*/facts", _own_run),
    _admission("POST", "/v1/runs/*/events", _own_run),
    _admission("GET", "/v1/runs/*/events", _seen_run),
    _admission("GET", "/v1/runs/*/replies", _seen_run),
    _admission("GET", "/v1/runs/*/pauses", _own_run),
    _admission("GET", "/v1/events", _of_seen_run),
    _admission("POST", "/v1/blobs/read", _anything),  # who knows a digest has read the log that names it
    _admission("POST", "/v1/policy/decisions", _decided_in_own_run, PolicyRequest),
    _admission("PUT", "/v1/tools/*", _anything),  # it is answered, and nothing is written
    _admission("GET", "/v1/tools", _anything),
    _admission("GET", "/v1/tools/*", _anything),
    _admission("GET", "/v1/tools/*/versions", _anything),
    _admission("GET", "/v1/approvals", _of_own_run),
    _admission("GET", "/v1/approvals/*", _own_approval),
    _admission("POST", "/v1/sagas", _begun_in_own_run, OpenSagaRequest),
    _admission("GET", "/v1/sagas", _of_own_run),
    _admission("GET", "/v1/sagas/*", _own_saga),
    _admission("POST", "/v1/sagas/*/complete", _own_saga),
    _admission("POST", "/v1/sagas/*/fail", _own_saga),
    _admission("POST", "/v1/sagas/*/next", _own_saga),
    _admission("POST", "/v1/sagas/*/steps/*/report", _own_saga),
)
"""All that a credential may ask. `*` is a name in a path; the first of them is what the request is about."""


def admission_of(method: str, path: str) -> tuple[Admission, str] | None:
    """Return the entry of the table for a request, and what its path names; None where there is none."""
    for admission in ADMISSIONS:
        match = admission.path.fullmatch(path) if admission.method == method else None
        if match is not None:
            return admission, match[1] if match.groups() else ""
    return None


async def refusal(exchange: Exchange, path: str, message: msgspec.Struct) -> Answer | None:
    """Refuse a hot verb that the fork of the exchange may not ask; None: it may. Raises StoreUnavailable."""
    if exchange.fork is None:
        return None
    found = admission_of("POST", path)
    wish = Wish(named="" if found is None else found[1], body=message)
    driver = Driver(exchange.use_cases, exchange.fork)
    return None if found is not None and await found[0].is_within(driver, wish) else _out_of_reach("POST", path)


async def fenced(use_cases: UseCases, fork: RunId, scope: HTTPScope, receive: Receive) -> Receive | Answer:
    """Let a request pass that a fork may make, as one whose body can be read still; or refuse it.

    The body is read here just as the route reads it. Raises Refusal, Unreadable, StoreUnavailable.
    """
    method, path = scope["method"], scope["path"]
    found = admission_of(method, path)
    if found is None:
        return _out_of_reach(method, path)
    admission, named = found
    body = None
    if admission.body is not None:
        sent = await body_of(scope, receive)
        if sent is None:
            return receive
        body = Exchange(use_cases, scope["headers"], sent, {}).message(admission.body)
        receive = _again(sent, receive)
    wish = Wish(named=named, body=body, runs=Request(scope).query_params.getall("run", []))
    return receive if await admission.is_within(Driver(use_cases, fork), wish) else _out_of_reach(method, path)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return what gives a body once more, and then what comes behind it."""
    left = [body]

    async def received() -> HTTPReceiveMessage | WebSocketReceiveMessage:
        if not left:
            return await receive()
        return {"type": "http.request", "body": left.pop(), "more_body": False}

    return received


def _out_of_reach(method: str, path: str) -> Answer:
    return problems.answer(
        "forbidden",
        f"The credential of a fork does not reach {method} {path} for what was named. It begins, reports and records "
        "in the fork and in runs below it, and reads what the fork goes on from.",
    )
