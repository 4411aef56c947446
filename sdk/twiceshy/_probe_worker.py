"""Probes as a worker serves them: it asks the service for doubtful effects of its tools, and finds out.

Any number of workers may do so at once: the service gives each effect to one at a time. A worker that dies in between
leaves a claim that runs out.
"""

import asyncio
import logging
import threading
from typing import Any, Final, Literal, TypedDict

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._probing import Early, Found, Question, Settled, Unknown, find_out
from twiceshy._replies import Unanswered
from twiceshy._said import ended
from twiceshy._settings import is_database
from twiceshy._steps import Flow, Raised, Returned, sleep
from twiceshy._transports.base import Request
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused, SetupError
from twiceshy_contract.probes import ClaimProbesRequest
from twiceshy_contract.problems import Problem

_CLAIM_SECONDS: Final = 30.0
_GRACE_SECONDS: Final = 10.0
_SERVED_WAIT_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 1.0
_log: Final = logging.getLogger("twiceshy")


class ProbeOptions(TypedDict, total=False):
    """The options of `probe_once`.

    `limit` is how many effects it takes at most, `wait_seconds` how long it waits for the first, `claim_seconds` for
    how long an effect is this worker's alone.
    """

    limit: int
    wait_seconds: float
    claim_seconds: float


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one question: the effect is `settled`, or still in `doubt`; `said` tells why."""

    key: str
    tool: str
    outcome: Literal["settled", "doubt"]
    said: str


class _Claimed(msgspec.Struct, frozen=True):
    """A doubtful effect that was handed out."""

    key: str
    tool: str


class _Claims(msgspec.Struct, frozen=True):
    """What was handed out."""

    items: tuple[_Claimed, ...]


_CLAIMS: Final = msgspec.json.Decoder(_Claims)


def probed_once(environment: Environment, options: ProbeOptions) -> list[ProbeReport]:
    """Ask once, with the probes that can be asked without an event loop."""
    tools = [name for name, probe in environment.probes.items() if not probe.is_async]
    reports: list[ProbeReport] = drive(_returned(_probing(environment, tools, options)), environment.transport)
    return reports


async def probed_once_async(environment: Environment, options: ProbeOptions) -> list[ProbeReport]:
    """Ask once, with all probes."""
    flow = _returned(_probing(environment, list(environment.probes), options))
    reports: list[ProbeReport] = await drive_async(flow, environment.transport)
    return reports


def serve_probes(environment: Environment, stop: threading.Event) -> None:
    """Ask until `stop` is set."""
    while not stop.is_set():
        try:
            is_idle = not probed_once(environment, {"wait_seconds": _SERVED_WAIT_SECONDS})
        except GuardUnavailable as error:
            _log.warning("Probes are not served for the moment: %s", error)
            is_idle = True
        if is_idle:
            stop.wait(_PAUSE_SECONDS)


async def serve_probes_async(environment: Environment) -> None:
    """Ask until the task is cancelled."""
    while True:
        try:
            is_idle = not await probed_once_async(environment, {"wait_seconds": _SERVED_WAIT_SECONDS})
        except GuardUnavailable as error:
            _log.warning("Probes are not served for the moment: %s", error)
            is_idle = True
        if is_idle:
            await asyncio.sleep(_PAUSE_SECONDS)


def _probing(environment: Environment, tools: list[str], options: ProbeOptions) -> Flow[list[ProbeReport]]:
    """Ask about all that is handed out; where a probe came too early, again once it is time, while the claim lasts."""
    claim_until = environment.clock() + options.get("claim_seconds", _CLAIM_SECONDS)
    claimed = yield from _claimed(environment, _request(environment, tools, options))
    reports: list[ProbeReport] = []
    early: list[tuple[float, _Claimed, Early]] = []
    for effect in claimed:
        found = yield from find_out(environment, _question(environment, effect), deadline=environment.clock())
        if isinstance(found, Early):
            early.append((environment.clock() + found.seconds, effect, found))
        else:
            reports.append(_report(effect, found))
    for due, effect, early_found in early:
        found = early_found
        if due < claim_until:
            yield from sleep(max(0.0, due - environment.clock()))
            found = yield from find_out(environment, _question(environment, effect), deadline=claim_until)
        reports.append(_report(effect, found))
    return reports


def _question(environment: Environment, effect: _Claimed) -> Question:
    return Question(spec=environment.tools[effect.tool].spec, key=effect.key)


def _request(environment: Environment, tools: list[str], options: ProbeOptions) -> ClaimProbesRequest:
    """Return the claim. Raises SetupError where there is nothing to ask with, or an option is none."""
    if not tools:
        raise SetupError(
            "No tool of this guard has a probe that can be asked here. Put one beside a tool with @tool.probe; an "
            "`async def` function is asked by probe_once_async and serve_probes_async."
        )
    asked = {"tools": tuple(tools), "worker": environment.worker, **options}
    try:
        return msgspec.convert(asked, ClaimProbesRequest)
    except msgspec.ValidationError as error:
        raise SetupError(f"probe_once: {error}.") from error


def _claimed(environment: Environment, claim: ClaimProbesRequest) -> Flow[tuple[_Claimed, ...]]:
    body = msgspec.json.encode(claim)
    patience = claim.wait_seconds + _GRACE_SECONDS
    request = Request(method="POST", path="/v1/probes/claims", body=body, timeout_seconds=patience)
    until = environment.clock() + claim.wait_seconds + environment.limits.unavailable_seconds
    answer = yield from ask(environment, request, _CLAIMS, until=until)
    match answer:
        case Answered(value):
            return value.items
        case Problem():
            raise RequestRefused(
                f"No effects in doubt were handed out: {ended(answer.detail)}",
                effect=EffectRef(tool=claim.tools[0]),
                code=answer.code,
                errors=[(error.path, error.message) for error in answer.errors],
            )
        case Unanswered(reason=reason):
            where = "the guard embedded over" if is_database(environment.url) else "the guard's service at"
            raise GuardUnavailable(
                f"No effects in doubt were handed out: {where} {environment.url} gives no answer ({reason}).",
                effect=EffectRef(tool=claim.tools[0]),
            )


def _report(effect: _Claimed, found: Found) -> ProbeReport:
    match found:
        case Settled(is_final=is_final):
            said = "the record holds what became of it" if is_final else "nothing was applied"
            return ProbeReport(key=effect.key, tool=effect.tool, outcome="settled", said=said)
        case Early(reason=reason) | Unknown(reason=reason):
            return ProbeReport(key=effect.key, tool=effect.tool, outcome="doubt", said=reason)


def _returned(flow: Flow[Any]) -> Flow[Returned | Raised]:
    return Returned((yield from flow))
