"""What one attempt stages: messages in their order, frozen, taken while its tool runs."""

import threading
from typing import Final

from msgspec import structs

from twiceshy._messages import Content, Message, StagedOptions, frozen, message_of, require_room
from twiceshy.exceptions import MessageRefused, SetupError
from twiceshy_contract import messages as wire
from twiceshy_contract.variables import did_you_mean

FIRST_CONTRACT: Final = 4
"""The version of the contract from which a service knows messages."""
_OPTIONS: Final = tuple(sorted(StagedOptions.__annotations__))
_CONTENTS: Final = ("payload", "text")


class Outbox:
    """The messages of one attempt. Any thread may stage."""

    def __init__(self, tool: str, contract: int) -> None:
        """Take the tool's name and the version of the contract that its service speaks; 0 where it does not say."""
        self._tool = tool
        self._contract = contract
        self._lock = threading.Lock()
        self._messages: tuple[wire.Message, ...] = ()
        self._is_closed = False

    @property
    def messages(self) -> tuple[wire.Message, ...]:
        """What was staged."""
        return self._messages

    def stage(self, destination: str, message: Content | None, options: StagedOptions) -> None:
        """Take one more message. Raises MessageRefused, SetupError where the service knows no messages."""
        if self._contract < FIRST_CONTRACT:
            raise too_old(self._tool, self._contract)
        taken = frozen(destination, _said(self._tool, message, options))
        with self._lock:
            if self._is_closed:
                raise MessageRefused(
                    f"{self._tool} is over: its outcome is on its way, and takes no message any more. Stage while the "
                    "tool runs, and wait for whatever stages in another thread or task."
                )
            messages = (*self._messages, taken)
            require_room(messages, self._tool)
            self._messages = messages

    def close(self) -> None:
        """Take no message any more."""
        with self._lock:
            self._is_closed = True


def too_old(tool: str, contract: int = 0) -> SetupError:
    """Return the error for a service that would pass over messages."""
    spoken = f" speaks contract {contract} and" if contract else ""
    return SetupError(
        f"{tool} staged nothing: the service{spoken} knows no outbox, which came with contract {FIRST_CONTRACT}. It is "
        "older than this SDK: upgrade it first."
    )


def _said(tool: str, message: object, options: StagedOptions) -> Message:
    """Return what was said as one message. Raises MessageRefused."""
    for name in options:
        if name not in _OPTIONS:
            raise TypeError(f"effect.stage takes no argument {name!r}{did_you_mean(name, _OPTIONS)}")
    if message is None:
        return Message(**options)
    if isinstance(message, Message) and options:
        raise MessageRefused(f"{tool}: a Message says all of it; say {', '.join(options)} in the Message.")
    said = message_of(message)
    if said is None:
        kind = type(message).__qualname__
        raise MessageRefused(
            f"{tool}: stage a Message, a Mail, a dict (the payload) or a text; any other payload, such as this {kind}, "
            "goes in payload=..."
        )
    second = next((name for name in _CONTENTS if name in options), None)
    if second is not None:
        raise MessageRefused(f"{tool}: there is a message before {second}=..., and a message has one content.")
    return structs.replace(said, **options)
