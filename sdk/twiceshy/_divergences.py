"""What a replay finds different, named: which kind of difference it is, what it is about, and what to do.

Code can be looked at only up to the call that is not in the record, so that its name is the likeliest reading of what
is known there: the calls that the record has left, and how much of the arguments is the same.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from msgspec.structs import replace

from twiceshy._advice import advice, advice_where_it_went_on
from twiceshy._boundaries import Boundary
from twiceshy._divergence import Divergence, DivergenceClass, ReplayedCall, around, called, changes, in_short, is_alike
from twiceshy._in_brief import brief
from twiceshy._open_streams import with_open_stream
from twiceshy._recording import Recording
from twiceshy._replay_errors import ReplayDiverged
from twiceshy._replay_plan import CLOCKS, Plan
from twiceshy._said import said
from twiceshy._script import Order
from twiceshy_contract.events import Delivery, Intent

_MOST_MISSING: Final = 100
_MOST_NOTED: Final = 5


class Divergences:
    """What was found so far, in its order."""

    def __init__(self, recording: Recording, order: Order, plan: Plan) -> None:
        self._recording = recording
        self._order = order
        self._plan = plan
        self._found: list[Divergence] = []
        self._gone_on: list[tuple[int, ReplayedCall, str]] = []
        self._latest = 0

    def __iter__(self) -> Iterator[Divergence]:
        """Yield what changes something first, then the notes."""
        yield from sorted(self._found, key=lambda one: one.is_note)

    def add(self, divergence: Divergence) -> None:
        """Keep one; calls that were passed over before it come first."""
        self._pair()
        passed = [intent for intent, _ in self._order.left() if intent in self._order.passed]
        self._found.extend(self._missing(intent) for intent in passed[:_MOST_MISSING])
        self._found.append(with_open_stream(divergence, self._recording, self._order, self._plan))

    def error(self) -> ReplayDiverged:
        """Return what was found as an error."""
        return diverged(self._recording, self)

    def entered(self, boundary: Boundary, intent: Intent) -> None:
        """Hear that a recorded call was made: after a later one, or with other arguments, it is worth a note."""
        if intent.seq < self._latest:
            call = called(self._recording, intent)
            message = f"{call.name} (event {intent.seq}) is called at another place than when it was recorded."
            self._found.append(self._told("reordered", message, call, call, is_note=True))
        self._latest = max(self._latest, intent.seq)
        if intent.kind in ("llm_call", "sleep"):
            self.asked_otherwise(boundary, intent, "whose outcome it was given")

    def asked_otherwise(self, boundary: Boundary, intent: Intent, what: str) -> None:
        """Note where a call that has a place in the record passes other arguments there."""
        if self._recording.arguments(intent) == boundary.arguments:
            return
        message = f"{boundary.name} was called with other arguments than at event {intent.seq}, {what}."
        recorded, actual = called(self._recording, intent), _actual(boundary)
        self._found.append(self._told("arguments", message, recorded, actual, is_note=True))

    def goes_on(self, boundary: Boundary, what: str) -> None:
        """Note a call that the record has not, and that goes on nevertheless."""
        actual = _actual(boundary)
        if boundary.kind not in CLOCKS:
            self._gone_on.append((len(self._found), actual, what))
        message = f"{boundary.name} is not in the record in this way: {what}."
        self._found.append(self._told("extra", message, None, actual, is_note=True))

    def _pair(self) -> None:
        """Find which of the calls that went on are recorded ones with other arguments.

        That can be said only in the end: a recorded call may be made later, just as it was.
        """
        gone_on, self._gone_on = self._gone_on, []
        for place, actual, what in gone_on:
            intent = self._order.take_like((actual.scope, actual.kind, actual.name))
            if intent is not None:
                message = f"{actual.name} is called with other arguments than at event {intent}; {what}."
                recorded = called(self._recording, self._order.intent(intent))
                is_note = self._plan.mode == "fork"  # after its cut nothing is held to the record
                self._found[place] = self._told("arguments", message, recorded, actual, is_note=is_note, went_on=True)

    def unmatched(self, boundary: Boundary, digest: str) -> Divergence:
        """Name what a call is that the record has no answer for."""
        self._pair()
        actual = _actual(boundary)
        left = [intent for intent, _ in self._order.left() if intent not in self._order.passed]
        upcoming = self._upcoming(left, boundary.scope)
        key = (boundary.scope, boundary.kind, boundary.name, digest)
        if self._order.has_key(key):
            return self._told("extra", f"{boundary.name} is called once more than the record has it.", upcoming, actual)
        likeliest = self._of_name(boundary, left)
        if upcoming is not None and _is_renamed(upcoming, actual, likeliest):
            message = f"The code calls {actual.name} where the record has {upcoming.name}."
            return self._told("name", message, upcoming, actual)
        if likeliest is not None:
            return self._changed(likeliest, upcoming, actual)
        other = self._of_other_kind(boundary, left)
        if other is not None:
            message = f"{boundary.name} was a {other.kind} when it was recorded, and is a {boundary.kind} now."
            return self._told("kind", message, other, actual)
        if upcoming is None:
            return self._told("extra", f"The record has no call left; the code calls {boundary.name}.", None, actual)
        message = f"The code calls {actual.name}, which the record has not; it goes on with {upcoming.name}."
        return self._told("extra", message, upcoming, actual)

    def stalled(self, uncancelled: int | None) -> Divergence:
        """Name why what the record has next never came."""
        self._pair()
        if uncancelled is not None:
            call = called(self._recording, self._order.intent(uncancelled))
            message = (
                f"The code cancelled {call.name} (event {uncancelled}) when it was recorded, and waits for it now."
            )
            return self._told("missing", message, call, None)
        first = self._order.next_intent
        if first is not None:
            return self._missing(first)
        left = next((called(self._recording, self._order.intent(intent)) for intent, _ in self._order.left()), None)
        return self._told("missing", "The code waits, and nothing that the record has comes any more.", left, None)

    def finish(self, kinds: Collection[str], below: int | None) -> None:
        """At the end of the code, find what it never called, of these kinds and before that event."""
        self._pair()
        left = [intent for intent, key in self._order.left() if key[1] in kinds and (below is None or intent < below)]
        self._found.extend(self._missing(intent) for intent in left[:_MOST_MISSING])

    def failed(self, error: BaseException) -> None:
        """Find that the code fails where the run was finished."""
        message = f"The code raised {said(error)}; the run was finished when it was recorded."
        told = self._told("outcome", message, None, None)
        self._found.append(replace(told, advice="Look at where it is raised: the calls up to there may be the same."))

    def beside_fact(self, fact: object, actual: object) -> None:
        """Note that the code came to something else than the run's fact says, which is none of the record's events."""
        message = f"The code came to {brief(actual)}; the run's fact `outcome` says {brief(fact)}."
        self._found.append(self._told("outcome", message, None, None, is_note=True))

    def of_another_run(self, run: str) -> Divergence:
        """Name a run that the code enters, and that the recording is not of."""
        message = f"The code enters the run {run}; the recording is of {self._recording.run} and holds no such run."
        what = "Replay the agent that was recorded, or the recording of that run."
        return Divergence(class_="extra", message=message, advice=what, after=self._latest)

    def outside(self, tool: str) -> Divergence:
        """Name a tool that is called where no run of the record is around it."""
        message = (
            f"{tool} is called outside of the run {self._recording.run}, or by what really runs: nothing in the record "
            "answers it, and a replay runs no tool."
        )
        actual = ReplayedCall(kind="tool_call", name=tool)
        advised = "Call it inside of the run."
        return Divergence(class_="extra", message=message, advice=advised, after=self._latest, actual=actual)

    def _changed(self, recorded: ReplayedCall, upcoming: ReplayedCall | None, actual: ReplayedCall) -> Divergence:
        is_next = upcoming is None or recorded.seq == upcoming.seq or self._is_beside(upcoming, recorded)
        if upcoming is None or is_next or self._order.is_free:
            return self._told("arguments", f"{actual.name} is called with other arguments.", recorded, actual)
        if is_alike(recorded, actual):
            message = (
                f"The code does not call {upcoming.name} any more; it goes on with {actual.name} "
                f"(event {recorded.seq})."
            )
            return self._told("missing", message, upcoming, actual)
        message = f"The code calls {actual.name} in a way that the record has not; it goes on with {upcoming.name}."
        return self._told("extra", message, upcoming, actual)

    def _is_beside(self, upcoming: ReplayedCall, recorded: ReplayedCall) -> bool:
        """Say whether both calls were open at the same time: no outcome came between."""
        first, last = upcoming.seq or 1, recorded.seq or 1
        return not any(isinstance(self._recording.events[at], Delivery) for at in range(first, last - 1))

    def _upcoming(self, left: list[int], scope: str) -> ReplayedCall | None:
        calls = [self._order.intent(intent) for intent in left[:50]]
        first = next((call for call in calls if call.scope == scope), calls[0] if calls else None)
        return None if first is None else called(self._recording, first)

    def _of_name(self, boundary: Boundary, left: list[int]) -> ReplayedCall | None:
        named = (self._order.intent(intent) for intent in left)
        wanted = (boundary.scope, boundary.kind, boundary.name)
        found = next((call for call in named if (call.scope, call.kind, call.name) == wanted), None)
        return None if found is None else called(self._recording, found)

    def _of_other_kind(self, boundary: Boundary, left: list[int]) -> ReplayedCall | None:
        found = next((call for call in map(self._order.intent, left) if call.name == boundary.name), None)
        return None if found is None else called(self._recording, found)

    def _missing(self, intent: int) -> Divergence:
        call = called(self._recording, self._order.intent(intent))
        return self._told("missing", f"{call.name} (event {intent}) is not called any more.", call, None)

    def _told(
        self,
        class_: DivergenceClass,
        message: str,
        recorded: ReplayedCall | None,
        actual: ReplayedCall | None,
        *,
        is_note: bool = False,
        went_on: bool = False,
    ) -> Divergence:
        seq = None if recorded is None else recorded.seq
        is_beside = recorded is None and actual is not None and (is_note or next(self._order.left(), None) is not None)
        went_on = went_on or (is_note and class_ in ("extra", "arguments"))
        call = None if actual is None else (actual.kind, actual.name)
        differing = changes(recorded, actual) if class_ in ("arguments", "name", "kind") else ()
        if is_note:  # there may be as many as there are calls
            recorded, actual, differing = in_short(recorded), in_short(actual), differing[:_MOST_NOTED]
        return Divergence(
            class_=class_,
            message=message,
            advice=advice_where_it_went_on(class_, self._plan) if went_on else advice(class_, self._plan, call),
            seq=seq,
            after=self._latest if is_beside else None,
            recorded=recorded,
            actual=actual,
            arguments=differing,
            around=() if seq is None or is_note else around(self._recording, seq),
            is_note=is_note,
        )


def diverged(recording: Recording, found: Iterable[Divergence]) -> ReplayDiverged:
    """Return the error that says what was found, the first of it whole."""
    real = [divergence for divergence in found if not divergence.is_note]
    first = "\n".join(real[0].lines()) if real else "It is the same."
    return ReplayDiverged(f"The replay of run {recording.run} diverged.\n{first}", divergences=real)


def _actual(boundary: Boundary) -> ReplayedCall:
    return ReplayedCall(kind=boundary.kind, name=boundary.name, arguments=boundary.arguments, scope=boundary.scope)


def _is_renamed(upcoming: ReplayedCall, actual: ReplayedCall, likeliest: ReplayedCall | None) -> bool:
    """Say whether a call passes what comes next in the record, under another name than that has.

    Where the record has a call of its own name as well, all of what is passed must be the same.
    """
    if upcoming.kind != actual.kind or upcoming.name == actual.name:
        return False
    return is_alike(upcoming, actual, much=0.5 if likeliest is None else 1.0)
