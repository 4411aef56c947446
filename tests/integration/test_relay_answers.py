"""Whatever a receiver answers to a webhook, its message has the documented end in the outbox.

The sink's own tests say what each answer means; here each goes once through a relay, with what it leaves in the rows.
"""

from collections import Counter
from typing import Final

import pytest

from guard.core.effects import SECOND
from guard.core.outbox import Standing
from guard.ports.outbox import MessageFilter
from guard.ports.store import Store
from outbox_relay.networks import networks_of
from outbox_relay.reaching import opener
from outbox_relay.relay import Relay
from tests.integration.relaying import SOON, TENANT, declared, stage
from tests.integration.sinks.webhook_receivers import Behaviour, Visit, answering, receiver, status
from twiceshy_contract.destinations import WebhookDestination
from twiceshy_contract.outbox import MessageState

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("backend", ["sqlite"], indirect=True)]
GIGABYTE: Final = 2**30
NO_ANSWER: Final = "The request left, and no answer came within 0.5 s."
HUNG_UP: Final = "The request left, and the receiver closed the connection before it had answered."
NO_REDIRECT: Final = "No redirect is followed: declare the address that takes messages."
Ends = tuple[MessageState, str]
"""The state of a message after one try, and the beginning of its receipt or note."""


def then_hangs_up(answer: bytes) -> Behaviour:
    async def behave(visit: Visit) -> None:
        await visit.say(answer)
        visit.hang_up()

    return behave


async def never(visit: Visit) -> None:
    await visit.gone()
    visit.hang_up()


class Pouring:
    """Answers with a gigabyte, as far as anybody reads it."""

    def __init__(self) -> None:
        self.written = 0

    async def __call__(self, visit: Visit) -> None:
        await visit.say(f"HTTP/1.1 200 OK\r\nContent-Length: {GIGABYTE}\r\n\r\n".encode())
        while self.written < GIGABYTE and not visit.writer.is_closing():
            await visit.say(b"x" * 2**16)
            self.written += 2**16


POUR: Final = Pouring()
ANSWERS: Final[dict[str, tuple[Behaviour, Ends]]] = {
    "200": (answering(status(200, body="thanks")), ("delivered", "200: thanks")),
    "201": (answering(status(201)), ("delivered", "201")),
    "1-GB": (POUR, ("delivered", "200: xxxx")),
    "cut-off-after-its-head": (
        then_hangs_up(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"),
        ("delivered", "200: half"),
    ),
    "302": (
        answering(status(302, "Location: http://127.0.0.1/inward")),
        ("dead", f"The receiver answered 302 and points to http://127.0.0.1/inward. {NO_REDIRECT}"),
    ),
    "400": (answering(status(400, body="what?")), ("dead", "The receiver refused it: it answered 400: what?")),
    "404": (answering(status(404)), ("dead", "The receiver refused it: it answered 404")),
    "410": (answering(status(410)), ("dead", "The receiver is gone: it answered 410")),
    "429": (answering(status(429, "Retry-After: 600")), ("pending", "The receiver answered 429")),
    "500": (answering(status(500, body="oh")), ("pending", "The receiver answered 500: oh")),
    "never": (never, ("unknown", NO_ANSWER)),
    "half-a-head": (then_hangs_up(b"HTTP/1.1 200 OK\r\nContent-Le"), ("unknown", HUNG_UP)),
    "garbage": (then_hangs_up(b"\x00\xff" * 100), ("unknown", "The request left, and what came back is no HTTP")),
}
TELLING: Final = ("never", "half-a-head", "garbage")
"""What is in doubt, and is sent again to a receiver that can tell."""


async def test_each_answer_has_its_end(store: Store) -> None:
    async with receiver(by_path) as there:
        for name in ANSWERS:
            await stage_to(store, name, there.url(), deduplicates=False)
        for name in TELLING:
            await stage_to(store, f"{name}-told", there.url(), deduplicates=True)
        await stage_to(store, "inward", "http://10.1.2.3/", deduplicates=False)
        relay = Relay(store.relay, opener(networks_of("127.0.0.1/32"), {}), SOON, lambda: 0.99)
        try:
            await relay.run_once()
        finally:
            await relay.close()
        tries = Counter(path_of(received.line) for received in there.requests)
    assert POUR.written < 2**25
    ends = await ends_of(store)
    for name, (_, (state, said)) in ANSWERS.items():
        assert (name, ends[name].state) == (name, state)
        assert (ends[name].receipt or ends[name].note or "").startswith(said)
    for name in TELLING:
        assert ends[f"{name}-told"].state == "pending"
        assert (ends[f"{name}-told"].note or "").startswith(ANSWERS[name][1][1])
    assert ends["inward"].state == "dead"
    assert (ends["inward"].note or "").startswith("blocked: ")
    assert {name: end.attempts for name, end in ends.items() if name != "inward"} == tries


async def test_only_who_is_gone_is_disabled_and_only_who_throttles_is_left_alone(store: Store) -> None:
    async with receiver(by_path) as there:
        for name in ("400", "410", "429", "500"):
            await stage_to(store, name, there.url(), deduplicates=False)
        relay = Relay(store.relay, opener(networks_of("127.0.0.1/32"), {}), SOON, lambda: 0.99)
        try:
            await relay.run_once()
        finally:
            await relay.close()
    records = {record.place.name: record for record in await store.destinations.all(TENANT)}
    assert {name for name, record in records.items() if record.place.state == "disabled"} == {"410"}
    assert {name for name, record in records.items() if record.held_until is not None} == {"429"}
    held = records["429"].held_until
    assert held is not None
    assert 590 * SECOND < held - records["429"].at <= 750 * SECOND


async def by_path(visit: Visit) -> None:
    """Answer as the path of the request says."""
    await ANSWERS[path_of(visit.received.line).removesuffix("-told")][0](visit)


def path_of(line: str) -> str:
    return line.split()[1].partition("?")[0].removeprefix("/")


async def stage_to(store: Store, name: str, url: str, *, deduplicates: bool) -> None:
    """Declare a destination, and stage a message for it."""
    seconds = 0.5 if name.startswith("never") else 30
    settings = WebhookDestination(
        url=url.replace("/hook", f"/{name}"), deduplicates=deduplicates, timeout_seconds=seconds
    )
    await stage(store, await declared(store, name, settings), [name], name=name)


async def ends_of(store: Store) -> dict[str, Standing]:
    """Return all messages as they stand, by the names of their destinations."""
    waiting, _ = await store.outbox.page(TENANT, MessageFilter(limit=100))
    over, _ = await store.outbox.page(TENANT, MessageFilter(state="delivered", limit=100))
    return {standing.destination: standing for standing in (*waiting, *over)}
