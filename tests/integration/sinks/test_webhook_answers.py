"""Whatever a receiver answers has one documented end: the status decides it, and no body changes it."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from outbox_relay.sinks.base import Delivered, Permanent, Result, Retryable, Unknown
from tests.integration.sinks.conftest import MakeOutgoing
from tests.integration.sinks.webhook_receivers import OK, Webhooks, answering, receiver, status

NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)
NOBODY_KNOWS = ": whether the receiver behind it took the message, nobody knows."
ENDS: dict[str, tuple[bytes, Result]] = {
    "200": (status(200, body="thanks"), Delivered(receipt="200: thanks")),
    "201": (status(201), Delivered(receipt="201")),
    "202": (status(202, body="  later\r\n\x00\x1b[31m "), Delivered(receipt="202: later [31m")),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", Delivered(receipt="204")),
    "299": (status(299, body="ä" * 300), Delivered(receipt="299: " + "ä" * 200)),
    "101": (
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        Unknown(why="The receiver answered 101, which is no answer to a request that was sent."),
    ),
    "103 and then 200": (b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK, Delivered(receipt="200: ok")),
    "304": (
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        Permanent(why="The receiver answered 304. No redirect is followed: declare the address that takes messages."),
    ),
    "400": (status(400, body="no total"), Permanent(why="The receiver refused it: it answered 400: no total")),
    "401": (status(401), Permanent(why="The receiver refused it: it answered 401")),
    "404": (status(404), Permanent(why="The receiver refused it: it answered 404")),
    "409": (status(409), Permanent(why="The receiver refused it: it answered 409")),
    "410": (status(410), Permanent(why="The receiver is gone: it answered 410", is_gone=True)),
    "422": (status(422), Permanent(why="The receiver refused it: it answered 422")),
    "408": (status(408), Retryable(why="The receiver answered 408")),
    "425": (status(425), Retryable(why="The receiver answered 425")),
    "429": (status(429), Retryable(why="The receiver answered 429", is_throttled=True)),
    "429 with Retry-After": (
        status(429, "Retry-After: 120"),
        Retryable(why="The receiver answered 429", retry_after=120, is_throttled=True),
    ),
    "500": (status(500, body="<h1>oops</h1>"), Retryable(why="The receiver answered 500: <h1>oops</h1>")),
    "501 with Retry-After": (
        status(501, "Retry-After: 7"),
        Retryable(why="The receiver answered 501", retry_after=7),
    ),
    "502": (status(502), Unknown(why="A gateway answered 502" + NOBODY_KNOWS)),
    "503": (status(503), Retryable(why="The receiver answered 503")),
    "503 with Retry-After": (
        status(503, "retry-after: 0"),
        Retryable(why="The receiver answered 503", retry_after=0, is_throttled=True),
    ),
    "503 with Retry-After of many digits behind many headers": (
        status(503, *(f"A{number}: b" for number in range(200)), "Retry-After: 999999999999"),
        Retryable(why="The receiver answered 503", retry_after=1e9, is_throttled=True),
    ),
    "504": (
        status(504, "Retry-After: 3600", body="upstream"),
        Unknown(why="A gateway answered 504: upstream" + NOBODY_KNOWS),
    ),
    "524": (status(524), Unknown(why="A gateway answered 524" + NOBODY_KNOWS)),
    "599": (status(599), Retryable(why="The receiver answered 599")),
    "999": (status(999), Retryable(why="The receiver answered 999")),
}


@pytest.mark.parametrize("name", ENDS)
async def test_an_answer_has_its_end(name: str, webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    answer, end = ENDS[name]
    async with receiver(answering(answer)) as there:
        assert await webhooks.open(there.url()).send(make_outgoing()) == end
    assert len(there.requests) == 1


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_inward_or_elsewhere(
    code: int, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async with receiver(answering(OK)) as inside, receiver(answering(status(code, f"Location: {inside.url()}"))) as out:
        result = await webhooks.open(out.url()).send(make_outgoing())
    assert result == Permanent(
        why=f"The receiver answered {code} and points to {inside.url()}. "
        "No redirect is followed: declare the address that takes messages."
    )
    assert inside.connections == 0


@pytest.mark.parametrize(
    ("wish", "date", "seconds"),
    [
        (NOW + timedelta(seconds=90), NOW, 90),
        (NOW - timedelta(seconds=90), NOW, 0),
        (NOW + timedelta(days=3650), NOW, 3650 * 86_400),
    ],
)
async def test_a_date_to_come_back_at_is_taken_by_the_receivers_own_clock(
    wish: datetime, date: datetime, seconds: float, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    said = (f"Retry-After: {format_datetime(wish, usegmt=True)}", f"Date: {format_datetime(date, usegmt=True)}")
    async with receiver(answering(status(429, *said))) as there:
        result = await webhooks.open(there.url()).send(make_outgoing(at=0))
    assert result == Retryable(why="The receiver answered 429", retry_after=seconds, is_throttled=True)


async def test_a_date_to_come_back_at_without_the_receivers_date_is_taken_by_the_time_of_the_try(
    webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    until = format_datetime(NOW + timedelta(seconds=30), usegmt=True)
    async with receiver(answering(status(503, f"Retry-After: {until}"))) as there:
        result = await webhooks.open(there.url()).send(make_outgoing(at=int(NOW.timestamp()) * 1_000_000))
    assert result == Retryable(why="The receiver answered 503", retry_after=30, is_throttled=True)


@pytest.mark.parametrize("wish", ["soon", "-5", "1.5", "1e9", "Thu, 99 Foo 2026", "", "٣"])
async def test_a_wish_that_cannot_be_read_is_none(wish: str, webhooks: Webhooks, make_outgoing: MakeOutgoing) -> None:
    async with receiver(answering(status(503, f"Retry-After: {wish}"))) as there:
        result = await webhooks.open(there.url()).send(make_outgoing())
    assert result == Retryable(why="The receiver answered 503")


@pytest.mark.parametrize("code", [502, 504, 524])
async def test_what_a_gateway_did_not_hear_is_sent_again_where_the_receiver_deduplicates(
    code: int, webhooks: Webhooks, make_outgoing: MakeOutgoing
) -> None:
    async with receiver(answering(status(code, "Retry-After: 3600"))) as there:
        result = await webhooks.open(there.url(), deduplicates=True).send(make_outgoing())
    assert result == Retryable(why=f"The receiver answered {code}", retry_after=3600)


async def test_what_is_said_of_an_answer_holds_no_secret_header(
    webhooks: Webhooks, make_outgoing: MakeOutgoing, environment: dict[str, str]
) -> None:
    environment["TWICESHY_SECRET_TOKEN"] = "Bearer t0ken"
    async with receiver(answering(status(401, body="who is Bearer t0ken?"))) as there:
        sink = webhooks.open(there.url(), secret_headers={"Authorization": "env:TWICESHY_SECRET_TOKEN"})
        result = await sink.send(make_outgoing())
    assert result == Permanent(why="The receiver refused it: it answered 401: who is …?")
    assert there.requests[0].headers["authorization"] == "Bearer t0ken"
