"""The effect that is executing here: what its tool may ask of it, and what the guard does to it."""

import threading
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Final, Literal, Self, Unpack
from uuid import UUID

from twiceshy._answers import Execute
from twiceshy._lease import Clock, Lease
from twiceshy._messages import Content, StagedOptions
from twiceshy._outbox import Outbox
from twiceshy.exceptions import EffectRef, LeaseLost, NoEffect
from twiceshy_contract import messages as wire
from twiceshy_contract.wire import CONTRACT_VERSION, KEY_HEADER

SendingState = Literal["not_yet", "sending", "sent"]


class SeenRequest:
    """A request that an adapter saw a tool send, and what it met: the status of its answer, or an error."""

    def __init__(self, method: str) -> None:
        self.method: Final = method
        self.status: int | None = None
        self.error: BaseException | None = None


class CurrentEffect:
    """The effect that a guarded tool is executing. Ask `current_effect()` for it.

    `provider_header` is the header, name and value, under which the provider takes the `downstream_key`.
    """

    def __init__(
        self,
        answer: Execute,
        lease: Lease,
        clock: Clock,
        *,
        provider_key_header: str | None = None,
        contract: int = CONTRACT_VERSION,
    ) -> None:
        self.key: Final[str] = answer.key
        self.downstream_key: Final[str] = answer.downstream_key
        self.provider_header: Final = (provider_key_header or KEY_HEADER, answer.downstream_key)
        self.fence: Final[int] = answer.fence
        self.attempt: Final[UUID] = answer.attempt
        self.reference: Final = EffectRef(
            tool=answer.tool, key=answer.key, run=answer.run, attempt=answer.attempt, fence=answer.fence
        )
        self.lease = lease
        self.sending_state: SendingState = "not_yet"
        self.why_lost: str | None = None
        self.is_reported = False
        self.inner_doubt: EffectRef | None = None
        self.requests: Final[list[SeenRequest]] = []
        self._outbox: Final = Outbox(answer.tool, contract)
        self._clock = clock
        self._lock = threading.Lock()
        self._interrupt: Callable[[], None] | None = None

    @property
    def lease_lost(self) -> bool:
        """Whether the right to execute is gone. A blocking tool should look before it acts."""
        return self.why_lost is not None or self.lease.has_ended(self._clock())

    @property
    def seconds_left(self) -> float:
        """Seconds until the lease ends unless it is renewed, which the guard does by itself."""
        return 0.0 if self.why_lost is not None else self.lease.seconds_left(self._clock())

    def sending(self) -> "Sending":
        """Mark the irreversible part: `with effect.sending(): ...`, or `async with`.

        An exception within it means unknown, after it succeeded without a kept result. Put all that is irreversible
        into one such block. An exception before it means not applied only where the tool's own source shows that
        straight code leads to the block; else it means unknown. It shows that where all of this holds:

        - the block stands in the tool's own function, after plain statements alone: an `if` before it does nothing
          but raise, and a `with` around it is the last statement of its body; no `return`, loop, `match` or `try`;
        - it is `with current_effect().sending():`, or `with effect.sending():` where `effect` is a local name that
          is assigned once, by `effect = current_effect()`;
        - `current_effect` is the module's global name for it, as imported from twiceshy;
        - the source can be read and is what runs, and no other decorator stands between the function and
          `@guard.tool`.

        That the plain statements before the block send nothing is yours to see to: that is what the mark says.
        """
        return Sending(self)

    def stage(self, destination: str, message: Content | None = None, /, **options: Unpack[StagedOptions]) -> None:
        """Stage a message with the outcome: in the transaction that records it, and only if the tool returns.

            effect.stage("orders", {"order": 7}, type="order.created", lane="order-7")
            effect.stage("mail", Mail(to="ann@example.com", subject="Booked", text="..."))

        A dict is a payload, a text is a text; any other payload goes in `payload=`. The options are those of
        StagedOptions. The message is frozen here: what is changed afterwards changes nothing. Where the tool raises,
        nothing is staged, unless that was after it had `sent`: then it succeeded, and what it had staged goes with it.
        Raises MessageRefused for what cannot be staged, and once the tool is over; SetupError where the service is too
        old to know messages.
        """
        self._outbox.stage(destination, message, options)

    @property
    def staged(self) -> tuple[wire.Message, ...]:
        """The messages that were staged, in order."""
        return self._outbox.messages

    def lose(self, why: str) -> None:
        """Note that the lease is gone, and interrupt the tool where that is possible."""
        with self._lock:
            if self.why_lost is not None:
                return
            self.why_lost = why
            interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:
            interrupt()

    def lost_error(self, what: str) -> LeaseLost:
        """Return the error that says the lease is gone, and what that meant."""
        return LeaseLost(
            f"{self.reference.tool}: {self.why_lost or 'the lease has ended'}. {what} Do not act again: call the "
            f"tool again and obey the answer. The effect is {self.key}.",
            effect=self.reference,
        )

    def entered(self, interrupt: Callable[[], None] | None = None) -> "Entered":
        """Make this the current effect; `interrupt` is called once if the lease is lost meanwhile."""
        return Entered(self, interrupt)

    def close_outbox(self) -> None:
        """Take no message any more: the tool is over."""
        self._outbox.close()

    def interrupt_by(self, interrupt: Callable[[], None] | None) -> None:
        """Set what interrupts the tool, if anything does."""
        with self._lock:
            self._interrupt = interrupt


class Entered:
    """The time in which an effect's tool runs."""

    __slots__ = ("_effect", "_interrupt", "_token")

    def __init__(self, effect: CurrentEffect, interrupt: Callable[[], None] | None) -> None:
        self._effect = effect
        self._interrupt = interrupt

    def __enter__(self) -> None:
        self._effect.interrupt_by(self._interrupt)
        self._token = _current.set(self._effect)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)
        self._effect.interrupt_by(None)
        self._effect.close_outbox()


class Rendering:
    """The time in which a stage-only tool makes its messages: there is no effect, that of an outer tool neither."""

    __slots__ = ("_tokens", "_tool")

    def __init__(self, tool: str) -> None:
        self._tool = tool

    def __enter__(self) -> None:
        self._tokens = _current.set(None), _rendering.set(self._tool)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        effect, tool = self._tokens
        _rendering.reset(tool)
        _current.reset(effect)


class Sending:
    """The part of a tool in which something irreversible is under way."""

    def __init__(self, effect: CurrentEffect) -> None:
        self._effect = effect

    def __enter__(self) -> Self:
        effect = self._effect
        if effect.lease_lost:
            raise effect.lost_error("Nothing was sent here.")
        effect.sending_state = "sending"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._effect.sending_state = "sent"

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def current_effect() -> CurrentEffect:
    """Return the effect that the tool around this call is executing. Raises NoEffect outside one."""
    effect = _current.get()
    if effect is not None:
        return effect
    tool = _rendering.get()
    if tool is None:
        raise NoEffect
    raise NoEffect(
        f"{tool} stages messages and does nothing else, so that it has no effect while it makes them. Return the "
        "messages, or leave out sink= and use effect.stage(...)."
    )


def surrounding_effect() -> CurrentEffect | None:
    """Return the effect whose tool runs here, if any."""
    return _current.get()


_current: ContextVar[CurrentEffect | None] = ContextVar("twiceshy_effect", default=None)
_rendering: ContextVar[str | None] = ContextVar("twiceshy_rendering", default=None)
