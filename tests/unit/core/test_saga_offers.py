"""What a saga offers to be done, and when it tells a person that nobody does it."""

import msgspec
import pytest
from msgspec.structs import replace

from guard.core.effects import SECOND, Instant
from guard.core.sagas import PATIENCE, Done, Due, Saga, Standing, Stuck, due_of, plan
from tests.unit.core.lives import IDEMPOTENT, A, B, at, attempt, life
from tests.unit.core.test_sagas import SAGA, done, effect, key, move, step
from twiceshy_contract.policies import Compensation


@pytest.mark.parametrize(
    ("arguments", "places", "template", "is_taken"),
    [
        ({"room": "[redacted]"}, ("/room",), {"room": "${arguments.room}"}, True),
        ({"room": "[redacted]"}, ("/room",), {"text": "of ${arguments.room}"}, True),
        ({"room": "[redacted]"}, (), {"room": "${arguments.room}"}, False),
        ({"room": "[redacted] by hand"}, ("/room",), {"room": "${arguments.room}"}, False),
        ({"room": "12", "card": {"number": "[redacted]"}}, ("/card/number",), {"room": "${arguments.room}"}, False),
        ({"cards": ["1", "[redacted]"]}, ("/cards/1",), {"card": "${arguments.cards[1]}"}, True),
        ({"cards": ["1", "[redacted]"]}, ("/cards/1",), {"card": "${arguments.cards[0]}"}, False),
        ({"cards": ["[redacted]"]}, ("/cards/*",), {"cards": "${arguments.cards}"}, True),
        ({"card": "[redacted]"}, ("/card/number",), {"card": "${arguments.card}"}, True),
        ({"cards": {"a": {"$$pin": "[redacted]"}}}, ("/cards/*/$pin", "/none/x"), {"all": "${arguments.cards}"}, True),
        ({"cards": 7}, ("/cards/*",), {"all": "${arguments.cards}"}, False),
    ],
)
def test_only_what_the_tool_redacts_counts_as_redacted(
    arguments: dict[str, object], places: tuple[str, ...], template: dict[str, object], *, is_taken: bool
) -> None:
    found = done(1)
    found = replace(found, intent=replace(found.intent, arguments=msgspec.json.encode(arguments)))
    compensated = step(1, compensation=Compensation(tool="t", arguments=template))
    planned = move(Standing(step=compensated, effect=found, redacted=places))
    why = "the arguments of its compensation cannot be made: the template takes what is redacted in the record"
    assert planned == Stuck(key(1), why) if is_taken else isinstance(planned, Due)


def test_an_expression_that_fails_on_what_is_redacted_takes_it_too() -> None:
    found = done(1)
    found = replace(found, intent=replace(found.intent, arguments=b'{"cards":["[redacted]",null]}'))
    one = step(1, compensation=Compensation(tool="t", arguments={"first": "${join('', arguments.cards[?@])}"}))
    assert isinstance(move(Standing(step=one, effect=found, redacted=("/cards/*",))), Stuck)


SINCE = at(20)
LATEST = (SINCE + PATIENCE) / SECOND


@pytest.mark.parametrize(
    ("saga", "standing"),
    [
        (replace(SAGA, failed_at=SINCE), Standing(step=step(1), effect=done(1))),
        (replace(SAGA, failed_at=at(15), changed_at=SINCE), Standing(step=step(1), effect=done(1))),
        (replace(SAGA, failed_at=at(5)), Standing(step=step(1), effect=done(1, ended=20))),
        (replace(SAGA, started_at=SINCE),
         Standing(step=step(1), effect=effect(1, life("pending", attempt(A, 1, 9))), rules=IDEMPOTENT)),
        (replace(SAGA, failed_at=at(5)),
         Standing(step=step(1), effect=effect(1, life("pending", attempt(A, 1, 20))), rules=IDEMPOTENT)),
        (replace(SAGA, failed_at=at(5)),
         Standing(step=step(1), effect=done(1), compensation=effect(
             9, replace(life("pending", attempt(B, 1, 9, "not_applied", 9)), retry_at=SINCE)))),
    ],
)  # fmt: skip
def test_a_call_that_nobody_begins_in_time_calls_for_a_person_and_stays_due(saga: Saga, standing: Standing) -> None:
    early = plan(saga, [standing], Instant(SINCE + PATIENCE - 1)).move
    assert isinstance(early, Due)
    tool = "hold" if early.purpose == "settle" else "release"
    why = f"for 120 s no process has begun the call of {tool} that is due; one that has it still can"
    stuck = plan(saga, [standing], Instant(SINCE + PATIENCE)).move
    assert stuck == Stuck(key(1), why, early)
    assert (due_of(stuck), due_of(early), due_of(Done())) == (early, early, None)


def test_a_call_that_is_due_again_before_anybody_could_begin_it_has_all_its_time() -> None:
    never = effect(9, life("pending"))
    standing = Standing(step=step(1), effect=done(1, ended=20), compensation=never)
    assert isinstance(move(standing, now=LATEST - 1), Due)


def test_a_call_that_does_not_fit_calls_for_a_person_at_once_and_stays_due() -> None:
    standing = Standing(step=step(1, misfit="there is no hold"), effect=done(1))
    stuck = move(standing)
    assert isinstance(stuck, Stuck)
    assert (stuck.why, isinstance(stuck.due, Due)) == ("there is no hold", True)
