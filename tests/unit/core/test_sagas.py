"""What a saga that failed needs next."""

from uuid import UUID

import msgspec
import pytest
from msgspec.structs import replace

from guard.core.compensations import compensation_arguments, is_reserved, step_name
from guard.core.effects import Effect, Instant, Intent, Key, Life, RunId, TenantId
from guard.core.keys import downstream_key
from guard.core.sagas import (
    PATIENCE,
    Cancel,
    Done,
    DoneStep,
    Due,
    Mark,
    Move,
    Saga,
    SagaStep,
    Standing,
    Stuck,
    Wait,
    plan,
)
from tests.unit.core.lives import IDEMPOTENT, SIDE_EFFECT, WINDOWED, A, B, at, attempt, life
from twiceshy_contract.names import PublicState
from twiceshy_contract.policies import Compensation
from twiceshy_contract.refusals import Refusal

SAGA = Saga(id=UUID(int=7), tenant=TenantId(1), name="trip-7", run="trip-7", state="compensating", started_at=at(1))
RELEASE = Compensation(tool="release", arguments={"hold": "${result.id}"})


def key(number: int) -> Key:
    return Key(bytes([number]) * 32)


def effect(number: int, has: Life, outcome: object = None, *, run: str = "trip-7", count: int = 1) -> Effect:
    intent = Intent(
        key=key(number),
        tenant=TenantId(1),
        run_id=RunId(UUID(int=1)),
        run=run,
        step=count,
        tool="hold",
        tool_version=1,
        rule="once",
        caller_step=None,
        business_key=None,
        occurrence=1,
        generation=1,
        identity_digest=b"",
        arguments_digest=b"",
        arguments=b'{"room":"12"}',
        worker=None,
        began_at=at(1),
    )
    return Effect(version=1, intent=intent, life=has, outcome=None if outcome is None else msgspec.json.encode(outcome))


def done(number: int, ended: float = 10, result: object = None, *, run: str = "trip-7", count: int = 1) -> Effect:
    ended_life = replace(life("succeeded", attempt(A, 1, 40, "succeeded", ended)), ended_at=at(ended))
    outcome = {"result": {"id": f"h-{number}"} if result is None else result}
    return effect(number, ended_life, outcome, run=run, count=count)


def failed(number: int, outcome: object = None) -> Effect:
    return effect(number, replace(life("failed", attempt(A, 1, 40, "rejected", 10)), ended_at=at(10)), outcome)


def step(number: int, **more: object) -> SagaStep:
    plain = SagaStep(key=key(number), number=number, tool="hold", enlisted_at=at(1), compensation=RELEASE)
    return replace(plain, **more)


def move(*standings: Standing, now: float = 20) -> Move:
    return plan(SAGA, standings, at(now)).move


def marks(*standings: Standing) -> list[tuple[int, str, str | None]]:
    return [(mark.key[0], mark.state, mark.note) for mark in plan(SAGA, standings, at(20)).marks]


def test_what_was_done_last_is_taken_back_first_with_what_the_record_says() -> None:
    first = Standing(step=step(1), effect=done(1, ended=12))
    last = Standing(step=step(2), effect=done(2, ended=15))
    third = Standing(step=step(3), effect=done(3, ended=14))
    assert move(first, last, third) == Due(purpose="compensate", standing=last, arguments={"hold": "h-2"})
    taken_back = replace(last, compensation=done(9))
    assert marks(first, taken_back, third) == [
        (1, "enlisted", None), (2, "compensated", None), (3, "enlisted", None),
    ]  # fmt: skip
    due = move(first, taken_back, third)
    assert isinstance(due, Due)
    assert due.key == key(3)


def test_of_two_that_ended_at_one_moment_the_later_step_is_taken_back_first() -> None:
    early = Standing(step=step(2), effect=done(2, count=4))
    late = Standing(step=step(1), effect=done(1, count=5))
    assert _key(move(early, late)) == key(1)
    same = Standing(step=step(3), effect=done(3, count=5))
    assert _key(move(early, late, same)) == key(3)


def test_a_saga_of_which_nothing_is_left_is_done() -> None:
    assert plan(SAGA, [], at(20)).move == Done()
    skipped = Standing(step=step(1, state="skipped"), effect=done(1))
    assert plan(SAGA, [skipped], at(20)).move == Done()
    assert marks(skipped) == []


def test_what_was_never_begun_refused_or_never_of_this_saga_is_not_taken_back() -> None:
    standings = (
        Standing(step=step(1)),
        Standing(step=step(2), effect=failed(2)),
        Standing(step=step(3), effect=done(3, run="another")),
        Standing(step=step(4), effect=done(4, ended=0.5)),
        Standing(step=step(5, compensation=None), effect=done(5)),
    )
    assert marks(*standings) == [
        (1, "passed_over", "it was never begun"),
        (2, "skipped", "it was not done"),
        (3, "skipped", "run another did it, not this saga"),
        (4, "skipped", "it was done before this saga began"),
        (5, "uncompensated", "its tool names no compensation"),
    ]
    assert move(*standings) == Done()


def test_of_a_step_that_was_done_it_is_kept_once_when_it_ended() -> None:
    standing = Standing(step=step(1), effect=done(1, ended=12, count=4))
    known = DoneStep(at(12), 4)
    expected = Mark(key=key(1), seen="enlisted", state="enlisted", note=None, done=known)
    assert plan(SAGA, [standing], at(20)).marks == (expected,)
    assert marks(replace(standing, step=step(1, done=known))) == []


def test_an_end_that_nobody_wrote_down_counts_as_within_the_saga() -> None:
    without = done(1)
    without = replace(without, life=replace(without.life, ended_at=None))
    assert marks(Standing(step=step(1), effect=without)) == [(1, "enlisted", None)]


def test_late_proof_enlists_what_was_passed_over_and_takes_it_back() -> None:
    late = Standing(step=step(1, state="passed_over"), effect=done(1))
    planned = plan(SAGA, [late], at(20))
    said = "proof came late that it was done"
    assert planned.marks == (Mark(key=key(1), seen="passed_over", state="enlisted", note=said),)
    assert _key(planned.move) == key(1)
    assert move(Standing(step=step(1, state="passed_over"))) == Done()


def test_a_step_that_waits_for_another_try_is_cancelled_before_anything_else() -> None:
    waits = Standing(step=step(2), effect=effect(2, life("pending", attempt(A, 1, 40, "not_applied", 9))))
    doubtful = Standing(step=step(3), effect=effect(3, life("in_doubt", attempt(A, 1, 40, "unknown", 9))))
    assert move(Standing(step=step(1), effect=done(1)), doubtful, waits) == Cancel(key(2))


@pytest.mark.parametrize("state", ["in_doubt", "pending"])
def test_doubt_about_a_step_is_settled_before_anything_is_taken_back(state: PublicState) -> None:
    has = life(state, attempt(A, 1, 40, "unknown", 10))
    doubtful = Standing(step=step(2), effect=effect(2, has), rules=SIDE_EFFECT)
    done_before = Standing(step=step(1), effect=done(1))
    why = f"the step may or may not have happened (effect {key(2).hex()})"
    until = Instant(at(20) + PATIENCE)
    assert move(done_before, doubtful, now=30) == Wait(key(2), why, until)
    assert move(done_before, doubtful, now=until / 1_000_000) == Stuck(key(2), why)


def test_doubt_that_a_rerun_settles_harmlessly_is_settled_so() -> None:
    has = life("in_doubt", attempt(A, 1, 40, "unknown", 10))
    doubtful = Standing(step=step(1), effect=effect(1, has), rules=WINDOWED)
    assert move(doubtful, now=20) == Due(purpose="settle", standing=doubtful, arguments={"room": "12"})
    assert isinstance(move(doubtful, now=90), Wait)  # the provider's window does not outlast a lease any more
    edited = replace(doubtful, effect=replace(effect(1, has), edited=b'{"room":"13"}'))
    assert move(edited, now=20) == Due(purpose="settle", standing=edited, arguments={"room": "13"})


def test_a_silent_idempotent_step_is_run_again_until_its_tries_are_used_up() -> None:
    silent = attempt(A, 1, 40, "unknown", 10)
    waits = replace(life("pending", silent), retry_at=at(25))
    standing = Standing(step=step(1), effect=effect(1, waits), rules=IDEMPOTENT)
    assert move(standing, now=20) == Wait(key(1), "the step is tried again later", at(25))
    assert isinstance(move(standing, now=25), Due)
    often = Standing(step=step(1), effect=effect(1, replace(waits, tries=5)), rules=IDEMPOTENT)
    assert move(often) == Stuck(key(1), "the step was tried 5 times, and no try said that it was done")


def test_an_executing_step_is_waited_for_and_what_can_be_done_comes_first() -> None:
    executing = Standing(step=step(1), effect=effect(1, life("executing", attempt(A, 1, 40))))
    assert move(executing) == Wait(key(1), "the step is being executed", at(40))
    longer = Standing(step=step(2), effect=effect(2, life("executing", attempt(A, 1, 50))))
    assert _key(move(longer, executing)) == key(1)
    lost = Standing(step=step(3), effect=effect(3, life("in_doubt", attempt(A, 1, -200))))
    assert isinstance(move(executing, lost), Stuck)
    again = Standing(step=step(4), effect=effect(4, life("in_doubt", attempt(A, 1, 9))), rules=WINDOWED)
    assert _key(move(executing, lost, again)) == key(4)


@pytest.mark.parametrize(
    ("has", "expected"),
    [
        (life("executing", attempt(B, 1, 40)), Wait(key(1), "its compensation is being executed", at(40))),
        (replace(life("pending", attempt(B, 1, 40, "not_applied", 9)), retry_at=at(30)),
         Wait(key(1), "its compensation is tried again later", at(30))),
        (life("pending", attempt(B, 1, 40, "not_applied", 9), tries=5),
         Stuck(key(1), "its compensation was tried 5 times, and no try said that it was done")),
        (life("in_doubt", attempt(B, 1, 40, "unknown", 10)),
         Wait(key(1), f"its compensation may or may not have happened (effect {key(9).hex()})",
              Instant(at(20) + PATIENCE))),
    ],
)  # fmt: skip
def test_a_compensation_that_is_begun_stands_in_the_way_until_it_has_succeeded(has: Life, expected: Move) -> None:
    assert move(Standing(step=step(1), effect=done(1), compensation=effect(9, has))) == expected


def test_a_compensation_that_may_be_tried_again_is_due() -> None:
    open_ = life("pending", attempt(B, 1, 40, "not_applied", 9))
    standing = Standing(step=step(1), effect=done(1), compensation=effect(9, open_))
    assert isinstance(move(standing), Due)
    doubtful = effect(9, life("in_doubt", attempt(B, 1, 40, "unknown", 10)))
    rerun = Standing(step=step(1), effect=done(1), compensation=doubtful, compensation_rules=WINDOWED)
    assert isinstance(move(rerun), Due)


def test_a_compensation_that_was_refused_needs_a_person() -> None:
    refused = failed(9, {"error": {"type": "Closed", "message": "the account is closed"}})
    standing = Standing(step=step(1), effect=done(1), compensation=refused)
    assert move(standing) == Stuck(key(1), "its compensation was refused: Closed: the account is closed")
    silent = Standing(step=step(1), effect=done(1), compensation=failed(9))
    assert move(silent) == Stuck(key(1), "its compensation was refused")


def test_a_template_may_name_all_that_is_known_of_the_call() -> None:
    template = {
        "all": ["${arguments.room}", "${key}", "${run}", "${step}", "${tool}"],
        "text": "refund of ${result.id}",
        "number": 3,
        "downstream": "${downstream_key}",
    }
    taken = compensation_arguments(Compensation(tool="t", arguments=template), done(1))
    assert taken == {
        "all": ["12", key(1).hex(), "trip-7", 1, "hold"],
        "text": "refund of h-1",
        "number": 3,
        "downstream": downstream_key(key(1), 0),
    }
    assert compensation_arguments(None, done(1)) == {}


@pytest.mark.parametrize(
    ("found", "template", "why"),
    [
        (done(1, result={"other": 1}), {"hold": "${result.id}"}, "`${result.id}` at /hold finds nothing"),
        (done(1), {"why": ["of ${arguments.none}"]}, "`${arguments.none}` at /why/0 finds nothing"),
        (done(1, result={"$opaque": {}}), {"hold": {"id": "${result.id}"}},
         "`${result.id}` at /hold/id finds nothing, and the result of the step was not kept"),
        (replace(done(1), expired_at=at(19)), {"hold": "${result.id}"}, "the record of the step has expired"),
        (done(1), {"hold": "${abs(result.id)}"}, "the expression 'abs(result.id)' fails"),
    ],
)  # fmt: skip
def test_a_compensation_whose_arguments_are_not_on_record_is_never_guessed(
    found: Effect, template: dict[str, object], why: str
) -> None:
    compensation = Compensation(tool="t", arguments=template)
    with pytest.raises(Refusal) as refused:
        compensation_arguments(compensation, found)
    assert refused.value.reason.startswith(why)
    stuck = move(Standing(step=step(1, compensation=compensation), effect=found))
    assert isinstance(stuck, Stuck)
    assert why in stuck.why


def test_a_step_whose_arguments_are_redacted_is_not_run_again() -> None:
    has = life("in_doubt", attempt(A, 1, 40, "unknown", 10))
    redacted = effect(1, has)
    redacted = replace(redacted, intent=replace(redacted.intent, arguments=b'{"room":"[redacted]"}'))
    standing = Standing(step=step(1), effect=redacted, rules=WINDOWED, redacted=("/room",))
    assert move(standing) == Stuck(key(1), "the step cannot be run again: arguments of it are redacted")
    assert isinstance(move(replace(standing, redacted=())), Due)


def test_a_deadline_passes_only_while_the_saga_runs() -> None:
    running = replace(SAGA, state="running", deadline=at(20))
    assert running.is_late(at(20))
    assert not running.is_late(Instant(at(20) - 1))
    assert not replace(running, state="completed").is_late(at(30))
    assert not replace(running, deadline=None).is_late(at(30))


def test_the_step_of_a_compensation_is_a_name_of_its_own() -> None:
    assert step_name(key(1).hex()) == f"compensate:{'01' * 32}"
    assert is_reserved(step_name("x"))
    assert not is_reserved("compensate")


def _key(chosen: Move) -> Key | None:
    return None if isinstance(chosen, Done) else chosen.key
