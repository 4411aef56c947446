"""The hypothesis state machine: what happens to a few effects, on the services and in the oracle at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, assert_never
from uuid import uuid4

from hypothesis import seed
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.acceptance.machine.events import (
    Again,
    Change,
    Event,
    Incident,
    Meanwhile,
    Pass,
    Reconsider,
    Resend,
    Say,
    Settle,
    Start,
    Who,
    events,
    starts,
)
from tests.acceptance.machine.example import Example, Held, Terms, World
from tests.acceptance.machine.intents import Call, Record
from tests.acceptance.machine.oracle import State
from tests.acceptance.machine.verbs import UNTOLD

MANY_EFFECTS: Final = 4
RESULTS: Final = ({"id": 1}, {"id": 2}, None)


class EffectMachine(RuleBasedStateMachine):
    """Everything that can happen to effects.

    One rule draws the event: hypothesis would else switch whole rules off for an example, and a life needs them all.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self.example = Example(world)
        self._is_broken = False

    @initialize(first=st.lists(starts, min_size=1, max_size=2))
    def start(self, first: list[Start]) -> None:
        """An agent begins."""
        for event in first:
            self.happens(event)

    @rule(event=events)
    def happens(self, event: Event) -> None:
        """Something happens; what the services answer and what the oracle says must agree."""
        with self.telling() as example:
            match event:
                case Start():
                    self._start(event)
                case Again():
                    self._again(event)
                case Resend():
                    record = self._record(event.which)
                    token = self._held(record, event.who, is_report=False).token
                    example.begin(event.at, record.call, token, Terms(lease=event.lease))
                case Say():
                    self._say(event)
                case Settle():
                    self._settle(event)
                case Reconsider():
                    example.reconsider(event.at, self._waiting(event.which), event.verb)
                case Pass():
                    example.pass_time(event.seconds)
                case Meanwhile():
                    self._meanwhile(event.at, self._record(event.which), event.incident)
                case _:
                    assert_never(event)

    def teardown(self) -> None:
        """At the end every effect is asked for once more, read and listed."""
        if self._is_broken:
            return
        with self.telling() as example:
            example.close()

    @contextmanager
    def telling(self) -> Iterator[Example]:
        """Add to a failure all that was said before it."""
        try:
            yield self.example
        except AssertionError as error:
            self._is_broken = True
            error.add_note(self.example.told)
            raise

    def _start(self, event: Start) -> None:
        """Begin any call, while there are few effects, so that each of them has a life.

        A tool without roles is named by its arguments more often than others: only so it has siblings.
        """
        example = self.example
        if len(example.intents.records) < MANY_EFFECTS:
            tool = example.tool(event.tool)
            has_roles = example.intents.tools[tool].has_roles
            rule = "once" if event.rule == "business_key" and not has_roles else event.rule
            run = 0 if event.run is None and rule != "business_key" else event.run
            call = Call(
                tool=tool,
                to=event.to,
                note=event.note,
                run=None if run is None else example.run(run),
                rule=rule,
                occurrence=event.occurrence,
            )
            example.begin(event.at, call, str(uuid4()), Terms(lease=event.lease))

    def _again(self, event: Again) -> None:
        record = self._known(event.which) if event.delivers else self._record(event.which)
        call = self._changed(record.call, event.change)
        if event.is_given_up:
            self.example.release(event.at, call, str(uuid4()))
        else:
            terms = Terms(lease=event.lease, reopen=event.reopen, delivers=event.delivers)
            self.example.begin(event.at, call, str(uuid4()), terms)

    def _changed(self, call: Call, change: Change) -> Call:
        other = {"a": "b", "b": "a", "x": "y", "y": "x"}
        match change:
            case "to":
                return replace(call, to=other[call.to])
            case "note":
                return replace(call, note=other[call.note])
            case "distinct":
                return replace(call, note=other[call.note], is_distinct=True)
            case "run":
                return replace(call, run=self.example.run(1))
            case "tool":
                return replace(call, tool=self.example.tool(0))
            case "nothing":
                return call

    def _say(self, event: Say) -> None:
        record = self._record(event.which)
        held = self._held(record, event.who, event.off, is_report=event.saying != "release")
        match event.saying:
            case "commit":
                self.example.commit(event.at, record, held, RESULTS[event.number])
            case "renew":
                self.example.renew(event.at, record, held, (25, 45, 45)[event.number])
            case "release":
                self.example.release(event.at, record.call, held.token)
            case "not_applied" | "rejected" | "unknown":
                self.example.fail(event.at, record, held, event.saying, (None, 0, 35)[event.number])

    def _settle(self, event: Settle) -> None:
        """Settle an effect, most often one that an operator would look at."""
        record = self._ranked(event.which, ["in_doubt", "pending", "succeeded", "failed", "executing"])
        has_result = event.settlement == "applied" and event.result < len(RESULTS) - 1
        given = RESULTS[event.result] if has_result else UNTOLD
        fence = max(record.effect.fence + event.off, 0)
        self.example.resolve(event.at, record, fence, event.settlement, given, event.as_of)

    def _meanwhile(self, at: int, record: Record, incident: Incident) -> None:
        example = self.example
        match incident:
            case "look":
                example.look(at, record, is_remembered=True)
            case "list":
                example.list(at, example.run(0))
            case "finish" | "finish the other":
                example.finish(at, example.run(0 if incident == "finish" else 1))
            case "raise":
                example.declare(record.call.tool, "side_effect", is_code=True)
            case "lower" | "lower by code":
                example.declare(record.call.tool, "idempotent", is_code=incident != "lower")

    def _waiting(self, which: int) -> Record:
        """Return one of the effects, most often one that an operator would end or open again."""
        return self._ranked(which, ["pending", "in_doubt", "failed", "executing", "succeeded"])

    def _known(self, which: int) -> Record:
        """Return one of the effects, most often one of which an agent knows the end."""
        return self._ranked(which, ["succeeded", "failed", "pending", "in_doubt", "executing"])

    def _ranked(self, which: int, states: list[State]) -> Record:
        records = sorted(self.example.touched(), key=lambda record: states.index(record.effect.state))
        return records[which % len(records)]

    def _record(self, which: int) -> Record:
        """Return one of the effects, most often one that is not over."""
        records = self.example.touched()
        return records[which % len(records)]

    def _held(self, record: Record, who: Who, off: int = 0, *, is_report: bool = True) -> Held:
        """Return who speaks, with the right fence or one beside it."""
        every = [attempt for attempt in record.effect.attempts.values() if attempt.fence or not is_report]
        granted = sorted(every, key=lambda attempt: -attempt.fence)
        if who == "stranger" or not granted:
            return Held(token=str(uuid4()), fence=max(record.effect.fence + off, 0))
        attempt = granted[0 if who == "latest" else len(granted) // 2]
        return Held(token=attempt.token, fence=max(attempt.fence + off, 0))


def machine_of(world: World, number: int | None) -> type[EffectMachine]:
    """Return the machine of one world, which hypothesis may make as often as it likes.

    With a number it always draws the same examples, with None others each time.
    """

    class WorldMachine(EffectMachine):
        def __init__(self) -> None:
            super().__init__(world)

    return WorldMachine if number is None else seed(number)(WorldMachine)
