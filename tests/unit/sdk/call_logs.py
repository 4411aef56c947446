"""Logs written by hand, call by call, numbered as a recorder would."""

from typing import Any

from twiceshy._payloads import digest_of
from twiceshy._recording import Recording
from twiceshy_contract.events import Delivery, Event, EventKind, Intent
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.runs import RunState, RunView

START = 1_796_000_000_000_000
"""When the first event was written down."""


def head(run: str = "contract-7", *, state: RunState = "finished", **more: Any) -> RunView:
    return RunView(
        run=run,
        id="0199c0de-0000-7000-8000-000000000001",
        state=state,
        effects=0,
        started_at="2026-11-30T10:00:00.000000Z",
        ended_at=None,
        **more,
    )


class Writing:
    """Takes down calls one after the other: `asked` enters one, `gave` delivers its outcome, `call` does both."""

    def __init__(self, run: str = "contract-7", **about: Any) -> None:
        self.events: list[Event] = []
        self.blobs: dict[str, str] = {}
        self._run = run
        self._about = about

    def asked(self, kind: EventKind, name: str, arguments: dict[str, Any] | None = None, **more: Any) -> int:
        seq = len(self.events) + 1
        given = arguments or {}
        said = {"digest": digest_of(given), **({"arguments": given} if given else {}), **more}
        self.events.append(Intent(seq=seq, at=START + 1000 * seq, kind=kind, name=name, **said))
        return seq

    def gave(self, intent: int, value: Any = None, *, took: int = 1500, **more: Any) -> int:
        seq = len(self.events) + 1
        said: dict[str, Any] = {"outcome": "result", **more}
        if said["outcome"] == "result":
            said = {"value": value, "empty": value in (None, "", [], {}), **said}
        self.events.append(Delivery(seq=seq, at=START + 1000 * seq, intent=intent, took=took, **said))
        return seq

    def failed(self, intent: int, kind: str, message: str, **more: Any) -> int:
        error = ErrorOutcome(type=kind, message=message)
        return self.gave(intent, outcome="error", error=error, **more)

    def call(
        self, kind: EventKind, name: str, arguments: dict[str, Any] | None = None, value: Any = None, **more: Any
    ) -> int:
        intent = self.asked(kind, name, arguments)
        self.gave(intent, value, **more)
        return intent

    def tool(self, name: str, arguments: dict[str, Any] | None = None, value: Any = None, **more: Any) -> int:
        return self.call("tool_call", name, arguments, value, **more)

    def recording(self) -> Recording:
        return Recording.from_events(
            head(self._run, events=len(self.events), epoch=1, **self._about), self.events, self.blobs
        )
