"""A recorded run goes on where its process stopped, and a fork goes on from an event of another run's log."""

from contextlib import suppress
from typing import Any
from uuid import uuid4

import pytest

from tests.service import ServiceProcess
from twiceshy import EffectRef, ForkSuspended, Guard, GuardUnavailable, Override, ReplayDiverged, Simulator, replay
from twiceshy_contract.events import Delivery, Intent


class Stopped(KeyboardInterrupt):
    """The process ends here."""


class Shop:
    """An agent, its tools, and what really ran."""

    def __init__(self, service: ServiceProcess, run: str) -> None:
        self.service = service
        self.run = run
        self.ran: list[str] = []
        self.stops_at: str | None = None
        self.answer = "GB"
        self.name = f"{uuid4().hex[:8]}"

    def open(self) -> "Shop":
        """Come as another process does: with a guard of its own."""
        self.guard = Guard(self.service.url, spool=None)
        options: dict[str, Any] = {"simulator": Simulator(result="simulated")}
        self.look = self.guard.tool(effect="read", name=f"look-{self.name}")(self._look)
        self.pay = self.guard.tool(effect="side_effect", name=f"pay-{self.name}")(self._pay)
        self.tell = self.guard.tool(effect="side_effect", name=f"tell-{self.name}", **options)(self._tell)
        return self

    def _look(self, place: str) -> list[str]:
        self._note(f"look {place}")
        return [] if "-" in place else [f"rule of {place}"]

    def _pay(self, amount: int) -> str:
        self._note(f"pay {amount}")
        return f"paid {amount}"

    def _tell(self, text: str) -> str:
        self._note(f"tell {text}")
        return "told"

    def _model(self, prompt: str) -> str:
        self._note(f"model {prompt}")
        return self.answer

    def _note(self, what: str) -> None:
        self.ran.append(what)
        if what == self.stops_at:
            raise Stopped

    def agent(self, name: str = "", **options: Any) -> tuple[str, str, str]:
        with self.guard.run(name or self.run, **{"record": True, **options}) as run:
            run.now()
            rules = self.look("GB-SCT")
            said = run.llm(self._model, f"{len(rules)} rules")
            paid = self.pay(100 if said == "GB" else 7)
            return said, paid, self.tell(f"{paid} for {said}")


@pytest.fixture
def shop(service: ServiceProcess, run: str) -> Shop:
    return Shop(service, run).open()


UNDISTURBED = ("GB", "paid 100", "told")
STEPS = ["look GB-SCT", "model 0 rules", "pay 100", "tell paid 100 for GB"]


@pytest.mark.parametrize("stop", ["look GB-SCT", "model 0 rules"])
def test_a_stopped_run_goes_on_with_what_it_had(shop: Shop, stop: str) -> None:
    shop.stops_at = stop
    with pytest.raises(Stopped):
        shop.agent()
    shop.guard.close()
    shop.stops_at = None
    assert shop.open().agent(resume=True) == UNDISTURBED
    at = STEPS.index(stop)
    assert shop.ran == [*STEPS[: at + 1], *STEPS[at:]]
    shop.guard.close()
    with shop.guard.recording(shop.run) as log:
        intents = [event for event in log.events if isinstance(event, Intent)]
        deliveries = {event.intent for event in log.events if isinstance(event, Delivery)}
        assert [event.name.partition("-")[0] for event in intents] == ["now", "look", "Shop._model", "pay", "tell"]
        assert {event.seq for event in intents} == deliveries
        assert replay(log, lambda: shop.agent(log.run)).value == UNDISTURBED


def test_a_finished_agent_that_is_resumed_does_nothing_again(shop: Shop) -> None:
    assert shop.agent() == UNDISTURBED
    shop.guard.close()
    assert shop.open().agent(resume=True) == UNDISTURBED
    assert shop.ran == STEPS


def test_other_code_than_the_recorded_is_not_resumed(shop: Shop) -> None:
    shop.stops_at = "model 0 rules"
    with pytest.raises(Stopped):
        shop.agent()
    shop.guard.close()
    shop.open()
    with shop.guard.run(shop.run, resume=True) as run:
        run.now()
        with pytest.raises(ReplayDiverged, match="called with other arguments"):
            shop.look("GB")
    assert "pay 100" not in shop.ran


def test_an_error_that_passes_is_no_outcome_where_the_code_ended_by_it(shop: Shop) -> None:
    state = {"is_away": True}

    def ask() -> str:
        if state["is_away"]:
            raise GuardUnavailable("nobody answers", effect=EffectRef(tool="ask"))
        return "yes"

    def agent() -> str:
        with shop.guard.run(shop.run, record=True, resume=True) as run:
            return run.custom("ask", ask)

    with pytest.raises(GuardUnavailable):
        agent()
    state["is_away"] = False
    assert agent() == "yes"
    with shop.guard.recording(shop.run) as log:
        assert [type(event) for event in log.events] == [Intent, Delivery]


def test_an_error_that_passes_is_an_outcome_where_the_code_went_on(shop: Shop) -> None:
    def ask() -> str:
        raise GuardUnavailable("nobody answers", effect=EffectRef(tool="ask"))

    def agent() -> str:
        with shop.guard.run(shop.run, record=True, resume=True) as run:
            with suppress(GuardUnavailable):
                run.custom("ask", ask)
            return run.custom("other", str.upper, "went on")

    assert agent() == "WENT ON"
    with shop.guard.recording(shop.run) as log:
        assert [event.outcome for event in log.events if isinstance(event, Delivery)] == ["error", "result"]


class TestForks:
    """Forks of a recorded run at one of its events."""

    def cut_at(self, shop: Shop, name: str) -> int:
        with shop.guard.recording(shop.run) as log:
            return next(event.seq for event in log.events if isinstance(event, Intent) and event.name.startswith(name))

    def test_a_fork_serves_what_was_before_the_cut_and_asks_models_again(self, shop: Shop) -> None:
        assert shop.agent() == UNDISTURBED
        cut = self.cut_at(shop, "Shop._model")
        shop.ran.clear()
        assert shop.agent(f"{shop.run}-fork", fork_of=shop.run, at_event=cut) == UNDISTURBED
        assert shop.ran == ["model 0 rules"]
        shop.guard.close()
        with shop.guard.recording(f"{shop.run}-fork") as log:
            sources = [event.source for event in log.events if isinstance(event, Delivery)]
            assert sources == ["recorded", "recorded", "live", "recorded", "recorded"]

    def test_a_corrected_result_is_injected_at_the_guilty_event(self, shop: Shop) -> None:
        shop.agent()
        cut = self.cut_at(shop, "look")
        shop.ran.clear()
        shop.answer = "EU"
        corrected = [Override(seq=cut, result=["rule of Scotland"])]
        with pytest.raises(ForkSuspended):
            shop.agent(f"{shop.run}-fork", fork_of=shop.run, at_event=cut, overrides=corrected)
        assert shop.ran == ["model 1 rules"]
        shop.guard.close()
        with shop.guard.recording(f"{shop.run}-fork") as log:
            deliveries = [event for event in log.events if isinstance(event, Delivery)]
            assert [(event.source, event.counterfactual) for event in deliveries] == [
                ("recorded", False),
                ("override", True),
                ("live", True),
            ]

    def test_a_suspended_fork_goes_on_once_a_person_has_answered(self, shop: Shop) -> None:
        shop.agent()
        cut = self.cut_at(shop, "Shop._model")
        fork = f"{shop.run}-fork"
        shop.ran.clear()
        shop.answer = "EU"
        with pytest.raises(ForkSuspended):
            shop.agent(fork, fork_of=shop.run, at_event=cut)
        shop.guard.close()
        (pause,) = shop.service.ask("GET", f"/v1/runs/{fork}/pauses").body["items"]
        injected = {"answer": "inject", "outcome": {"result": "paid nothing"}}
        assert shop.service.ask("POST", f"/v1/runs/{fork}/pauses/{pause['key']}", injected).status == 200
        shop.open()
        assert shop.agent(fork, fork_of=shop.run, at_event=cut) == ("EU", "paid nothing", "simulated")
        assert shop.ran == ["model 0 rules"]
        shop.guard.close()
        with shop.guard.recording(fork) as log:
            deliveries = [event for event in log.events if isinstance(event, Delivery)]
            assert [event.source for event in deliveries] == ["recorded", "recorded", "live", "injected", "simulator"]
            assert [event.counterfactual for event in deliveries] == [False, False, False, True, True]

    def test_code_that_is_another_before_the_cut_is_stopped(self, shop: Shop) -> None:
        shop.agent()
        cut = self.cut_at(shop, "pay")
        shop.ran.clear()
        fork: dict[str, Any] = {"fork_of": shop.run, "at_event": cut}
        with shop.guard.run(f"{shop.run}-fork", **fork) as run:
            run.now()
            with pytest.raises(ReplayDiverged):
                shop.look("FR")
        assert shop.ran == []


def test_a_run_whose_code_acted_on_an_open_stream_says_so_when_it_cannot_be_resumed(
    service: ServiceProcess, run: str
) -> None:
    drawn = iter(range(100))

    def model(*, model: str) -> Any:
        for _ in range(3):
            yield f"piece {next(drawn)}"

    def agent(guard: Guard, *, is_stopped: bool) -> None:
        @guard.tool(name="act")
        def act(what: str) -> str:
            return what

        with guard.run(run, record=True, resume=True) as here:
            for piece in here.llm(model, model="m-1"):
                act(piece)
                if is_stopped:
                    raise Stopped

    with Guard(service.url, spool=None) as guard, pytest.raises(Stopped):
        agent(guard, is_stopped=True)
    with Guard(service.url, spool=None) as guard, pytest.raises(ReplayDiverged) as refused:
        agent(guard, is_stopped=False)
    assert "m-1 (event 1) had not ended when the run was stopped" in str(refused.value)
    assert "Read a stream to its end, or close() it, before you act on what it says." in str(refused.value)
