"""One thread a guard renews every live lease at a third of its time; a failed renewal is tried until the deadline.

When the service says that the lease is lost, or the deadline passes unrenewed, the effect is told.
"""

import functools
import logging
import os
import threading
import weakref
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from twiceshy._answers import Effect
from twiceshy._effect import CurrentEffect
from twiceshy._lease import Clock
from twiceshy._transports.base import NoReply, Reply, Request, Transport
from twiceshy_contract.effects import RenewRequest
from twiceshy_contract.problems import Problem

_LOST: Final = frozenset({"lease-lost", "superseded", "not-possible", "hold-lost"})
_IDLE_SECONDS: Final = 5.0
_SHORTEST_WAIT: Final = 0.2
_LONGEST_WAIT: Final = 5.0
_NOBODYS: Final[Mapping[str, str]] = MappingProxyType({})
_log = logging.getLogger("twiceshy")


class Heartbeat:
    """Keep the leases of one guard alive, in whichever process it is used."""

    def __init__(self, transport: Transport, clock: Clock, credentials: Mapping[str, str] = _NOBODYS) -> None:
        """Renew through a transport; effects of runs that have credentials with these."""
        self._transport = transport
        self._clock = clock
        self._credentials = credentials
        self._changed = threading.Condition()
        self._due: dict[CurrentEffect, float] = {}
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._wakes_at = 0.0
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=functools.partial(_start_anew_in_child, weakref.ref(self)))

    def watch(self, effect: CurrentEffect) -> None:
        """Renew the effect's lease from now on."""
        at = effect.lease.renew_at
        with self._changed:
            self._is_closed = False
            self._due[effect] = at
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="twiceshy-heartbeat", daemon=True)
                self._thread.start()
            elif at < self._wakes_at:
                self._changed.notify()

    def forget(self, effect: CurrentEffect) -> None:
        """Renew the effect's lease no more."""
        with self._changed:
            self._due.pop(effect, None)

    def close(self) -> None:
        """Forget all leases and let the thread end."""
        with self._changed:
            self._due.clear()
            self._is_closed = True
            self._changed.notify()

    def run_once(self) -> None:
        """Renew what is due, and tell what is lost."""
        now = self._clock()
        with self._changed:
            effects = dict(self._due)
        for effect, at in effects.items():
            if effect.lease.has_ended(self._clock()):
                self._lose(effect, "its lease ended and could not be renewed")
            elif at <= now:
                self._renew(effect)

    def start_anew(self) -> None:
        """Begin empty: in a forked child the parent's leases, lock and thread are none of ours."""
        self._changed = threading.Condition()
        self._due = {}
        self._thread = None
        self._is_closed = False
        self._wakes_at = 0.0

    def _run(self) -> None:
        while self._waits_until_due():
            self.run_once()

    def _waits_until_due(self) -> bool:
        """Wait until a lease wants attention. False, and the thread ends, when there has been none for a while."""
        with self._changed:
            while not self._is_closed:
                pause = self._seconds_to_next()
                if pause <= 0:
                    return True
                self._wakes_at = self._clock() + pause
                was_idle = not self._due
                was_woken = self._changed.wait(pause)
                self._wakes_at = 0.0
                if was_idle and not was_woken and not self._due:
                    break
            self._thread = None
            return False

    def _seconds_to_next(self) -> float:
        nexts = [min(at, effect.lease.deadline) for effect, at in self._due.items()]
        return min(nexts) - self._clock() if nexts else _IDLE_SECONDS

    def _renew(self, effect: CurrentEffect) -> None:
        sent_at = self._clock()
        lease = effect.lease
        try:
            answer = _read(self._transport.send(self._request(effect)))
        except Exception as error:  # noqa: BLE001 - a dead heartbeat would lose living leases
            _log.exception("The renewal of effect %s failed in an unexpected way.", effect.key)
            answer = f"{type(error).__name__}: {error}"
        if isinstance(answer, Effect) and answer.lease_seconds_left is not None:
            effect.lease = lease.renewed(sent_at, answer.lease_seconds_left)
            self._set_due(effect, effect.lease.renew_at)
        elif isinstance(answer, Problem) and answer.code in _LOST and effect.is_reported:
            self.forget(effect)  # the outcome is on its way, or there: its own answer says what became of it
        elif isinstance(answer, Problem) and answer.code in _LOST:
            self._lose(effect, f"the service says {answer.code}: {answer.detail}")
        else:
            _log.warning("The lease of effect %s could not be renewed, trying again: %s", effect.key, answer)
            self._set_due(effect, self._clock() + lease.retry_every)

    def _request(self, effect: CurrentEffect) -> Request:
        body = RenewRequest(attempt=effect.attempt, fence=effect.fence)
        with self._changed:
            shortest = min((e.lease.seconds_left(self._clock()) for e in self._due), default=_LONGEST_WAIT)
        return Request(
            method="POST",
            path=f"/v1/effects/{effect.key}/renew",
            body=msgspec.json.encode(body),
            timeout_seconds=min(_LONGEST_WAIT, max(_SHORTEST_WAIT, shortest / 2)),
            token=self._credentials.get(effect.reference.run or ""),
        )

    def _set_due(self, effect: CurrentEffect, at: float) -> None:
        with self._changed:
            if effect in self._due:
                self._due[effect] = at

    def _lose(self, effect: CurrentEffect, why: str) -> None:
        with self._changed:
            watched = self._due.pop(effect, None) is not None
        if watched:
            _log.error("The lease of effect %s is lost: %s.", effect.key, why)
            effect.lose(why)


def _start_anew_in_child(reference: "weakref.ref[Heartbeat]") -> None:
    heartbeat = reference()
    if heartbeat is not None:
        heartbeat.start_anew()


def _read(reply: Reply | NoReply) -> Effect | Problem | str:
    if isinstance(reply, NoReply):
        return reply.reason
    try:
        if 200 <= reply.status < 300:
            return msgspec.json.decode(reply.body, type=Effect)
        return msgspec.json.decode(reply.body, type=Problem)
    except (msgspec.DecodeError, RecursionError) as error:
        return f"status {reply.status}: {error}"
