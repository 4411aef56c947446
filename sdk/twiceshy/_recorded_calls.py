"""The calls of a recording: each intent with its delivery, in the order in which the code made them."""

from array import array
from collections.abc import Iterator

import msgspec

from twiceshy._recording import Recording
from twiceshy_contract.events import Delivery, Intent
from twiceshy_contract.refusals import JsonValue

Key = tuple[str, str, str, str]
"""What calls are matched by: scope, kind, name, digest of the arguments."""


class Call(msgspec.Struct, frozen=True):
    """One call. `delivery` is None where no outcome reached the code."""

    recording: Recording
    intent: Intent
    delivery: Delivery | None

    @property
    def key(self) -> Key:
        """What the call is matched by."""
        return (self.intent.scope, self.intent.kind, self.intent.name, self.intent.digest)

    @property
    def kind_of_call(self) -> tuple[str, str, str]:
        """What it is, whatever its arguments are."""
        return (self.intent.scope, self.intent.kind, self.intent.name)

    def arguments(self) -> dict[str, JsonValue]:
        """Return the arguments whole, in tagged form."""
        return self.recording.arguments(self.intent)

    def value(self) -> JsonValue:
        """Return the value that was delivered, whole, in tagged form; None where there is none."""
        return None if self.delivery is None else self.recording.value(self.delivery)


class RecordedCalls:
    """Reads a recording's events once for their places; a call is read again when it is asked for."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._intents = array("q")
        self._deliveries = array("q")
        place: dict[int, int] = {}
        for at, event in enumerate(recording.events):
            if isinstance(event, Intent):
                place[event.seq] = len(self._intents)
                self._intents.append(at)
                self._deliveries.append(-1)
            elif event.intent in place:
                self._deliveries[place.pop(event.intent)] = at

    def __len__(self) -> int:
        return len(self._intents)

    def __iter__(self) -> Iterator[Call]:
        return map(self.__getitem__, range(len(self)))

    def __getitem__(self, at: int) -> Call:
        intent = self.recording.events[self._intents[at]]
        ended = self._deliveries[at]
        delivery = None if ended < 0 else self.recording.events[ended]
        if not isinstance(intent, Intent) or isinstance(delivery, Intent):
            raise TypeError(f"event {intent.seq} of {self.recording!r} is not what it was when it was first read")
        return Call(self.recording, intent, delivery)
