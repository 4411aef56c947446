"""While a large append is checked, the service's loop goes on to serve others."""

import asyncio
import hashlib
import threading
from collections.abc import Sequence
from types import SimpleNamespace
from typing import cast
from uuid import UUID

import pytest

from guard.core.effects import RunId, TenantId
from guard.core.recording import Written, written
from guard.core.redacted_events import Secrecy
from guard.ports.events import Append, Appended, AppendResult, EventStore
from guard.service import recording
from guard.service.measures import Measures
from guard.service.outcomes import Refused
from guard.service.recording import Kept, Recording
from guard.service.redactions import Redactions
from guard.service.runs import KnownRun, Runs
from guard.web import requests
from guard.web.exchange import LARGE_BYTES
from guard.web.problems import ApiRequest
from twiceshy_contract.events import MAX_BLOB_BYTES, MAX_EVENT_BYTES, AppendRequest, Event, Intent
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.wire import read

pytestmark = pytest.mark.anyio
TENANT = TenantId(1)


class _Store:
    """A store that takes everything."""

    async def append(self, appends: Sequence[Append]) -> list[AppendResult]:
        return [Appended(head=len(each.events), added=len(each.events)) for each in appends]


class _Runs:
    """One run, whatever it is called."""

    async def find(self, _tenant: TenantId, _name: str) -> KnownRun:
        return KnownRun(id=RunId(UUID(int=1)), fork=None)


class _Redactions:
    """Nothing is redacted."""

    async def of(self, _tenant: TenantId, _run: RunId, _events: Sequence[Event]) -> Secrecy:
        return Secrecy(places={}, salt=b"salt")


def appending() -> Recording:
    redactions = cast("Redactions", _Redactions())
    return Recording(cast("EventStore", _Store()), cast("Runs", _Runs()), redactions, Measures())


def intent(seq: int, text: str = "x") -> Intent:
    return Intent(seq=seq, at=0, kind="custom", name="note", digest="0" * 64, arguments={"text": text})


async def test_the_events_of_a_large_append_are_written_down_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def write(event: Event, _secrecy: Secrecy) -> Written:
        assert goes_on.wait(10), "the loop stands still"
        return written(event)

    monkeypatch.setattr(recording, "written_redacted", write)
    asked = AppendRequest(epoch=1, events=(intent(1),))
    appended = asyncio.create_task(appending().append(TENANT, "booking-42", asked, is_large=True))
    await asyncio.sleep(0)
    goes_on.set()
    assert await appended == Kept(next_seq=2, added=1)


async def test_a_large_body_is_read_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()

    def read_late(body: bytes, kind: type[AppendRequest], *, newer: bool = False) -> AppendRequest:
        assert goes_on.wait(10), "the loop stands still"
        return read(body, kind, newer=newer)

    async def body() -> bytes:
        return b'{"epoch":1}' + b" " * LARGE_BYTES

    monkeypatch.setattr(requests, "read", read_late)
    request = SimpleNamespace(body=body, headers={"content-type": "application/json"})
    reading = asyncio.create_task(requests.message(cast("ApiRequest", request), AppendRequest))
    await asyncio.sleep(0)
    goes_on.set()
    assert await reading == AppendRequest(epoch=1)


@pytest.mark.parametrize("is_large", [False, True])
async def test_what_is_larger_than_it_may_be_is_refused_with_its_place(*, is_large: bool) -> None:
    room = MAX_EVENT_BYTES - len(written(intent(1, "")).body)
    asked = AppendRequest(epoch=1, events=(intent(1, "x" * room),))
    assert await appending().append(TENANT, "booking-42", asked, is_large=is_large) == Kept(next_seq=2, added=1)
    asked = AppendRequest(epoch=1, events=(intent(1), intent(2, "x" * (room + 1))))
    refused = await appending().append(TENANT, "booking-42", asked, is_large=is_large)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.paths) == ("too-large", ("/events/1",))
    assert refused.detail == (
        "An event has at most 131072 bytes beside the values that it names as blobs; 1 of these have more."
    )
    digest = hashlib.sha256(b"1").hexdigest()
    asked = AppendRequest(epoch=1, blobs={digest: " " * MAX_BLOB_BYTES + "1"})
    refused = await appending().append(TENANT, "booking-42", asked, is_large=is_large)
    assert isinstance(refused, Refused)
    assert (refused.code, refused.paths) == ("too-large", (f"/blobs/{digest}",))


async def test_a_place_is_told_from_a_thread_too() -> None:
    asked = AppendRequest(epoch=1, events=(intent(1), intent(3)))
    with pytest.raises(Refusal) as refused:
        await appending().append(TENANT, "booking-42", asked, is_large=True)
    assert refused.value.path == "/events/1/seq"
