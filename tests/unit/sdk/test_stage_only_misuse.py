"""What is wrong about a stage-only tool, or about what it makes, is said where it is, and the service is not asked."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.scripted import ScriptedService
from twiceshy import Guard, Mail, Message, MessageRefused, NoEffect, SetupError, Unproven, current_effect

Serve = Callable[..., tuple[Guard, ScriptedService]]


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (7, SetupError, "its function returned a value of type int. A tool with a sink returns a Mail"),
        ([7], SetupError, "its function returned a value of type int"),
        ([None], SetupError, "its function returned a value of type NoneType"),
        ([], MessageRefused, "made no message"),
        (["x"] * 101, MessageRefused, "101 messages"),
        ([Mail(to=[f"a{n}@example.com" for n in range(51)], subject="", text="")] * 2, MessageRefused, "102 messages"),
        (["x" * 600_000] * 2, MessageRefused, "bytes of one effect|bytes, and 983040 are the most"),
    ],
)
def test_what_cannot_be_staged_is_refused_before_the_service_is_asked(
    serve: Serve, made: object, error: type[Exception], said: str
) -> None:
    guard, service = serve()

    @guard.tool(sink="orders")
    def announce() -> object:
        return made

    with guard.run("booking-42"), pytest.raises(error, match=said):
        announce()
    assert service.requests == []


def test_what_the_function_raises_is_raised_and_nothing_is_asked(serve: Serve) -> None:
    guard, service = serve()

    @guard.tool(sink="orders")
    def announce() -> str:
        raise LookupError("no such order")

    @guard.tool(sink="orders", name="soon")
    async def announce_soon() -> str:
        return current_effect().key

    with guard.run("booking-42"):
        with pytest.raises(LookupError, match="no such order"):
            announce()
        with pytest.raises(NoEffect, match="soon stages messages and does nothing else"):
            asyncio.run(announce_soon())
    assert service.requests == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sink": ""}, "sink must be a text of 1 to 100 letters"),
        ({"sink": "a b"}, "destinations list"),
        ({"sink": 7}, "sink must be a text, not a whole number"),
        ({"sink": "mail", "effect": "read"}, "leave out effect='read'"),
        ({"sink": "mail", "one_request": True}, "one_request would do nothing"),
        ({"sink": "mail", "lease_seconds": 5, "on_doubt": "tell"}, "lease_seconds, on_doubt would do nothing"),
        ({"snik": "mail"}, "There is no option snik; did you mean sink?"),
    ],
)
def test_an_option_that_means_nothing_is_refused_where_it_is_said(options: dict[str, Any], said: str) -> None:
    def send(to: str) -> None: ...

    with pytest.raises(SetupError, match=said):
        Guard("http://127.0.0.1:1", spool=None).tool(**options)(send)


def test_a_probe_and_a_mark_of_sending_do_not_go_with_a_sink() -> None:
    guard = Guard("http://127.0.0.1:1", spool=None)

    @guard.tool(sink="mail")
    def send(to: str) -> None: ...

    with pytest.raises(SetupError, match="there is nothing to probe"):
        send.probe(lambda _: Unproven("?"))
    with pytest.raises(SetupError, match=r"effect\.sending"):

        @guard.tool(sink="mail", name="other")
        def other(to: str) -> None:
            with current_effect().sending():
                pass


@pytest.mark.parametrize(
    ("made", "noun"),
    [
        (lambda headers: Message(text="hello", headers=headers), "message"),
        (lambda headers: Mail(to="ann@example.com", subject="", text="", headers=headers), "mail"),
    ],
)
def test_more_headers_than_a_receiver_takes_are_refused_where_they_are_said(
    made: Callable[[dict[str, str]], object], noun: str
) -> None:
    headers = {f"h{number}": "v" for number in range(51)}
    with pytest.raises(MessageRefused) as refused:
        made(headers)
    assert str(refused.value) == (
        f"The {noun} cannot be staged: headers must be an object of 50 members or less. Nothing was staged; correct it."
    )
    assert refused.value.path == "/headers"
    headers.popitem()
    made(headers)
