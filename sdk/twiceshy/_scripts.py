"""What a replay serves its code: the record of a run in its order, and what is allowed where the record has no answer.

A script keeps the *order* of the record as long as that holds. It is *free* after the cut of a fork, in a retest, after
an override, and where code is found to keep another order: then what is there is given, the first in the record first.
In no mode of its own does a script let a tool run: a call that it has no answer for ends the code.
"""

import functools
import threading
from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from twiceshy._boundaries import Boundary, Outcome
from twiceshy._divergence import Divergence
from twiceshy._divergences import Divergences
from twiceshy._overrides import Override, fitted
from twiceshy._pace import Pace
from twiceshy._recording import Recording
from twiceshy._redacted_record import digest_in
from twiceshy._replay_errors import ReplayDiverged, ReplayIncomplete, ReplayMisfit, ReplayPaused, ReplayStopped
from twiceshy._replay_plan import CLOCKS, Plan
from twiceshy._restore import untag
from twiceshy._script import Key, Matched, Order, key_of
from twiceshy._served import served
from twiceshy.exceptions import RecordError, SetupError
from twiceshy_contract.events import Delivery, Intent


class ReplayScript:
    """Stands in front of a run's boundaries, and keeps what it finds different."""

    def __init__(self, recording: Recording, plan: Plan) -> None:
        self._recording = recording
        self._plan = plan
        self._cut = {"fork": plan.at, "retest": 1}.get(plan.mode)
        self._order = Order(recording.events, self._cut)
        self.found: Final = Divergences(recording, self._order, plan)
        self._frees = plan.mode in ("fork", "resume", "retest")
        self._overridden: set[int] = set()
        self._pace = Pace(self._order, recording.run, is_online=plan.is_online)
        self._changed = threading.Condition(threading.RLock())
        self.stopped: ReplayStopped | None = None

    @property
    def continues(self) -> bool:
        """Whether the log is that of the record itself."""
        return self._plan.mode == "resume"

    @property
    def is_free(self) -> bool:
        """Whether the order of the record is not waited for any more."""
        return self._order.is_free

    @property
    def is_over(self) -> bool:
        """Whether nothing recorded is left that must come first."""
        return self._order.is_over

    @property
    def plan(self) -> Plan:
        """What was asked."""
        return self._plan

    @property
    def is_counterfactual(self) -> bool:
        """Whether a run that goes on has had outcomes that the world did not give."""
        events = self._recording.events
        return self.continues and len(events) > 0 and events[len(events) - 1].counterfactual

    @property
    def refusal(self) -> Exception | None:
        """What was given in the place of an outcome, did not fit, and has ended the code."""
        return self.stopped.refusal if isinstance(self.stopped, ReplayMisfit) else None

    def refuse(self, error: Exception) -> ReplayMisfit:
        """Stop at what was given in the place of an outcome and does not fit."""
        with self._changed:
            misfit = ReplayMisfit(error)
            self.stopped = self.stopped or misfit
            return misfit

    def close(self) -> None:
        """Let go of a record that was fetched for this script."""
        if self._plan.is_online:
            self._recording.close()

    def match(self, boundary: Boundary, digest: str) -> Matched | None:
        """Return what stands in the place of a call; None where it really runs. Raises ReplayStopped."""
        with self._changed:
            if self.stopped is not None:
                raise self.stopped
            self._free_if_over()
            digest = digest_in(self._recording, self._order, boundary, digest)
            named = self._plan.overrides.of_name(boundary.name)
            intent = self._find(boundary, digest)
            if intent is None and named is None and not self._order.is_free and self._plan.is_online:
                self._pace.wait_for_others(self._changed)
                self._free_if_over()
            try:
                place = self._missed(boundary, digest, named) if intent is None else self._of(boundary, intent, named)
            except SetupError as misfit:
                raise self.refuse(misfit) from misfit
            self._changed.notify_all()
            is_noted = intent is not None and self._plan.mode == "fork" and self._plan.is_online
            return msgspec.structs.replace(place or Matched(), origin=intent) if is_noted else place

    def leave(self, taken: Iterable[int]) -> None:
        """Be behind the cut at once: the fork goes on, and has made these calls of the record already."""
        self._order.leave(taken)

    def again(self, boundary: Boundary, origin: int | None, named: Override | None) -> Matched | None:
        """Return what stands in the place of a call that the fork has entered before, without hearing of an outcome."""
        with self._changed:
            try:
                if origin is not None:
                    return self._of(boundary, origin, named)
                return None if named is None else self._override(boundary, named, None)
            except SetupError as misfit:
                raise self.refuse(misfit) from misfit

    @property
    def due(self) -> int | None:
        """The intent whose recorded delivery is next, where its turn has come."""
        with self._changed:
            return self._order.due

    def is_due(self, intent: int) -> bool:
        """Say whether the recorded delivery of an intent may be given."""
        with self._changed:
            return self._order.is_due(intent)

    def gave(self, intent: int) -> None:
        """Note that the recorded delivery of an intent was given. Raises ReplayPaused where it is that one."""
        with self._changed:
            self._order.gave(intent)
            self._pace.moved()
            if intent in self._overridden and not self._order.is_free:
                self._order.free()
            self._free_if_over()
            self._changed.notify_all()
            if self._plan.mode == "until" and self._order.delivery_of(intent) is not None:
                self._pause_at(intent)

    def is_early(self, boundary: Boundary, digest: str) -> bool:
        """Say whether a call is not of the record, and code may still be on its way to what must come before it."""
        with self._changed:
            if not self._frees or self._order.is_over or self.stopped is not None:
                return False
            digest = digest_in(self._recording, self._order, boundary, digest)
            return not self._order.has_left(key_of(boundary, digest), self._cut) and self._pace.may_come()

    def stalled(self, awaited: Collection[int], *, is_alone: bool) -> BaseException | None:
        """Give up the order where calls may have changed places; what is never made is missing in the end.

        What takes time without a boundary may take as long as it took when it was recorded.
        """
        with self._changed:
            if self._order.is_free and self._order.forget(awaited):
                return None
            uncancelled = self._pace.uncancelled(awaited)
            if self._pace.may_go_on(uncancelled, is_alone=is_alone):
                return None
            is_next = uncancelled is not None and self._order.is_next(uncancelled)
            if self._plan.is_online or self._order.is_free or is_next:
                return self._stop(self.found.stalled(uncancelled))
            self._order.give_up()
            return None

    def fail(self, divergence: Divergence) -> ReplayDiverged:
        """Stop the replay at a divergence that was found outside of its calls."""
        with self._changed:
            return self._stop(divergence)

    def _find(self, boundary: Boundary, digest: str) -> int | None:
        """Take the recorded call that is this one."""
        order, plan, key = self._order, self._plan, key_of(boundary, digest)
        if not order.is_free:
            return order.take(key, self._cut)
        if plan.mode == "resume":
            return None
        if boundary.kind in CLOCKS:
            is_drawn = plan.mode == "fork"
            return None if is_drawn else order.take(key) or order.take_like(key[:3])
        return self._find_model_call(boundary, key) if boundary.kind == "llm_call" else order.take(key)

    def _find_model_call(self, boundary: Boundary, key: Key) -> int | None:
        """Take the recorded call, or the one at its position; where the model is asked, only for an override of it."""
        plan, order = self._plan, self._order
        is_asked = plan.llm == "live" or callable(plan.llm) or plan.is_online
        found = None if plan.llm == "position" else order.take(key)
        if found is None and (is_asked or plan.llm == "position" or plan.by_position):
            found = order.take_like(key[:2])
        if not is_asked or found is None or plan.overrides.of_intent(found) is not None:
            return found
        if not plan.is_online:
            self.found.asked_otherwise(boundary, order.intent(found), "and is answered anew")
        return None

    def _of(self, boundary: Boundary, seq: int, named: Override | None) -> Matched | None:
        """Return what a call is served that is of the record."""
        intent, plan = self._order.intent(seq), self._plan
        override = named or plan.overrides.of_intent(seq)
        delivery = self._order.delivery_of(seq)
        is_in_time = delivery is not None and not (plan.mode == "fork" and delivery.seq >= (self._cut or 0))
        is_asked_again = not is_in_time and plan.asks_again(boundary, delivery)
        is_served = is_in_time or (delivery is not None and override is None and not is_asked_again)
        self._order.enter(seq, is_served=is_served)
        self._pace.entered(seq)
        self.found.entered(boundary, intent)
        if plan.mode == "until" and seq == plan.at:
            return Matched(intent=intent, stops=self._paused(f"{boundary.name} is called", seq))
        if override is not None:
            return self._override(boundary, override, intent if is_in_time else None)
        if delivery is None or (plan.is_online and is_asked_again):
            return self._undelivered(boundary, intent)
        if boundary.child is not None and boundary.child in plan.deep:
            return Matched(intent=intent, runs=True)
        if is_asked_again:
            return self._missed_model(boundary, None)
        return self._given(boundary, intent, delivery, may_run=plan.is_online and not is_in_time)

    def _given(self, boundary: Boundary, intent: Intent, delivery: Delivery, *, may_run: bool) -> Matched | None:
        try:
            return Matched(intent=intent, outcome=served(self._recording, boundary, delivery))
        except RecordError as error:
            if not may_run:
                raise self._end(f"Event {delivery.seq} cannot be served: {error}", intent.seq) from error
            self._order.gave(intent.seq)
            return None

    def _override(self, boundary: Boundary, override: Override, intent: Intent | None) -> Matched:
        outcome = self._plan.overrides.used(override).outcome(boundary)
        if intent is None:
            self._frees = True
        else:
            self._overridden.add(intent.seq)
        return Matched(intent=intent, outcome=outcome)

    def _undelivered(self, boundary: Boundary, intent: Intent) -> Matched | None:
        """Return what stands in the place of a call whose outcome the record lacks."""
        if self._plan.mode == "resume":
            return Matched(intent=intent)
        if self._plan.is_online:
            return None
        if self._order.is_free:
            return self._missed(boundary, intent.digest, None)
        lost = ReplayIncomplete(
            f"The record of run {self._recording.run} ends here: {boundary.name} was called at event {intent.seq}, and "
            "no outcome of it reached the code. Go on with that run by guard.run(..., resume=True).",
            seq=intent.seq,
        )
        return Matched(ends=lost)

    def _missed(self, boundary: Boundary, digest: str, named: Override | None) -> Matched | None:
        """Return what stands in the place of a call that the record has no answer for. Raises ReplayDiverged."""
        if named is not None:
            self.found.goes_on(boundary, "an override answers it")
            return self._override(boundary, named, None)
        if not self._order.is_free:
            raise self._stop(self.found.unmatched(boundary, digest))
        if self._plan.is_online:
            return None
        if boundary.kind in CLOCKS:
            return self._drawn(boundary)
        if boundary.kind == "llm_call":
            return self._missed_model(boundary, digest)
        if boundary.name in self._plan.answers:
            self.found.goes_on(boundary, "an answer stands in for it")
            answer = fitted(boundary, self._plan.answers[boundary.name], f"The answer for {boundary.name}")
            return Matched(outcome=msgspec.structs.replace(answer, source="stand_in"))
        if boundary.returns_nothing:
            self.found.goes_on(boundary, "it returns None, and did not run")
            return Matched(outcome=Outcome(kind="result", source="stand_in"))
        raise self._stop(self.found.unmatched(boundary, digest))

    def _missed_model(self, boundary: Boundary, digest: str | None) -> Matched | None:
        llm = self._plan.llm
        if callable(llm):
            given = untag(boundary.arguments)
            return Matched(instead=functools.partial(llm, **given) if isinstance(given, dict) else llm)
        if llm == "live":
            return None
        if self._plan.on_miss == "live":
            self.found.goes_on(boundary, "the model is asked")
            return None
        raise self._stop(self.found.unmatched(boundary, digest or ""))

    def _drawn(self, boundary: Boundary) -> Matched | None:
        if self._plan.mode != "fork":
            self.found.goes_on(boundary, "nothing is waited for" if boundary.kind == "sleep" else "it is drawn now")
        return Matched(outcome=Outcome(kind="result")) if boundary.kind == "sleep" else None

    def _free_if_over(self) -> None:
        if self._frees and self._order.is_over and not self._order.is_free:
            self._order.free()

    def _pause_at(self, intent: int) -> None:
        delivery = self._order.delivery_of(intent)
        if delivery is not None and delivery.seq == self._plan.at and self.stopped is None:
            self._paused(f"the outcome of {self._order.intent(intent).name} is there", delivery.seq)
        if isinstance(self.stopped, ReplayPaused):
            raise self.stopped

    def _paused(self, what: str, seq: int) -> ReplayPaused:
        paused = ReplayPaused(f"The replay of run {self._recording.run} pauses at event {seq}: {what}.", seq=seq)
        self.stopped = paused
        return paused

    def _end(self, message: str, seq: int) -> ReplayIncomplete:
        ended = ReplayIncomplete(message, seq=seq)
        self.stopped = ended
        return ended

    def _stop(self, divergence: Divergence) -> ReplayDiverged:
        self.found.add(divergence)
        stopped = self.found.error()
        self.stopped = self.stopped or stopped
        return stopped
