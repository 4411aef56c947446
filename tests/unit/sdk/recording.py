"""A service that keeps the logs of runs in memory, as the real one does, and says what the test wants said."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import msgspec

from tests.unit.sdk.scripted import ScriptedService, answered, committed, executes, given, problem
from twiceshy import Guard
from twiceshy._recorder import Recorder
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.events import AppendRequest, Delivery, Event, Intent
from twiceshy_contract.runs import OpenRunRequest

SILENCE = NoReply(reason="connection refused")


class LogService(ScriptedService):
    """A transport. `appends` says what the next appends are answered in the place of being kept."""

    def __init__(self) -> None:
        super().__init__()
        self.events: dict[str, list[Event]] = {}
        self.epochs: dict[str, int] = {}
        self.opened: list[OpenRunRequest] = []
        self.blobs: dict[str, str] = {}
        self.appends: list[Reply | NoReply | Callable[[Request], Reply | NoReply]] = []
        self.about: Any = None
        self.is_away = False

    def send(self, request: Request) -> Reply | NoReply:
        """Keep logs, and grant every begin."""
        if self.is_away:
            self.requests.append(request)
            return SILENCE
        if request.path == "/v1/runs":
            self.requests.append(request)
            return self._open(msgspec.json.decode(request.body or b"", type=OpenRunRequest))
        if request.path.endswith("/events"):
            self.requests.append(request)
            return given(self.appends.pop(0), request) if self.appends else self.keep(request)
        if request.path == "/v1/effects" and not self.answers:
            self.requests.append(request)
            return self._begin(request)
        if request.path.endswith("/commit"):
            self.requests.append(request)
            return committed()
        return super().send(request)

    def keep(self, request: Request) -> Reply:
        """Keep what an append brings."""
        run = unquote(request.path.split("/")[3])
        asked = msgspec.json.decode(request.body or b"", type=AppendRequest)
        for digest, text in asked.blobs.items():
            assert hashlib.sha256(text.encode()).hexdigest() == digest
        self.blobs |= asked.blobs
        refusal = self._append(run, asked.epoch, asked.events)
        return refusal or answered(200, {"run": run, "next_seq": len(self.events[run]) + 1})

    def take_over(self, run: str) -> None:
        """Open a run as another process does."""
        self.epochs[run] += 1

    def kinds(self, run: str) -> list[str]:
        """The log of a run in brief."""
        return [brief(event) for event in self.events.get(run, [])]

    def _open(self, asked: OpenRunRequest) -> Reply:
        self.opened.append(asked)
        run = asked.run
        self.events.setdefault(run, [])
        self.epochs[run] = self.epochs.get(run, 0) + asked.record
        view = {
            "run": run, "id": "0", "state": "open", "effects": 0, "started_at": "", "ended_at": None,
            "events": len(self.events[run]), "epoch": self.epochs[run], "about": asked.about or self.about,
        }  # fmt: skip
        return answered(200, view)

    def _append(self, run: str, epoch: int, events: tuple[Event, ...]) -> Reply | None:
        if epoch != self.epochs[run]:
            return problem("run-taken-over")
        log = self.events[run]
        for event in events:
            if event.seq <= len(log):
                if log[event.seq - 1] != event:
                    return problem("recording-diverged")
            elif event.seq == len(log) + 1:
                log.append(event)
            else:
                return problem("recording-gap")
        return None

    def _begin(self, request: Request) -> Reply | NoReply:
        asked = msgspec.json.decode(request.body or b"")
        events = msgspec.convert(asked.get("events", []), tuple[Event, ...])
        epoch = asked.get("epoch")
        refusal = None if epoch is None else self._append(asked["run"], epoch, events)
        if refusal is not None:
            return refusal
        granted = given(executes(), request)
        assert isinstance(granted, Reply)
        body = msgspec.json.decode(granted.body)
        if epoch is not None:
            body["next_seq"] = len(self.events[asked["run"]]) + 1
        return msgspec.structs.replace(granted, body=msgspec.json.encode(body))


def brief(event: Event) -> str:
    """Say an event in few words."""
    if isinstance(event, Intent):
        return f"{event.seq} {event.kind} {event.name}"
    return f"{event.seq} {event.outcome} of {event.intent}"


def deliveries(service: LogService, run: str) -> Iterator[Delivery]:
    return (event for event in service.events[run] if isinstance(event, Delivery))


@contextmanager
def recorded(service: LogService, **options: Any) -> Iterator[Guard]:
    """A guard that records every run at the service; nothing is sent but by begins, by hand, and at the end."""
    guard = Guard("http://guard.test", transport=service, record=True, **({"spool": None} | options))
    yield guard
    guard.close()


def recorder_of(guard: Guard) -> Recorder:
    return guard._environment.recorder
