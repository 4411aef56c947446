"""What a result means for a message and its destination. All expectations are written by hand."""

import random

import pytest

from guard.core.effects import Duration
from guard.ports.relay import Again, Done, Stands
from outbox_relay.delivery import PAUSES, Judged, Tried, judge, pause, printable
from outbox_relay.sinks.base import Delivered, Permanent, Result, Retryable, Unknown
from twiceshy_contract.destinations import Destination, LogDestination, WebhookDestination

BLOCKING = LogDestination(attempts=3)
SKIPPING = WebhookDestination(url="https://example.com", attempts=3)


def tried(number: int = 1, *, in_lane: bool = False, repeatable: bool = False) -> Tried:
    return Tried(id=7, number=number, in_lane=in_lane, repeatable=repeatable)


def judged(result: Result, message: Tried, settings: Destination = BLOCKING, jitter: float = 0.5) -> Judged:
    return judge(result, message, settings, jitter)


def test_what_was_delivered_is_over_with_its_receipt() -> None:
    assert judged(Delivered(receipt="201"), tried()) == Judged(
        settlement=Done(id=7, over="delivered", receipt="201"), outcome="delivered", good=1
    )


def test_what_the_receiver_had_already_is_delivered_and_counted_as_a_duplicate() -> None:
    assert judged(Delivered(receipt="12", is_duplicate=True), tried()) == Judged(
        settlement=Done(id=7, over="delivered", receipt="12"), outcome="duplicate", good=1
    )


def test_what_was_refused_for_now_is_tried_again_after_a_pause_that_chance_shortens() -> None:
    assert judged(Retryable(why="503"), tried()) == Judged(
        settlement=Again(id=7, delay=Duration(2_500_000), note="503", tried="retryable"),
        outcome="retryable",
        bad=1,
        note="503",
    )


def test_a_try_too_many_leaves_the_message_dead_with_the_last_reason() -> None:
    third = judged(Retryable(why="503"), tried(3, in_lane=True))
    assert third.settlement == Stands(
        id=7, state="dead", note="tried 3 times, last: 503", tried="retryable", blocks=True
    )


def test_a_destination_that_one_try_is_enough_for_says_so_in_words() -> None:
    once = judged(Retryable(why="503"), tried(), LogDestination(attempts=1))
    assert once.settlement == Stands(id=7, state="dead", note="tried once, last: 503", tried="retryable")


def test_nobody_there_is_no_bad_answer_but_none_at_all() -> None:
    nobody = judged(Retryable(why="refused", is_unreachable=True), tried())
    assert (nobody.good, nobody.bad, nobody.unreachable) == (0, 0, 1)


def test_a_receiver_that_takes_no_more_for_now_holds_its_destination_and_is_not_ill() -> None:
    throttled = judged(Retryable(why="429", retry_after=100, is_throttled=True), tried())
    assert (throttled.good, throttled.bad, throttled.unreachable) == (0, 0, 0)
    assert throttled.held_for == Duration(112_500_000)
    assert throttled.settlement == Again(id=7, delay=Duration(112_500_000), note="429", tried="retryable")


def test_a_receiver_that_takes_no_more_and_names_no_time_is_held_for_some_seconds() -> None:
    assert judged(Retryable(why="429", is_throttled=True), tried(), jitter=0).held_for == Duration(5_000_000)


@pytest.mark.parametrize(
    ("settings", "in_lane", "blocks"),
    [(BLOCKING, True, True), (BLOCKING, False, False), (SKIPPING, True, False), (SKIPPING, False, False)],
)
def test_what_will_never_be_taken_is_dead_at_once_and_blocks_its_lane_where_that_is_the_policy(
    settings: Destination,
    in_lane: bool,  # noqa: FBT001
    blocks: bool,  # noqa: FBT001
) -> None:
    assert judged(Permanent(why="404"), tried(in_lane=in_lane), settings) == Judged(
        settlement=Stands(id=7, state="dead", note="404", tried="permanent", blocks=blocks),
        outcome="permanent",
        good=1,
        note="404",
    )


def test_a_destination_that_is_gone_is_told_to_be() -> None:
    assert judged(Permanent(why="410", is_gone=True), tried()).is_gone


def test_what_may_have_arrived_is_sent_again_where_the_receiver_can_tell() -> None:
    assert judged(Unknown(why="reset"), tried(2, repeatable=True)) == Judged(
        settlement=Again(id=7, delay=Duration(15_000_000), note="reset", tried="unknown"),
        outcome="unknown",
        bad=1,
        note="reset",
        is_repeated=True,
    )


def test_what_may_have_arrived_waits_for_a_person_where_the_receiver_cannot_tell() -> None:
    assert judged(Unknown(why="reset"), tried(in_lane=True)) == Judged(
        settlement=Stands(id=7, state="unknown", note="reset", tried="unknown", blocks=True),
        outcome="unknown",
        bad=1,
        note="reset",
    )


def test_what_may_have_arrived_and_was_tried_too_often_is_not_called_dead() -> None:
    assert judged(Unknown(why="reset"), tried(3, repeatable=True)).settlement == Stands(
        id=7, state="unknown", note="tried 3 times, last: reset", tried="unknown"
    )


def test_pauses_grow_to_a_day_and_stay_there() -> None:
    almost = 1 - 2**-53
    assert [round(pause(number, almost)) for number in range(1, 10)] == [
        5, 30, 120, 600, 3600, 21_600, 86_400, 86_400, 86_400,
    ]  # fmt: skip
    assert PAUSES == (5, 30, 120, 600, 3600, 21_600, 86_400)


def test_a_thousand_messages_that_fail_in_one_tick_come_back_over_the_whole_pause() -> None:
    chance = random.Random(6)  # noqa: S311
    pauses = [pause(3, chance.random()) for _ in range(1000)]
    by_tenth = [sum(1 for each in pauses if tenth * 12 <= each < tenth * 12 + 12) for tenth in range(10)]
    assert sum(by_tenth) == 1000
    assert min(by_tenth) > 60


def test_no_two_of_a_thousand_that_are_told_one_time_come_at_that_time_together() -> None:
    chance = random.Random(6)  # noqa: S311
    pauses = [pause(1, chance.random(), retry_after=600) for _ in range(1000)]
    assert min(pauses) >= 600
    assert max(pauses) <= 750
    assert len({round(each, 1) for each in pauses}) > 500


@pytest.mark.parametrize(
    ("retry_after", "jitter", "expected"),
    [
        (0, 0.0, 0.0),
        (0, 0.5, 2.5),
        (1, 0.5, 3.5),
        (-3, 0.0, 0.0),
        (600, 0.0, 600.0),
        (600, 0.5, 675.0),
        (10**9, 0.0, 69_120.0),
        (10**9, 0.999999999, 86_400.0),
    ],
)
def test_the_wish_of_a_receiver_is_stretched_and_never_longer_than_a_day(
    retry_after: float, jitter: float, expected: float
) -> None:
    assert pause(1, jitter, retry_after) == pytest.approx(expected, rel=1e-6)


def test_a_wish_shorter_than_the_own_pause_does_not_shorten_it() -> None:
    assert pause(5, 0.5, retry_after=1) == 1800


def test_a_reason_is_kept_printable_and_short() -> None:
    assert printable("a\x00b") == "a�b"
    assert printable("\ud800") == "?"
    assert printable("x" * 1001) == "x" * 999 + "…"
