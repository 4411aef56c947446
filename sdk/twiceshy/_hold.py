"""A hold on a resource, without a tool: placed when a block is entered, and given back unless it is committed."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Final, Self, TypedDict
from uuid import UUID, uuid4

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._options import require_seconds
from twiceshy._replies import Unanswered
from twiceshy._run import current_run
from twiceshy._said import ended
from twiceshy._steps import Flow, Raised, Returned, sleep
from twiceshy._transports.base import Request
from twiceshy.exceptions import (
    BeginError,
    EffectRef,
    GuardError,
    GuardUnavailable,
    HoldLost,
    RequestRefused,
    ResourceHeld,
    SetupError,
    ToolArgumentError,
)
from twiceshy_contract.holds import ChangeHoldRequest, PlaceHoldRequest, RenewHoldRequest
from twiceshy_contract.problems import Problem
from twiceshy_contract.variables import did_you_mean

_SHORTEST_PAUSE: Final = 0.05
_log = logging.getLogger("twiceshy")


class HoldOptions(TypedDict, total=False):
    """The keyword options of `guard.hold`.

    `priority` takes over what a lower one holds and has not committed. `holder` is how you are called to others, and
    whose the hold is; it falls back to the run's name, outside of runs to this process. The hold lapses after
    `hold_seconds` (60) unless it is committed or renewed. Where the resource is held, the block waits up to
    `wait_seconds` (0) for it, if that can help. `id` is that of a hold which was placed before, to go on with it: all
    else is as it was then. Outside of runs it needs a `holder`, for another process would have another one.
    """

    priority: int
    holder: str
    hold_seconds: float
    wait_seconds: float
    id: UUID


class _Known(msgspec.Struct, frozen=True):
    """What is read of a hold."""

    state: str


_KNOWN: Final = msgspec.json.Decoder(_Known)


class Hold:
    """A claim on a resource. Use it as `with` or `async with`: leaving the block releases it unless it is committed."""

    def __init__(
        self,
        environment: Environment,
        resource: str,
        start: datetime,
        end: datetime | timedelta,
        options: HoldOptions,
    ) -> None:
        self._environment = environment
        self._wait_seconds = options.get("wait_seconds", 0)
        _require_options(options)
        require_seconds("hold", wait_seconds=self._wait_seconds)
        run = current_run(environment)
        name = None if run is None else run.name
        begins, ends = _interval(start, end)
        self._request = _checked(
            PlaceHoldRequest(
                id=uuid4() if options.get("id") is None else options["id"],
                resource=resource,
                start=begins,
                end=ends,
                holder=_holder(environment, options, name),
                priority=options.get("priority", 0),
                hold_seconds=options.get("hold_seconds", 60),
                run=name,
            )
        )
        self.id: Final = self._request.id
        self.is_committed = False

    def place(self) -> None:
        """Claim the resource. Raises ResourceHeld, which names who has it, and HoldLost where it was taken over."""
        self._do(self._placed)

    async def place_async(self) -> None:
        """Claim the resource. Raises ResourceHeld, which names who has it, and HoldLost where it was taken over."""
        await self._do_async(self._placed)

    def commit(self) -> None:
        """Keep the resource for good: no priority takes it over any more. Raises HoldLost."""
        self._do(self._committed)

    async def commit_async(self) -> None:
        """Keep the resource for good: no priority takes it over any more. Raises HoldLost."""
        await self._do_async(self._committed)

    def renew(self) -> None:
        """Keep the hold from running out, for as long again. Raises HoldLost."""
        self._do(self._renewed)

    async def renew_async(self) -> None:
        """Keep the hold from running out, for as long again. Raises HoldLost."""
        await self._do_async(self._renewed)

    def release(self) -> None:
        """Give the resource back, committed or not."""
        self._do(self._released)

    async def release_async(self) -> None:
        """Give the resource back, committed or not."""
        await self._do_async(self._released)

    def __enter__(self) -> Self:
        self.place()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_committed:
            try:
                self.release()
            except GuardError as failure:
                _let_run_out(failure)

    async def __aenter__(self) -> Self:
        await self.place_async()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.is_committed:
            try:
                await self.release_async()
            except GuardError as failure:
                _let_run_out(failure)

    def _do(self, flow: Callable[[], Flow[Returned | Raised]]) -> None:
        drive(flow(), self._environment.transport)

    async def _do_async(self, flow: Callable[[], Flow[Returned | Raised]]) -> None:
        await drive_async(flow(), self._environment.transport)

    def _placed(self) -> Flow[Returned | Raised]:
        clock = self._environment.clock
        wait_until = clock() + self._wait_seconds
        while True:
            answer = yield from self._asked("", self._request)
            left = wait_until - clock()
            pause = None if answer is None or answer.code != "resource-held" else answer.retry_after_seconds
            if pause is None or left <= 0:
                return self._outcome(answer, "not placed")
            yield from sleep(min(max(pause, _SHORTEST_PAUSE), left))

    def _committed(self) -> Flow[Returned | Raised]:
        answer = yield from self._asked("/commit", ChangeHoldRequest(holder=self._request.holder))
        return self._outcome(answer, "not committed")

    def _renewed(self) -> Flow[Returned | Raised]:
        request = RenewHoldRequest(holder=self._request.holder, hold_seconds=self._request.hold_seconds)
        return self._outcome((yield from self._asked("/renew", request)), "not renewed")

    def _released(self) -> Flow[Returned | Raised]:
        answer = yield from self._asked("/release", ChangeHoldRequest(holder=self._request.holder))
        return self._outcome(answer, "not released")

    def _asked(self, verb: str, body: msgspec.Struct) -> Flow[Problem | None]:
        """Ask until it is answered, and note how the hold stands; return what was refused. Raises GuardUnavailable."""
        environment = self._environment
        path = f"/v1/holds/{self.id}{verb}" if verb else "/v1/holds"
        until = environment.clock() + environment.limits.unavailable_seconds
        request = Request(method="POST", path=path, body=msgspec.json.encode(body))
        answer = yield from ask(environment, request, _KNOWN, until=until)
        match answer:
            case Unanswered(reason):
                raise GuardUnavailable(
                    f"Nobody knows whether the hold of {self._request.resource} stands: the guard at "
                    f"{environment.url} gives no answer ({reason}). It lapses by itself unless it is committed.",
                    effect=self._reference,
                )
            case Problem():
                return answer
            case Answered(value=known):
                self.is_committed = known.state == "committed"
                return None

    def _outcome(self, problem: Problem | None, what: str) -> Returned | Raised:
        if problem is None:
            return Returned(None)
        text = f"The hold of {self._request.resource} is {what}: {ended(problem.detail or problem.title)}"
        kinds: dict[str, type[BeginError]] = {"resource-held": ResourceHeld, "hold-lost": HoldLost}
        kind = kinds.get(problem.code)
        if kind is None:
            return Raised(RequestRefused(text, effect=self._reference, code=problem.code))
        return Raised(kind(text, effect=self._reference))

    @property
    def _reference(self) -> EffectRef:
        return EffectRef(tool="hold", run=self._request.run)


def _require_options(options: HoldOptions) -> None:
    """Refuse a word that is no option. Raises SetupError with the nearest one."""
    known = HoldOptions.__annotations__
    unknown = [f"There is no option {name}{did_you_mean(name, known)}" for name in options if name not in known]
    if unknown:
        raise SetupError(f"guard.hold: {' '.join(unknown)} The options are {', '.join(known)}.")


def _holder(environment: Environment, options: HoldOptions, run: str | None) -> str:
    """Say whose the hold is. Raises ToolArgumentError where only another process could be meant."""
    said = options.get("holder")
    if said is not None:
        return said
    if run is None and options.get("id") is not None:
        raise ToolArgumentError(
            "hold: id goes on with a hold, which is its holder's; outside of a run this process alone would be that. "
            "Say holder='...', the same each time.",
            path="/holder",
        )
    return run or environment.worker


def _interval(start: datetime, end: datetime | timedelta) -> tuple[datetime, datetime]:
    """Return the interval in UTC, in which every hour has an hour. Raises ToolArgumentError with the place."""
    begins = _in_utc(start, "start")
    try:
        ends = begins + end if isinstance(end, timedelta) else _in_utc(end, "end")
    except OverflowError as error:
        raise _outside("end") from error
    if ends <= begins:
        raise ToolArgumentError(
            "hold: end does not lie after start; what is held has a length. Nothing was placed; correct the call.",
            path="/end",
        )
    return begins, ends


def _in_utc(moment: object, name: str) -> datetime:
    if not isinstance(moment, datetime) or moment.utcoffset() is None:
        raise ToolArgumentError(
            f"hold: {name} is {moment!r}; give a datetime with its time zone, such as tzinfo=UTC.", path=f"/{name}"
        )
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise _outside(name) from error


def _outside(name: str) -> ToolArgumentError:
    return ToolArgumentError(
        f"hold: {name} lies outside of the years 1 to 9999. Nothing was placed; correct the call.", path=f"/{name}"
    )


def _checked(request: PlaceHoldRequest) -> PlaceHoldRequest:
    """Refuse what the service would, before anything is sent. Raises ToolArgumentError."""
    try:
        msgspec.json.encode(request)
        return msgspec.convert(msgspec.to_builtins(request), PlaceHoldRequest)
    except UnicodeEncodeError as error:
        raise ToolArgumentError(
            "hold: the name of the resource, of the holder or of the run has a lone surrogate, which is no character. "
            "Nothing was placed; correct the call."
        ) from error
    except (msgspec.ValidationError, TypeError) as error:
        raise ToolArgumentError(f"hold: {error}. Nothing was placed; correct the call.") from error


def _let_run_out(failure: GuardError) -> None:
    _log.warning("A hold could not be released and runs out by itself: %s", failure)
