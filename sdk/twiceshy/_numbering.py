"""Which of its like a call is, of those that a program makes between two starts of it.

A fork is run again where a person has answered it. Its calls are told apart by these numbers, so that the n-th call of
a kind meets in each pass what the n-th was given before, whoever made it then.
"""

import hashlib
import threading
from collections import Counter
from typing import Final

import msgspec

from twiceshy._calls import ToolCall
from twiceshy_contract.refusals import steps_of

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class Numbering:
    """Counts the calls of one pass. Any thread may ask."""

    def __init__(self) -> None:
        self._made: Counter[bytes] = Counter()
        self._lock = threading.Lock()

    def number(self, call: ToolCall, *, is_harmless: bool) -> int:
        """Return which of its like a call is.

        Where a repeat `is_harmless`, a call means another instance only once an outcome has reached the agent: it is
        counted then, by `give`.
        """
        likeness = _likeness(call)
        with self._lock:
            number = self._made[likeness] + 1
            if not is_harmless:
                self._made[likeness] = number
            return number

    def give(self, call: ToolCall) -> None:
        """Note that the outcome of a call, whose repeat is harmless, has reached the agent."""
        with self._lock:
            likeness = _likeness(call)
            self._made[likeness] = max(self._made[likeness], call.nth or 0)


def _likeness(call: ToolCall) -> bytes:
    """Return what calls have in common that are alike: the tool, and the name of the intent, or its identity arguments.

    An argument that counts in part, or not as it is written, is left out: calls that the service takes as one must not
    be counted apart.
    """
    keys, rules = call.keys, call.spec.rules
    alike: object = [keys.business_key, None if keys.step is None else str(keys.step)]
    if alike == [None, None]:
        vague = {steps_of(path)[0] for path in (*rules.content, *rules.ignored, *rules.normalisers)}
        named = {path.removeprefix("/") for path in rules.identity} if rules.identity else call.written.keys()
        alike = {name: value for name, value in call.written.items() if name in named and name not in vague}
    return hashlib.sha256(_encode([call.spec.name, keys.occurrence, alike])).digest()
