"""Keys: the same intent has one name, no two intents share one, and the scheme never changes silently."""

from uuid import UUID

from guard.core.effects import Key, RunId, TenantId
from guard.core.keys import downstream_key, effect_key, slot

RUN = RunId(UUID("0192f5b0-7c3a-7000-8000-000000000001"))
OTHER_RUN = RunId(UUID("0192f5b0-7c3a-7000-8000-000000000002"))
TENANT = TenantId(7)
DIGEST = bytes(range(32))


def test_the_slot_of_once_is_frozen() -> None:
    known = "6b9baf003a6cc12a6522375dfa8a342e81e5ef698c57e2eb8195434749d4a700"
    assert slot(TENANT, RUN, "book", "once", DIGEST).hex() == known


def test_the_slot_of_a_step_is_frozen() -> None:
    known = "838c94677a3f08808f5e521b2e29db5eec50bc775590504d159ba048d75c7f78"
    assert slot(TENANT, RUN, "book", "step", b"3").hex() == known


def test_the_slot_of_a_business_key_is_frozen() -> None:
    known = "21fb459eff2cb47557c97823be6bcc7ed8fee48aa848e2b5a479f06532bf1b27"
    assert slot(TENANT, None, "book", "business_key", b"order-1").hex() == known


def test_the_key_of_an_effect_in_a_run_is_frozen_and_begins_with_the_runs_start() -> None:
    key = effect_key(slot(TENANT, RUN, "book", "once", DIGEST), RUN, 1, 0)
    assert key.hex() == "0192f5b07c3ab595bf3dd7d42bd8542f8a825f7b1aa128404aa7b9fa99086c1f"


def test_the_key_of_a_tenant_wide_effect_is_frozen_and_begins_with_zeros() -> None:
    key = effect_key(slot(TENANT, None, "book", "business_key", b"order-1"), None, 2, 1)
    assert key.hex() == "00000000000059d49dcabac7d38ea2e39a689d7e4ec1fd4e61d7449299f103a5"


def test_the_downstream_key_is_frozen_and_changes_with_the_epoch() -> None:
    key = Key(bytes.fromhex("0192f5b07c3ab595bf3dd7d42bd8542f8a825f7b1aa128404aa7b9fa99086c1f"))
    assert downstream_key(key, 0) == "611c49ad63b6434d024678cbbb41841354fa64b45168bebde35475f7d909f401"
    assert downstream_key(key, 1) == "ebf977024f0e6eb49db9b1135157b5afb3c9623310331c35087f0101c398492d"


def test_calls_that_plain_concatenation_would_make_collide_stay_apart() -> None:
    slots = {
        slot(TENANT, RUN, "book", "step", b"once1"),
        slot(TENANT, RUN, "books", "step", b"tep1"),
        slot(TENANT, RUN, "bookstep", "step", b"1"),
        slot(TENANT, RUN, "book", "step", b"step1"),
        slot(TENANT, RUN, "bo", "step", b"okstep1"),
        slot(TENANT, RUN, "book", "once", b"step1"),
    }
    assert len(slots) == 6


def test_occurrence_and_generation_are_not_one_number() -> None:
    named = slot(TENANT, RUN, "book", "once", DIGEST)
    keys = {effect_key(named, RUN, 1, 11), effect_key(named, RUN, 11, 1), effect_key(named, RUN, 111, 0)}
    assert len(keys) == 3


def test_every_part_of_a_run_scoped_slot_counts() -> None:
    slots = {
        slot(TENANT, RUN, "book", "once", DIGEST),
        slot(TenantId(8), RUN, "book", "once", DIGEST),
        slot(TENANT, OTHER_RUN, "book", "once", DIGEST),
        slot(TENANT, None, "book", "once", DIGEST),
        slot(TENANT, RUN, "cancel", "once", DIGEST),
        slot(TENANT, RUN, "book", "step", DIGEST),
        slot(TENANT, RUN, "book", "once", DIGEST[::-1]),
        slot(TENANT, RUN, "book", "business_key", DIGEST),
    }
    assert len(slots) == 8


def test_a_business_key_is_the_tenants_whatever_the_run_and_the_tool() -> None:
    named = slot(TENANT, None, "book", "business_key", b"order-1")
    assert slot(TENANT, RUN, "cancel", "business_key", b"order-1") == named
    assert slot(TenantId(8), None, "book", "business_key", b"order-1") != named
