"""Several agents and one world: what one has done, another neither repeats nor takes for its own unless it may."""

import time
from collections.abc import Callable, Iterator

import pytest

from tests.service import ServiceProcess
from twiceshy import ClaimedByAnother, Guard, LoopLimitReached, Rejected

StartAgent = Callable[[], Guard]


@pytest.fixture
def agent(service: ServiceProcess) -> Iterator[StartAgent]:
    """Start agents: each has a guard of its own, as a process of its own would."""
    guards: list[Guard] = []

    def start() -> Guard:
        guards.append(Guard(service.url, spool=None))
        return guards[-1]

    yield start
    for guard in guards:
        guard.close()


def test_two_agents_that_act_on_one_event_reply_once_and_the_second_hears_who_did(agent: StartAgent, run: str) -> None:
    world: list[str] = []

    def reply_of(guard: Guard, name: str) -> Callable[[str], str]:
        @guard.tool(name=f"reply-{run}", scope="tenant", identity=["/event"])
        def reply(event: str) -> str:
            world.append(name)
            return f"{name} replied to {event}"

        return reply

    first, second = agent(), agent()
    with first.run(f"{run}-a"):
        assert reply_of(first, "a")("mail-7") == "a replied to mail-7"
    with second.run(f"{run}-b"), pytest.raises(ClaimedByAnother) as caught:
        reply_of(second, "b")("mail-7")
    claimed = caught.value
    assert (claimed.result, claimed.run, claimed.step) == ("a replied to mail-7", f"{run}-a", 1)
    assert claimed.key is not None
    assert world == ["a"]


def test_an_agent_whose_tool_shares_takes_the_others_answer_and_can_tell_whose_it_is(
    agent: StartAgent, run: str
) -> None:
    world: list[int] = []
    for name in ("a", "b"):
        guard = agent()

        @guard.tool(name=f"open-{run}", scope="tenant", share=True)
        def open_ticket(number: int) -> str:
            world.append(number)
            return f"ticket {number}"

        with guard.run(f"{run}-{name}"):
            answer = open_ticket.answer(7)
        assert (answer.value, answer.run, answer.is_replay) == ("ticket 7", f"{run}-a", name == "b")
        assert (f"of run {run}-a" in answer.said) is (name == "b")
    assert world == [7]


def test_what_a_person_says_of_sharing_wins_over_the_code(agent: StartAgent, service: ServiceProcess, run: str) -> None:
    tool = f"open-{run}"
    declaration = {"class": "side_effect", "key": {"rule": "once", "scope": "tenant"}, "share": True}
    assert service.ask("PUT", f"/v1/tools/{tool}", declaration).status == 200
    world: list[int] = []
    for name in ("a", "b"):
        guard = agent()

        @guard.tool(name=tool, scope="tenant", share=False)
        def open_ticket(number: int) -> int:
            world.append(number)
            return number

        with guard.run(f"{run}-{name}"):
            assert open_ticket(7) == 7
    assert world == [7]


def test_agents_that_name_one_business_key_share_what_it_names_unless_the_tool_says_no(
    agent: StartAgent, run: str
) -> None:
    world: list[str] = []
    first, second = agent(), agent()

    def charge_of(guard: Guard, *, share: bool | None) -> Callable[..., str]:
        @guard.tool(name=f"charge-{run}", share=share)
        def charge(cents: int) -> str:
            world.append("charged")
            return f"receipt for {cents}"

        return charge.with_key(business_key=f"{run}-invoice-9")

    with first.run(f"{run}-a"):
        charge_of(first, share=None)(500)
    with second.run(f"{run}-b"):
        assert charge_of(second, share=None)(500) == "receipt for 500"
    third = agent()
    with third.run(f"{run}-c"), pytest.raises(ClaimedByAnother):
        charge_of(third, share=False)(500)
    assert world == ["charged"]


def test_what_one_agent_was_refused_for_good_the_other_is_refused_too(agent: StartAgent, run: str) -> None:
    asked: list[str] = []
    for name in ("a", "b"):
        guard = agent()

        @guard.tool(name=f"charge-{run}", scope="tenant")
        def charge(card: str) -> str:
            asked.append(card)
            raise Rejected("the card is closed", type="CardClosed")

        with guard.run(f"{run}-{name}"), pytest.raises(Rejected, match="the card is closed") as caught:
            charge("4711")
        assert caught.value.type == "CardClosed"
    assert asked == ["4711"]


def test_a_window_slides_from_the_end_and_after_it_the_intent_is_a_new_one(agent: StartAgent, run: str) -> None:
    world: list[str] = []
    guard = agent()

    @guard.tool(name=f"remind-{run}", scope="tenant", window_seconds=1, share=True)
    def remind(who: str) -> int:
        world.append(who)
        return len(world)

    with guard.run(f"{run}-a"):
        assert remind("bob") == 1
        began = time.monotonic()
        assert remind("bob") == 1
    with guard.run(f"{run}-b"):
        while remind("bob") == 1:
            assert time.monotonic() < began + 20, "the window never ended"
    assert time.monotonic() > began + 0.8
    assert world == ["bob", "bob"]


def test_a_run_that_asks_for_the_same_thing_over_and_over_is_stopped(agent: StartAgent, run: str) -> None:
    world: list[str] = []
    guard = agent()

    @guard.tool(name=f"search-{run}", loop_limit=3)
    def order(what: str) -> str:
        world.append(what)
        return what

    with guard.run(run):
        for _ in range(3):
            assert order("tea") == "tea"
        with pytest.raises(LoopLimitReached) as caught:
            order("tea")
        assert order("milk") == "milk"
    assert "search-" in str(caught.value)
    assert world == ["tea", "milk"]
