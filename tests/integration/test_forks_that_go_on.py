"""A fork of a recorded run: what of its parent's log is served behind the cut, and what it keeps when it goes on."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from tests.service import ServiceProcess
from twiceshy import ForkSuspended, Guard, Override, Rejected, RequestRefused, replay
from twiceshy_contract.events import Delivery, Intent


class World:
    """An agent's tools and the rest of its world, and what of it really ran."""

    def __init__(self, service: ServiceProcess, run: str) -> None:
        self.service = service
        self.run = run
        self.ran: list[str] = []
        self.answer = "GB"
        self.guard = Guard(service.url, spool=None)
        name = uuid4().hex[:8]
        self.look = self.guard.tool(effect="read", name=f"look-{name}")(self._look)
        self.pay = self.guard.tool(effect="side_effect", name=f"pay-{name}")(self._pay)

    def _look(self, place: str) -> str:
        return self.note(f"look {place}")

    def _pay(self, amount: int) -> str:
        return self.note(f"pay {amount}")

    def model(self, prompt: str) -> str:
        self.note(f"model {prompt}")
        return self.answer

    def note(self, what: str) -> str:
        self.ran.append(what)
        return what

    def fork(self, name: str, **options: Any) -> dict[str, Any]:
        return {"name": f"{self.run}-{name}", "fork_of": self.run, **options}

    def answer_pause(self, fork: str, result: str, **outcome: object) -> None:
        (pause,) = self.service.ask("GET", f"/v1/runs/{fork}/pauses").body["items"]
        injected = {"answer": "inject", "outcome": outcome or {"result": result}}
        assert self.service.ask("POST", f"/v1/runs/{fork}/pauses/{pause['key']}", injected).status == 200

    def deliveries(self, run: str) -> list[tuple[str, bool]]:
        with self.guard.recording(run) as log:
            return [(event.source, event.counterfactual) for event in log.events if isinstance(event, Delivery)]

    def at(self, run: str, name: str) -> int:
        with self.guard.recording(run) as log:
            return next(event.seq for event in log.events if isinstance(event, Intent) and event.name.startswith(name))

    def looking(self, name: str = "", **options: Any) -> tuple[str, str, str, str]:
        """Ask a model; look at three more places where it says EU, then at GB; ask again, and pay."""
        with self.guard.run(name or self.run, **{"record": True, **options}) as run:
            first = run.llm(self.model, "a")
            for place in ("x", "y", "z") if first == "EU" else ():
                self.look(place)
            seen = self.look("GB")
            second = run.llm(self.model, "b")
            return first, seen, second, self.pay(100 if first == "GB" else 7)

    def whole(self, name: str = "", **options: Any) -> tuple[str, ...]:
        """Pass boundaries of every kind."""
        with self.guard.run(name or self.run, **{"record": True, **options}) as run:
            said = run.llm(self.model, "start")
            place = "GB" if said == "GB" else "EU"
            seen = self.look(place)
            charged = run.custom("charge", lambda what: self.note(f"charge {what}"), place)
            asked = run.human(f"{place}?", lambda question: self.note(f"human {question}"))
            return said, seen, charged, asked, run.child("mail", lambda to: self.note(f"mail {to}"), place)


@pytest.fixture
def world(service: ServiceProcess, run: str) -> Iterator[World]:
    made = World(service, run)
    with made.guard:
        yield made


def test_an_override_of_the_parent_is_given_once_however_the_numbers_have_moved(world: World) -> None:
    world.looking()
    guilty = world.at(world.run, "look")
    world.answer = "EU"
    fork = world.fork("f", at_event=1, overrides=[Override(seq=guilty, result="overridden")])
    with pytest.raises(ForkSuspended):
        world.looking(**fork)
    before = world.deliveries(fork["name"])
    world.answer_pause(fork["name"], "paid nothing")
    world.ran.clear()
    assert world.looking(**fork) == ("EU", "overridden", "EU", "paid nothing")
    assert world.ran == []
    assert world.deliveries(fork["name"]) == [*before, ("injected", True)]


def test_an_override_that_was_not_reached_is_given_when_the_fork_goes_on(world: World) -> None:
    def agent(name: str = "", **options: Any) -> list[str]:
        with world.guard.run(name or world.run, **{"record": True, **options}) as run:
            said = run.llm(world.model, "a")
            paid = world.pay(100 if said == "GB" else 7)
            return [paid, world.look("GB"), world.look("FR"), world.look("IE")]

    agent()
    with world.guard.recording(world.run) as log:
        looks = [event.seq for event in log.events if isinstance(event, Intent) and event.name == world.look.name]
    world.answer = "EU"
    overrides = [Override(seq=looks[0], result="first"), Override(name=world.look.name, occurrence=3, result="third")]
    fork = world.fork("f", at_event=1, overrides=overrides)
    with pytest.raises(ForkSuspended):
        agent(**fork)
    world.answer_pause(fork["name"], "paid nothing")
    world.ran.clear()
    assert agent(**fork) == ["paid nothing", "first", "look FR", "third"]
    assert agent(**fork) == ["paid nothing", "first", "look FR", "third"]
    assert world.ran == []


def test_the_same_name_with_other_terms_is_refused_by_what_differs(world: World) -> None:
    world.looking()
    guilty = world.at(world.run, "look")
    overrides = [Override(seq=guilty, result="one")]
    assert world.looking(**world.fork("f", at_event=guilty, overrides=overrides))[1] == "one"
    others = [Override(seq=guilty, result="two")]
    with pytest.raises(RequestRefused, match="`overrides` differs") as raised:
        world.looking(**world.fork("f", at_event=guilty, overrides=others))
    assert raised.value.code == "name-taken"
    with pytest.raises(RequestRefused, match="`overrides` differs"):
        world.looking(**world.fork("f", at_event=guilty))
    with pytest.raises(RequestRefused, match=f"`event` is {guilty} there, and {guilty + 1} here"):
        world.looking(**world.fork("f", at_event=guilty + 1, overrides=overrides))
    assert world.looking(**world.fork("f", at_event=guilty, overrides=overrides))[1] == "one"


def test_behind_the_cut_all_but_models_and_chance_is_served_where_the_arguments_are_the_same(world: World) -> None:
    undisturbed = world.whole()
    world.ran.clear()
    fork = world.fork("f", at_event=1)
    assert world.whole(**fork) == undisturbed
    assert world.ran == ["model start"]
    assert world.deliveries(fork["name"]) == [("live", False), *[("recorded", False)] * 4]


def test_behind_the_cut_what_is_asked_with_other_arguments_runs(world: World) -> None:
    world.whole()
    world.ran.clear()
    world.answer = "EU"
    assert world.whole(**world.fork("f", at_event=1)) == ("EU", "look EU", "charge EU", "human EU?", "mail EU")
    assert world.ran == ["model start", "look EU", "charge EU", "human EU?", "mail EU"]


def test_a_tool_that_is_named_to_run_runs_though_the_parent_has_an_answer(world: World) -> None:
    world.whole()
    world.ran.clear()
    world.whole(**world.fork("f", at_event=1, live=[world.look.name]))
    assert world.ran == ["model start", "look GB"]


def test_what_the_fork_was_served_of_its_parent_is_not_served_again_when_it_goes_on(world: World) -> None:
    def agent(name: str = "", **options: Any) -> list[str]:
        with world.guard.run(name or world.run, **{"record": True, **options}) as run:
            said = run.llm(world.model, "a")
            seen = [world.look("GB"), world.pay(100 if said == "GB" else 7)]
            return seen if said == "GB" else [*seen, world.look("GB")]

    agent()
    world.answer = "EU"
    fork = world.fork("f", at_event=1)
    with pytest.raises(ForkSuspended):
        agent(**fork)
    world.answer_pause(fork["name"], "paid nothing")
    world.ran.clear()
    assert agent(**fork) == ["look GB", "paid nothing", "look GB"]
    assert world.ran == ["look GB"]
    with world.guard.recording(fork["name"]) as log:
        assert [event.origin for event in log.events if isinstance(event, Intent)] == [None, 3, None, None]


def test_what_did_not_happen_stays_marked_in_a_replay_and_in_a_fork_of_the_fork(world: World) -> None:
    world.looking()
    guilty = world.at(world.run, "look")
    fork = world.fork("f", at_event=guilty, overrides=[Override(seq=guilty, result="overridden")])
    world.looking(**fork)
    first = world.fork("f", at_event=guilty)["name"]
    assert world.deliveries(first) == [("recorded", False), ("override", True), ("live", True), ("recorded", True)]
    with world.guard.recording(first) as log:
        again = replay(log, lambda: world.looking("again"))
        assert (again.is_same, again.is_counterfactual) == (True, True)
        marks = [event.counterfactual for event in again.events if isinstance(event, Delivery)]
        assert marks == [False, True, True, True]
        last = len(log) + 1
    world.looking(f"{world.run}-g", fork_of=first, at_event=last)
    assert world.deliveries(f"{world.run}-g") == [("recorded", False), *[("recorded", True)] * 3]


def test_an_error_that_a_person_put_in_is_marked_as_theirs(world: World) -> None:
    world.looking()
    world.answer = "EU"
    fork = world.fork("f", at_event=1)
    with pytest.raises(ForkSuspended):
        world.looking(**fork)
    world.answer_pause(fork["name"], "", error={"type": "Declined", "message": "no money"})
    with pytest.raises(Rejected, match="no money"):
        world.looking(**fork)
    with pytest.raises(Rejected, match="no money"):
        world.looking(**fork)
    assert world.deliveries(fork["name"])[-1] == ("injected", True)
