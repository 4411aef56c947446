"""What every store must do with what logs hold by content."""

import asyncio
import hashlib
import hmac
import json

import pytest
import zstandard
from msgspec.structs import replace

from guard.core.effects import TenantId
from guard.core.recording import Diverged
from guard.ports.events import Appended, BlobsMissing, Texts
from guard.ports.store import Store
from guard.store.sql.engine import open_store
from tests.contract.given import TENANT
from tests.contract.given_logs import DIGEST, append, appended, digest_of, intent, log_of, one, recorded, rows

TEXT = json.dumps({"role": "user", "content": "Wo ist " + "sehr " * 300 + "Zürich?"}, ensure_ascii=False)
OTHER = TenantId(2)


async def salt_of(url: str, tenant: int) -> bytes:
    ((salt,),) = await rows(url, f"SELECT salt FROM tenants WHERE id = {tenant}")
    assert isinstance(salt, bytes)
    return salt


async def test_a_text_is_kept_compressed_at_an_address_that_only_its_tenant_can_tell(
    store: Store, database_url: str
) -> None:
    await rows(database_url, "INSERT INTO tenants (id, name) VALUES (2, 'other')")
    run = await recorded(store)
    theirs = replace(await recorded(store, "theirs"), tenant=OTHER)
    digest = digest_of(TEXT)
    for each in (run, theirs):
        await appended(store, append(each, 1, intent(1, arguments={"x": {"$blob": digest}}), blobs={digest: TEXT}))
    salts = [await salt_of(database_url, tenant) for tenant in (1, 2)]
    assert len(set(salts)) == 2
    found = await rows(database_url, "SELECT tenant, address, size, body FROM blobs ORDER BY tenant")
    size = len(TEXT.encode())
    addresses = [hmac.digest(salt, bytes.fromhex(digest), hashlib.sha256) for salt in salts]
    assert [row[:3] for row in found] == [(1, addresses[0], size), (2, addresses[1], size)]
    for *_, body in found:
        assert isinstance(body, bytes)
        assert len(body) < size / 10
        assert zstandard.ZstdDecompressor().decompress(body) == TEXT.encode()
    assert await store.events.blobs(TENANT, [digest], 10) == Texts(texts={digest: TEXT.encode()}, left=())


async def test_a_tenant_has_nothing_of_another(store: Store, database_url: str) -> None:
    await rows(database_url, "INSERT INTO tenants (id, name) VALUES (2, 'other')")
    run = await recorded(store)
    digest = digest_of(TEXT)
    await appended(store, append(run, 1, blobs={digest: TEXT}))
    assert await store.events.blobs(OTHER, [digest], 10) == Texts(texts={}, left=())
    theirs = replace(await recorded(store, "theirs"), tenant=OTHER)
    missing = await one(store, append(theirs, 1, intent(1, arguments={"x": {"$blob": digest}})))
    assert missing == BlobsMissing(digests=(digest,))


async def test_nobody_has_a_salt_who_is_no_tenant(store: Store) -> None:
    with pytest.raises(LookupError, match="there is no tenant 7"):
        await store.events.blobs(TenantId(7), [DIGEST], 10)


async def test_all_who_draw_a_salt_at_once_have_the_same(store: Store, database_url: str) -> None:
    run = await recorded(store)
    digest = digest_of(TEXT)
    stores = [await open_store(database_url) for _ in range(4)]
    try:
        asked = append(run, 1, intent(1, arguments={"x": {"$blob": digest}}), blobs={digest: TEXT})
        results = await asyncio.gather(*(one(each, asked) for each in stores))
    finally:
        for each in stores:
            await each.close()
    assert sorted(result.added for result in results if isinstance(result, Appended)) == [0, 0, 0, 1]
    assert await store.events.blobs(TENANT, [digest], 10) == Texts(texts={digest: TEXT.encode()}, left=())


async def test_events_wait_for_all_that_they_name(store: Store) -> None:
    run = await recorded(store)
    first, second = digest_of("1"), digest_of("2")
    event = intent(1, arguments={"x": {"$blob": first}, "y": {"$blob": second}})
    assert await one(store, append(run, 1, event)) == BlobsMissing(digests=tuple(sorted((first, second))))
    assert await one(store, append(run, 1, event, blobs={first: "1"})) == BlobsMissing(digests=(second,))
    assert await store.events.blobs(TENANT, [first], 10) == Texts(texts={}, left=())
    assert await one(store, append(run, 1, blobs={second: "2"})) == Appended(head=0, added=0)
    assert await one(store, append(run, 1, event, blobs={first: "1"})) == Appended(head=1, added=1)
    assert await one(store, append(run, 1, event)) == Appended(head=1, added=0)
    assert await log_of(store, run) == [event]


async def test_appends_of_one_transaction_share_what_they_bring(store: Store) -> None:
    run, other = await recorded(store), await recorded(store, "other")
    digest = digest_of("1")
    event = intent(1, arguments={"x": {"$blob": digest}})
    results = await store.events.append(
        [append(run, 1, event), append(other, 1, event, blobs={digest: "1"}), append(run, 1, event)]
    )
    assert results == [BlobsMissing(digests=(digest,)), Appended(head=1, added=1), Appended(head=1, added=1)]


async def test_what_an_append_brings_that_is_refused_is_not_kept(store: Store) -> None:
    run = await recorded(store)
    await appended(store, append(run, 1, intent(1)))
    assert await one(store, append(run, 1, intent(1, "other"), blobs={digest_of("1"): "1"})) == Diverged(seq=1)
    assert await store.events.blobs(TENANT, [digest_of("1")], 10) == Texts(texts={}, left=())


async def test_texts_are_read_in_the_order_that_is_asked_as_many_as_fit(store: Store) -> None:
    run = await recorded(store)
    texts = [json.dumps(letter * 100) for letter in "abc"]
    a, b, c = digests = [digest_of(text) for text in texts]
    await appended(store, append(run, 1, blobs=dict(zip(digests, texts, strict=True))))
    bodies = {digest: text.encode() for digest, text in zip(digests, texts, strict=True)}
    for size, read in ((1, [c]), (102, [c]), (204, [c, a]), (10**6, [c, a, b])):
        found = await store.events.blobs(TENANT, [c, DIGEST, a, b, c], size)
        left = tuple(digest for digest in (c, a, b) if digest not in read)
        assert found == Texts(texts={digest: bodies[digest] for digest in read}, left=left)
        assert list(found.texts) == read


async def test_the_same_text_may_be_brought_by_many_at_once(store: Store, database_url: str) -> None:
    rival = await open_store(database_url)
    texts = {digest_of(str(number)): str(number) for number in range(200)}
    backwards = dict(reversed(texts.items()))
    runs = [await recorded(store, f"run-{number}") for number in range(8)]
    try:
        results = await asyncio.gather(
            *(
                one(rival if number % 2 else store, append(run, 1, blobs=backwards if number % 3 else texts))
                for number, run in enumerate(runs)
            )
        )
    finally:
        await rival.close()
    assert results == [Appended(head=0, added=0)] * 8
    assert await rows(database_url, "SELECT count(*) FROM blobs") == [(200,)]


async def test_an_append_may_name_more_values_than_a_statement_has_parameters(store: Store) -> None:
    run = await recorded(store)
    digests = sorted(digest_of(str(number)) for number in range(33_000))
    named = json.dumps([{"$blob": digest} for digest in digests])
    event = intent(1, arguments={"all": {"$blob": digest_of(named)}})
    asked = append(run, 1, event, blobs={digest_of(named): named})
    assert await one(store, asked) == BlobsMissing(digests=tuple(digests))
    texts = {digest_of(str(number)): str(number) for number in range(32_990)}
    assert await one(store, append(run, 1, blobs=texts)) == Appended(head=0, added=0)
    missing = tuple(sorted(digest_of(str(number)) for number in range(32_990, 33_000)))
    assert await one(store, asked) == BlobsMissing(digests=missing)
    texts = {digest_of(str(number)): str(number) for number in range(32_990, 33_000)}
    assert await one(store, append(run, 1, event, blobs={digest_of(named): named, **texts})) == Appended(
        head=1, added=1
    )
