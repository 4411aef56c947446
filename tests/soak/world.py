"""The world of a soak: what tools really did, and which keys are wanted by many at the moment."""

import threading
import time
from typing import Any, Final

from tests.soak.history import EffectClass, Executed, Journal

_TURN_SECONDS: Final = (3.0, 9.0, 18.0, 30.0)
"""How long keys are wanted; the longer ones live on after a doubt that was settled."""


class World:
    """Shared by all who take part."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.is_over = threading.Event()
        self.receipts: dict[str, str] = {}
        self._by_downstream: dict[str, str] = {}
        self._turn = threading.Lock()
        self._started = time.monotonic()

    def hot_number(self, number: int) -> int:
        """Return the number of a key that many want now; in a while it will be another."""
        turn = _TURN_SECONDS[number % len(_TURN_SECONDS)]
        return int((time.monotonic() - self._started) / turn) * 1000 + number

    def class_of(self, tool: str) -> EffectClass:
        """Return the class of a tool."""
        return "idempotent" if tool == "sync" else "side_effect"

    def execute(self, client: str, tool: EffectClass, granted: dict[str, Any], attempt: str) -> str:
        """Have an effect; a provider that knows the downstream key gives the receipt that it gave before."""
        key, downstream = granted["key"], granted["downstream_key"]
        with self._turn:
            receipt = f"receipt of {key} by {attempt}"
            if tool == "idempotent":
                receipt = self._by_downstream.setdefault(downstream, receipt)
            self.receipts[key] = receipt
            self.journal.write(
                Executed(
                    client=client, key=key, tool=tool, attempt=attempt, downstream_key=downstream, receipt=receipt,
                    at=time.monotonic(),
                )
            )  # fmt: skip
        return receipt
