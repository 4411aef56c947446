"""Entries: what was written for a key in an epoch is read for that key in that epoch, and nothing else is believed."""

import tracemalloc
from uuid import UUID

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from guard.accelerator.entries import LARGEST, MOST_BYTES, Distrusted, opened, written
from guard.accelerator.keyring import Secrets
from guard.core.effects import Attempt, AttemptToken, Effect, Fence, Instant, Intent, Key, Life, RunId, TenantId

OURS, THEIRS = Secrets(b"n" * 32, b"s" * 32), Secrets(b"n" * 32, b"t" * 32)
KEY, OTHER = Key(b"k" * 32), Key(b"o" * 32)
TENANT = TenantId(1)
EPOCH = 7


def effect(key: Key = KEY, outcome: bytes = b'{"result":1}', tenant: TenantId = TENANT) -> Effect:
    intent = Intent(
        key=key, tenant=tenant, run_id=RunId(UUID(int=5)), run="run", step=3, tool="pay", tool_version=2, rule="once",
        caller_step=None, business_key=None, occurrence=1, generation=2, identity_digest=b"i" * 32,
        arguments_digest=b"a" * 32, arguments=b'{"to":"bob"}', worker="w", began_at=Instant(1),
    )  # fmt: skip
    attempt = Attempt(
        token=AttemptToken(UUID(int=9)), fence=Fence(1), granted_at=Instant(2), deadline=Instant(30),
        report="succeeded", reported_at=Instant(4),
    )  # fmt: skip
    life = Life(state="succeeded", fence=Fence(1), attempts=(attempt,), tries=1, ended_at=Instant(4))
    return Effect(version=2, intent=intent, life=life, outcome=outcome, edited=b'{"to":"eve"}')


def entry_of(one: Effect, epoch: int = EPOCH, secrets: Secrets = OURS) -> bytes:
    entry = written(secrets, epoch, one)
    assert entry is not None
    return entry


def doubt_of(entry: bytes, key: Key = KEY, epoch: int = EPOCH) -> str:
    answer = opened(OURS, epoch, TENANT, key, entry)
    assert isinstance(answer, Distrusted), answer
    return answer.why


@pytest.mark.parametrize("size", [0, 10, 3_000, 200_000])
def test_an_entry_is_read_as_it_was_written(size: int) -> None:
    one = effect(outcome=b"x" * size)
    assert opened(OURS, EPOCH, TENANT, KEY, entry_of(one)) == one


def test_a_large_one_is_compressed_and_a_too_large_one_is_not_written() -> None:
    assert len(entry_of(effect(outcome=b"x" * 100_000))) < 2_000
    assert written(OURS, EPOCH, effect(outcome=b"x" * LARGEST)) is None


@given(place=st.integers(min_value=0), bit=st.integers(0, 7), size=st.sampled_from([10, 5_000]))
def test_no_bit_of_an_entry_may_be_another(place: int, bit: int, size: int) -> None:
    entry = bytearray(entry_of(effect(outcome=bytes(range(256)) * (size // 256 + 1))))
    entry[place % len(entry)] ^= 1 << bit
    assert doubt_of(bytes(entry)) == "unsealed"


@given(junk=st.binary(max_size=500))
def test_nothing_that_was_not_written_here_is_believed(junk: bytes) -> None:
    assert doubt_of(junk) == "unsealed"


def test_an_entry_at_another_key_in_another_epoch_or_of_another_database_is_not_believed() -> None:
    assert doubt_of(entry_of(effect()), key=OTHER) == "unsealed"
    assert doubt_of(entry_of(effect()), epoch=EPOCH + 1) == "unsealed"
    assert doubt_of(entry_of(effect(), epoch=EPOCH + 1)) == "unsealed"
    assert doubt_of(entry_of(effect(), secrets=THEIRS)) == "unsealed"
    assert doubt_of(entry_of(effect(tenant=TenantId(2)))) == "unsealed"


def test_a_part_of_an_entry_and_one_with_more_behind_it_are_not_believed() -> None:
    entry = entry_of(effect())
    assert {doubt_of(entry[:size]) for size in range(len(entry))} == {"unsealed"}
    assert doubt_of(entry + b"\0") == "unsealed"


def test_what_is_larger_than_anything_that_is_written_is_not_even_looked_at() -> None:
    assert doubt_of(entry_of(effect()) + bytes(MOST_BYTES)) == "oversized"


def test_a_bomb_is_not_decompressed_even_under_the_right_seal(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zstandard.ZstdCompressor().compress(bytes(256 * 2**20))
    monkeypatch.setattr("guard.accelerator.entries._compressor", _Gives(bomb))
    entry = entry_of(effect(outcome=bytes(200_000)))
    assert bomb in entry
    tracemalloc.start()
    assert doubt_of(entry) == "unreadable"
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_an_effect_that_names_another_key_than_its_seal_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entry_of(effect())
    monkeypatch.setattr("guard.accelerator.entries._read", lambda _form, _body: effect(OTHER))
    assert doubt_of(entry) == "misplaced"
    monkeypatch.setattr("guard.accelerator.entries._read", lambda _form, _body: effect(tenant=TenantId(2)))
    assert doubt_of(entry) == "misplaced"


def test_an_entry_of_another_version_of_this_code_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guard.accelerator.entries._encoder", _Gives(b"\x93\x01\x02\x03"))
    assert doubt_of(entry_of(effect())) == "unreadable"


def test_names_reveal_nothing_and_are_one_thing_s_each() -> None:
    names = {
        secrets.name(kind, what)
        for secrets in (OURS, Secrets(b"m" * 32, b"s" * 32))
        for kind in (b"record", b"hot")
        for what in (bytes(KEY), bytes(OTHER), b"1")
    }
    assert len(names) == 12
    assert all(name.startswith(b"twiceshy:") and bytes(KEY) not in name for name in names)
    assert all(KEY.hex().encode() not in name for name in names)


def test_a_later_edit_is_another_entry() -> None:
    assert entry_of(effect()) != entry_of(replace(effect(), version=3))


class _Gives:
    """A compressor and an encoder that give what the test wants."""

    def __init__(self, what: bytes) -> None:
        self._what = what

    def compress(self, _body: bytes) -> bytes:
        return self._what

    def encode(self, _effect: Effect) -> bytes:
        return self._what
