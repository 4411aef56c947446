"""Delivered: which outcomes of idempotent tools the agent of each run has been given.

Where it knows how a call ended, the same call is a new intent: on, off, on. The service hears of it with the next
begin of the run; what this process gave before a call was made is never the answer to that call.
"""

import functools
import os
import threading
import weakref
from collections import OrderedDict
from typing import Final, TypeVar

import msgspec

from twiceshy_contract.wire import EffectKey

K = TypeVar("K")
V = TypeVar("V")
_MOST_RUNS: Final = 1000
_MOST_KEYS: Final = 1000
"""As many as a begin may carry."""


class Known(msgspec.Struct, frozen=True):
    """What the agent knew when it made a call: `untold` is what the service may not have heard of yet."""

    untold: tuple[EffectKey, ...] = ()
    moment: int = 0


class _Run:
    """What the agent of one run has been given, and when; the oldest is forgotten first."""

    def __init__(self) -> None:
        self.given: OrderedDict[EffectKey, int] = OrderedDict()
        self.untold: OrderedDict[EffectKey, None] = OrderedDict()


class Deliveries:
    """The outcomes that were given, by run. Any thread may ask."""

    def __init__(self) -> None:
        self._runs: OrderedDict[str, _Run] = OrderedDict()
        self._moment = 0
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=functools.partial(_start_anew_in_child, weakref.ref(self)))

    def start_anew(self) -> None:
        """Take no part in what another thread was doing while the process forked."""
        self._lock = threading.Lock()

    def known(self, run: str | None) -> Known:
        """Return what the agent of a run knows by now."""
        if run is None or run not in self._runs:
            return Known(moment=self._moment)
        with self._lock:
            kept = self._runs.get(run)
            return Known(() if kept is None else tuple(kept.untold), self._moment)

    def give(self, run: str, key: EffectKey) -> None:
        """Note that an outcome has reached the agent of a run."""
        with self._lock:
            self._moment += 1
            kept = self._runs.setdefault(run, _Run())
            self._runs.move_to_end(run)
            kept.given[key] = self._moment
            kept.untold[key] = None
            _bound(self._runs, _MOST_RUNS)
            _bound(kept.given, _MOST_KEYS)
            _bound(kept.untold, _MOST_KEYS)

    def told(self, run: str | None, keys: tuple[EffectKey, ...]) -> None:
        """Note that the service has heard of outcomes."""
        with self._lock:
            kept = None if run is None else self._runs.get(run)
            if kept is not None:
                for key in keys:
                    kept.untold.pop(key, None)

    def was_known(self, run: str | None, key: str, known: Known) -> bool:
        """Tell whether the agent of a run had been given an outcome before it made a call."""
        with self._lock:
            kept = None if run is None else self._runs.get(run)
            moment = None if kept is None else kept.given.get(EffectKey(key))
        return moment is not None and moment <= known.moment


def _start_anew_in_child(reference: "weakref.ref[Deliveries]") -> None:
    deliveries = reference()
    if deliveries is not None:
        deliveries.start_anew()


def _bound(kept: OrderedDict[K, V], most: int) -> None:
    while len(kept) > most:
        kept.popitem(last=False)
