"""Approvals as the caller meets them: a person must decide before the tool runs."""

from typing import Final
from uuid import uuid4

import msgspec

from twiceshy._answers import Await
from twiceshy._ask import ask
from twiceshy._calls import BEGIN_GRACE_SECONDS, ToolCall
from twiceshy._carried import begun_by
from twiceshy._environment import Environment
from twiceshy._problems import refused, unavailable
from twiceshy._replies import Unanswered
from twiceshy._said import ended, note
from twiceshy._steps import Flow
from twiceshy._transports.base import Request
from twiceshy.exceptions import ApprovalAwaited, ApprovalDenied, EffectRef
from twiceshy_contract.approvals import ApprovalState
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.problems import Problem

DENIED_TYPE: Final = "ApprovalDenied"
"""The type of the error that a denied effect is answered with."""
_HELD_SECONDS: Final = 2.0
"""How long one request waits for the decision; then the next one does. A blocking one does not hear Ctrl-C before."""


class _Seen(msgspec.Struct, frozen=True):
    """How an approval stands."""

    state: ApprovalState


class _Denial(msgspec.Struct, frozen=True):
    """Who denied, in which approval."""

    approval: str
    by: str | None = None


_SEEN: Final = msgspec.json.Decoder(_Seen)


def awaited(environment: Environment, call: ToolCall, answer: Await) -> Flow[BeginRequest]:
    """Wait for the decision and return the next begin. Raises ApprovalAwaited where the tool does not wait.

    The wait ends with the decision or with the approval's own deadline; an interruption ends it at any time.
    """
    reference = EffectRef(tool=answer.tool, key=answer.key, run=answer.run, fence=answer.fence)
    if call.spec.rules.on_approval == "suspend":
        raise _suspended(answer, reference)
    while (yield from _state(environment, answer, reference)) == "open":
        pass
    return (yield from begun_by(environment, call, uuid4()))


def _state(environment: Environment, answer: Await, reference: EffectRef) -> Flow[ApprovalState]:
    """Ask once how the approval stands, as soon as it is decided or a while is over."""
    asked = Request(
        method="GET",
        path=f"/v1/approvals/{answer.approval}?wait={_HELD_SECONDS:g}",
        timeout_seconds=_HELD_SECONDS + BEGIN_GRACE_SECONDS,
        token=environment.credential_of(answer.run),
    )
    until = environment.clock() + asked.timeout_seconds + environment.limits.unavailable_seconds
    seen = yield from ask(environment, asked, _SEEN, until=until)
    if isinstance(seen, Unanswered):
        raise unavailable(environment, reference, seen.reason)
    if isinstance(seen, Problem):
        raise refused(seen, reference)
    return seen.value.state


def _suspended(answer: Await, reference: EffectRef) -> ApprovalAwaited:
    error = ApprovalAwaited(
        f"{answer.tool} did not run: a person must decide first, about this: {ended(answer.summary)} The approval "
        f"is {answer.approval}, the effect {answer.key}.",
        effect=reference,
        approval=answer.approval,
    )
    note(
        error,
        f"A person decides with\n  twiceshy approvals approve {answer.approval} --as NAME\n"
        f"  twiceshy approvals deny {answer.approval} --as NAME --reason '...'\n"
        "then run the same run again: what it has done is answered from the record, and it goes on from here.",
    )
    return error


def denied(error: ErrorOutcome, reference: EffectRef) -> ApprovalDenied | None:
    """Return the error that a recorded denial is; None for any other recorded error."""
    if error.type != DENIED_TYPE:
        return None
    try:
        denial = msgspec.convert(error.data, _Denial)
    except msgspec.ValidationError:  # a tool's own error that is called the same
        return None
    who = denial.by or "a person"
    return ApprovalDenied(
        f"{reference.tool} did not run: {who} has denied it: {ended(error.message)} The same call is not asked for "
        f"again in this run. The approval is {denial.approval}.",
        effect=reference,
        reason=error.message,
        by=denial.by,
    )
