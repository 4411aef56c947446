"""One guarded call as values: which tool, with which arguments, under which key."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec

from twiceshy._binding import Bound
from twiceshy._delivered import Known
from twiceshy._options import ToolSpec
from twiceshy._session import Session
from twiceshy._transports.base import Request
from twiceshy._wording import in_words
from twiceshy._writer import Writer
from twiceshy.exceptions import EffectRef, NoRun, SetupError, ToolArgumentError
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.messages import Message
from twiceshy_contract.names import BusinessKey, CallerStep, Occurrence, Priority, RunName
from twiceshy_contract.outbox import StageRequest
from twiceshy_contract.wire import EffectKey

BEGIN_GRACE_SECONDS = 10.0
"""How much longer than its wait a begin may take."""


class CallKeys(msgspec.Struct, frozen=True, kw_only=True):
    """What names a call beside its arguments."""

    business_key: str | None = None
    step: int | str | None = None
    occurrence: int = 1
    reopen: bool = False
    distinct: bool = False
    priority: int = 0


_NO_KEYS: Final = CallKeys()


class _CheckedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The same with the bounds that the service holds them to."""

    run: RunName | None
    business_key: BusinessKey | None
    step: CallerStep | None
    occurrence: Occurrence
    reopen: bool
    distinct: bool
    priority: Priority


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a tool, bound and written, before anything is sent.

    `messages` are those that a stage-only tool made of it, or of `rendered_from` in the place of its own arguments.
    """

    spec: ToolSpec
    function: Callable[..., Any]
    bound: Bound
    written: dict[str, object]
    run: str | None
    keys: CallKeys
    known: Known = Known()
    requester: str | None = None
    in_fork: bool = False
    saga: str | None = None
    compensates: str | None = None
    nth: int | None = None
    session: Session | None = None
    writer: Writer | None = None
    messages: tuple[Message, ...] = ()
    rendered_from: dict[str, object] | None = None

    @property
    def reference(self) -> EffectRef:
        """Name the call while its key is not known."""
        return EffectRef(tool=self.spec.name, run=self.run)

    def begin(self, attempt: UUID, worker: str, wait_seconds: float = 0) -> BeginRequest:
        """Return the body of a begin, without what it brings of a log. How long the lease is, the registry says."""
        begin = BeginRequest(
            tool=self.spec.name,
            arguments=self.written,
            attempt=attempt,
            run=self.run,
            business_key=self.keys.business_key,
            step=self.keys.step,
            occurrence=self.keys.occurrence,
            wait_seconds=wait_seconds,
            worker=worker,
            reopen=self.keys.reopen,
            delivered=self.known.untold,
            distinct=self.keys.distinct,
            priority=self.keys.priority,
            requester=self.requester,
            saga=self.saga,
            compensates=None if self.compensates is None else EffectKey(self.compensates),
            nth=self.nth,
        )
        if not self.messages:
            return begin
        members = {name: getattr(begin, name) for name in begin.__struct_fields__}
        return StageRequest(**members, messages=self.messages, rendered_from=self.rendered_from)


def checked(call: ToolCall, recorded: Sequence[str] = ()) -> ToolCall:
    """Refuse a call outside of a run, one that lacks the key its tool's rule needs, or whose key is not one.

    `recorded` are the runs that are recorded in this process now.
    """
    rule, keys = call.spec.rules.key, call.keys
    if call.run is None and keys.business_key is None:
        raise NoRun(f"{call.spec.name} did not run. {inspect.cleandoc(NoRun.__doc__ or '')}{beside(recorded)}")
    if rule == "step" and keys.step is None:
        raise SetupError(f"{call.spec.name} is declared with key='step'; pass step= with the call.")
    if rule == "business_key" and keys.business_key is None:
        raise SetupError(f"{call.spec.name} is declared with key='business_key'; pass business_key= with the call.")
    if keys == _NO_KEYS:
        return call
    try:
        msgspec.convert(msgspec.structs.asdict(keys) | {"run": call.run}, _CheckedKeys)
    except msgspec.ValidationError as error:
        raise ToolArgumentError(f"{call.spec.name}: {in_words(error)}. Nothing began; correct the call.") from error
    return call


def beside(recorded: Sequence[str]) -> str:
    """Say of which run a thread without a context probably is."""
    if not recorded:
        return ""
    what = f"The run {recorded[0]} is" if len(recorded) == 1 else f"The runs {', '.join(recorded[:3])} are"
    return (
        f"\n\n{what} recorded here now, and this call would be missing there: `await run.to_thread(...)` keeps it, and "
        "in a pool of your own `contextvars.copy_context().run`."
    )


def request(begin: BeginRequest, path: str = "/v1/effects") -> Request:
    """Return the request that carries a begin or its release. Raises ToolArgumentError where it is too large."""
    body = msgspec.json.encode(begin)
    if len(body) > MAX_BYTES:
        raise ToolArgumentError(
            f"{begin.tool}: the call takes {len(body)} bytes, and {MAX_BYTES} are the most. Nothing began; keep "
            "large contents elsewhere and pass a reference."
        )
    return Request(
        method="POST",
        path=path,
        body=body,
        timeout_seconds=begin.wait_seconds + BEGIN_GRACE_SECONDS,
        joins=not begin.wait_seconds,
    )
