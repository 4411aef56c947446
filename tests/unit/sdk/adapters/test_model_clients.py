"""The clients of openai and anthropic, as their users write them, record and are served without a connection."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx
import openai
import pytest

import twiceshy
from tests.unit.sdk.adapters.loopback import PATIENCE, Answering, free_url, says, serving, streams
from tests.unit.sdk.adapters.models import CHAT, MESSAGE, chat_parts, message_parts
from tests.unit.sdk.adapters.recorded import arguments, calls, recorded, same_again, value
from twiceshy.adapters.httpx2 import AsyncRecordingTransport, RecordingTransport
from twiceshy_contract.events import Intent


def after_the_first(number: int, may_go_on: threading.Event) -> None:
    if number:
        may_go_on.wait(PATIENCE)


MESSAGES: Any = [{"role": "user", "content": "Which law?"}]


@pytest.fixture(autouse=True)
def instrumented() -> Iterator[None]:
    with twiceshy.instrument("openai", "anthropic"):
        yield


def openai_asks(url: str, **how: Any) -> Callable[[], Any]:
    def agent() -> Any:
        with openai.OpenAI(api_key="hidden", base_url=f"{url}/v1", timeout=PATIENCE) as client:
            said = client.chat.completions.create(model="gpt-5", messages=MESSAGES, **how)
            return list(said) if how.get("stream") else said

    return agent


def openai_asks_async(url: str, **how: Any) -> Callable[[], Any]:
    async def agent() -> Any:
        async with openai.AsyncOpenAI(api_key="hidden", base_url=f"{url}/v1", timeout=PATIENCE) as client:
            said: Any = await client.chat.completions.create(model="gpt-5", messages=MESSAGES, **how)
            return [each async for each in said] if how.get("stream") else said

    return agent


def anthropic_asks(url: str, **how: Any) -> Callable[[], Any]:
    def agent() -> Any:
        with anthropic.Anthropic(api_key="hidden", base_url=url, timeout=PATIENCE) as client:
            said = client.messages.create(model="claude-5", max_tokens=9, messages=MESSAGES, **how)
            return list(said) if how.get("stream") else said

    return agent


def anthropic_asks_async(url: str, **how: Any) -> Callable[[], Any]:
    async def agent() -> Any:
        async with anthropic.AsyncAnthropic(api_key="hidden", base_url=url, timeout=PATIENCE) as client:
            said: Any = await client.messages.create(model="claude-5", max_tokens=9, messages=MESSAGES, **how)
            return [each async for each in said] if how.get("stream") else said

    return agent


OPENAI = [openai_asks, openai_asks_async]
ANTHROPIC = [anthropic_asks, anthropic_asks_async]


@pytest.mark.parametrize("asks", [*OPENAI, *ANTHROPIC])
@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_the_same_objects_come_out_of_the_record(asks: Callable[..., Callable[[], Any]], *, is_streamed: bool) -> None:
    is_openai = asks in OPENAI
    parts = chat_parts("Low ", "risk.") if is_openai else message_parts("Low ", "risk.")
    whole = says(CHAT if is_openai else MESSAGE, request_id="req-1", x_request_id="req-1")
    how: Any = {"stream": True} if is_streamed else {}
    with serving(streams(parts) if is_streamed else whole) as server:
        agent = asks(server.url, **how)
        live, recording = recorded(agent)
    again = same_again(recording, agent)
    assert again == live
    assert getattr(again, "_request_id", None) == getattr(live, "_request_id", None)
    assert calls(recording) == [("llm_call", "gpt-5" if is_openai else "claude-5")]
    asked = arguments(recording)
    assert (asked["messages"], asked["method"]) == (MESSAGES, "POST")
    assert "hidden" not in str(recording.events[:])
    if is_streamed:
        assert value(recording)["stream"]["end"] == "complete"


@pytest.mark.parametrize("asks", [*OPENAI, *ANTHROPIC])
def test_what_the_client_tries_again_is_two_calls(asks: Callable[..., Callable[[], Any]]) -> None:
    answers: list[Answering] = [
        says({"error": {"type": "rate_limit_error", "message": "slow down"}}, 429, retry_after_ms="1"),
        says(CHAT if asks in OPENAI else MESSAGE),
    ]
    with serving(*answers) as server:
        agent = asks(server.url)
        live, recording = recorded(agent)
    assert [value(recording, call)["status"] for call in (0, 1)] == [429, 200]
    assert same_again(recording, agent) == live


@pytest.mark.parametrize("asks", OPENAI)
def test_a_stream_that_breaks_raises_again_what_the_client_raised(asks: Callable[..., Callable[[], Any]]) -> None:
    with serving(streams(chat_parts("Low ", "risk.")[:2], breaks=True)) as server:
        agent = asks(server.url, stream=True)
        kept: list[Any] = []

        def caught() -> Any:
            try:
                agent()
            except openai.APIConnectionError as error:
                return type(error), str(error)

        async def caught_async() -> Any:
            try:
                await agent()
            except openai.APIConnectionError as error:
                return type(error), str(error)

        catching = caught if asks is openai_asks else caught_async
        live, recording = recorded(catching)
        kept.append(live)
    assert live == (openai.APIConnectionError, "Connection error.")
    assert same_again(recording, catching) == live
    assert value(recording)["stream"]["end"] == "cut"


@pytest.mark.parametrize("asks", [openai_asks, anthropic_asks])
def test_a_provider_that_is_not_there_is_so_again(asks: Callable[..., Callable[[], Any]]) -> None:
    url = free_url()

    def agent() -> Any:
        how: Any = {"extra_headers": {"x-stainless-helper": "none"}}
        try:
            asks(url, **how)()
        except (openai.APIConnectionError, anthropic.APIConnectionError) as error:
            return type(error), str(error)

    with pytest.MonkeyPatch.context() as patch:
        for module in (openai, anthropic):
            patch.setattr(f"{module.__name__}._base_client.INITIAL_RETRY_DELAY", 0.001)
        live, recording = recorded(agent)
        assert len(calls(recording)) == 3
        assert same_again(recording, agent) == live


def test_the_first_piece_reaches_the_agent_before_the_model_says_the_second() -> None:
    may_go_on = threading.Event()
    seen: list[str | None] = []

    def agent() -> Any:
        with openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", timeout=PATIENCE) as client:
            for piece in client.chat.completions.create(model="gpt-5", messages=MESSAGES, stream=True):
                seen.append(piece.choices[0].delta.content)
                may_go_on.set()

    def before_each(number: int) -> None:
        if number:
            assert may_go_on.wait(PATIENCE)

    with serving(streams(chat_parts("Low ", "risk."), before_each=before_each)) as server:
        recorded(agent)
    assert seen == ["Low ", "risk."]


def test_an_agent_that_stops_listening_is_recorded_so() -> None:
    may_end = threading.Event()

    def agent() -> Any:
        client = openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", timeout=PATIENCE)
        with client, client.chat.completions.create(model="gpt-5", messages=MESSAGES, stream=True) as said:
            return next(iter(said)).choices[0].delta.content

    with serving(streams(chat_parts("a", "b"), before_each=lambda number: after_the_first(number, may_end))) as server:
        live, recording = recorded(agent)
        may_end.set()
    assert live == "a"
    assert value(recording)["stream"]["end"] == "stopped"
    assert same_again(recording, agent) == "a"


def test_a_transport_that_is_given_records_without_instrument(instrumented: None) -> None:
    def agent() -> Any:
        http = openai.DefaultHttpxClient(transport=RecordingTransport())
        with openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", http_client=http) as client:
            return client.chat.completions.create(model="gpt-5", messages=MESSAGES)

    async def agent_async() -> Any:
        http = anthropic.DefaultAsyncHttpxClient(transport=AsyncRecordingTransport())
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.url, http_client=http) as client:
            return await client.messages.create(model="claude-5", max_tokens=9, messages=MESSAGES)

    with serving(says(CHAT), says(MESSAGE)) as server:
        first, of_first = recorded(agent)
        second, of_second = recorded(agent_async)
    assert (len(calls(of_first)), len(calls(of_second))) == (1, 1)
    assert (same_again(of_first, agent), same_again(of_second, agent_async)) == (first, second)


def test_a_client_of_openai_over_the_older_httpx_records_too() -> None:
    def agent() -> Any:
        older: Any = httpx.Client()
        with openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", http_client=older) as client:
            return client.chat.completions.create(model="gpt-5", messages=MESSAGES)

    with serving(says(CHAT)) as server, twiceshy.instrument("httpx"):
        live, recording = recorded(agent)
        server.shutdown()
        assert calls(recording) == [("llm_call", "gpt-5")]
        assert same_again(recording, agent) == live


def test_a_conversation_is_kept_message_by_message() -> None:
    long: Any = [{"role": "user", "content": f"{number} {'x' * 600}"} for number in range(6)]

    def agent() -> Any:
        with openai.OpenAI(api_key="k", base_url=f"{server.url}/v1") as client:
            for most in (3, 4, 5, 6):
                client.chat.completions.create(model="gpt-5", messages=long[:most])

    with serving(says(CHAT)) as server:
        _, recording = recorded(agent)
    assert arguments(recording, 3)["messages"] == long
    said: list[Any] = [event.arguments for event in recording.events if isinstance(event, Intent)]
    assert all(set(asked["messages"]) == {"$list"} for asked in said)
    same_again(recording, agent)
