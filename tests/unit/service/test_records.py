"""What a process keeps of final effects: never one that may still change, for a minute, and no more than it may."""

from msgspec.structs import replace

from guard.core.effects import Effect, Instant, Intent, Key, Life, TenantId
from guard.service.records import FRESH_SECONDS, LARGEST, Records
from twiceshy_contract.names import PublicState


def effect(number: int, state: PublicState = "succeeded", outcome: bytes = b'{"result":1}') -> Effect:
    intent = Intent(
        key=Key(number.to_bytes(32, "big")), tenant=TenantId(1), run_id=None, run=None, step=None, tool="pay",
        tool_version=0, rule="business_key", caller_step=None, business_key=f"order-{number}", occurrence=1,
        generation=1, identity_digest=b"i" * 32, arguments_digest=b"a" * 32, arguments=b"{}", worker=None,
        began_at=Instant(0),
    )  # fmt: skip
    return Effect(version=1, intent=intent, life=Life(state=state), outcome=outcome)


def test_only_what_no_event_can_change_is_kept() -> None:
    records = Records()
    states: list[PublicState] = ["pending", "executing", "in_doubt", "succeeded", "failed"]
    for number, state in enumerate(states):
        records.keep(effect(number, state))
    kept = [records.get(effect(number).intent.key) is not None for number in range(5)]
    assert kept == [False, False, False, True, True]


def test_beyond_its_bytes_the_least_lately_used_go_first() -> None:
    records = Records(max_bytes=3 * 2_100)
    for number in range(3):
        records.keep(effect(number))
    assert records.get(effect(0).intent.key) is not None
    records.keep(effect(3))
    kept = [records.get(effect(number).intent.key) is not None for number in range(4)]
    assert kept == [True, False, True, True]


def test_one_that_is_too_large_displaces_no_other() -> None:
    records = Records()
    records.keep(effect(1))
    records.keep(effect(2, outcome=b"x" * LARGEST))
    assert records.get(effect(1).intent.key) is not None
    assert records.get(effect(2).intent.key) is None


def test_an_answer_that_was_written_stays_with_its_effect() -> None:
    records = Records()
    records.keep(effect(1))
    record = records.get(effect(1).intent.key)
    assert record is not None
    record.answer = b"written"
    records.keep(replace(effect(1), version=2))
    again = records.get(effect(1).intent.key)
    assert again is not None
    assert (again.answer, again.effect.version) == (b"written", 1)


def test_a_record_is_believed_for_a_minute_and_then_read_again() -> None:
    now = [1000.0]
    records = Records(clock=lambda: now[0])
    records.keep(effect(1))
    now[0] += FRESH_SECONDS - 0.001
    assert records.get(effect(1).intent.key) is not None
    records.keep(effect(1))
    now[0] += 0.001
    assert records.get(effect(1).intent.key) is None
    records.keep(effect(1))
    assert records.get(effect(1).intent.key) is not None


def test_what_has_expired_is_forgotten_and_nothing_else() -> None:
    records = Records()
    records.keep(effect(1))
    records.keep(effect(2))
    records.forget([effect(1).intent.key, effect(3).intent.key])
    assert records.get(effect(1).intent.key) is None
    assert records.get(effect(2).intent.key) is not None
    records.keep(replace(effect(4), expired_at=Instant(1)))
    assert records.get(effect(4).intent.key) is None


def test_what_was_forgotten_takes_no_room() -> None:
    records = Records(max_bytes=3 * 2_100)
    for number in range(30):
        records.keep(effect(number))
        records.forget([effect(number).intent.key])
    for number in range(3):
        records.keep(effect(number))
    assert [records.get(effect(number).intent.key) is not None for number in range(3)] == [True] * 3
