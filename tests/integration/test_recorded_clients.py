"""An agent over clients of models and of HTTP, recorded by the service and replayed where nobody listens any more."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

import twiceshy
from tests.service import ServiceProcess
from tests.unit.sdk.adapters.loopback import Handler, serving
from tests.unit.sdk.adapters.models import CHAT, chat_parts
from twiceshy import Guard, Recording
from twiceshy._replay import replay
from twiceshy_contract.events import Intent


@pytest.fixture
def guard(service: ServiceProcess) -> Iterator[Guard]:
    with Guard(service.url, spool=None, record=True) as guard, twiceshy.instrument("openai", "httpx"):
        yield guard


def provider(handler: Handler) -> None:
    """Answer as a model, as a register of companies and as a bank."""
    if handler.path == "/register":
        handler.say(200, json.dumps({"zulu": "x" * 2000, "alpha": 1}).encode())
    elif handler.path == "/pay":
        handler.say(200, b'{"paid": 3}')
    elif handler.json.get("stream"):
        handler.begin()
        for part in chat_parts("Low ", "risk."):
            handler.part(part)
        handler.end()
    else:
        handler.say(200, json.dumps(CHAT).encode())


def test_an_agent_replays_from_a_file_with_its_providers_gone(guard: Guard, run: str, tmp_path: Path) -> None:
    @guard.tool
    def pay(amount: int) -> Any:
        return httpx.post(f"{url}/pay", json={"amount": amount}).json()

    def agent() -> Any:
        with guard.run(run), openai.OpenAI(api_key="hidden", base_url=f"{url}/v1") as client:
            messages: Any = [{"role": "user", "content": httpx.get(f"{url}/register").text}]
            said = client.chat.completions.create(model="gpt-5", messages=messages)
            messages.append({"role": "assistant", "content": said.choices[0].message.content})
            pieces = client.chat.completions.create(model="gpt-5", messages=messages, stream=True)
            return "".join(piece.choices[0].delta.content or "" for piece in pieces), pay(3)

    with serving(provider) as server:
        url = server.url
        live = agent()
        asked = len(server.requests)
    assert (live, asked) == (("Low risk.", {"paid": 3}), 4)
    with guard.recording(run) as recording:
        recording.save(tmp_path / "run.jsonl")
    text = (tmp_path / "run.jsonl").read_text()
    assert "hidden" not in text
    with Recording.load(tmp_path / "run.jsonl") as recording:
        host = url.removeprefix("http://")
        assert [(event.kind, event.name) for event in recording.events if isinstance(event, Intent)] == [
            ("custom", f"GET {host}"), ("llm_call", "gpt-5"), ("llm_call", "gpt-5"), ("tool_call", "pay"),
        ]  # fmt: skip
        again = replay(recording, agent)
    assert (again.value, again.is_same) == (live, True), again.report()


def test_a_model_call_that_is_named_by_the_agent_is_one_event(guard: Guard, run: str) -> None:
    def agent() -> Any:
        with guard.run(run) as here, openai.OpenAI(api_key="k", base_url=f"{url}/v1") as client:
            create: Any = client.chat.completions.create
            said = here.llm(create, model="gpt-5", messages=[{"role": "user", "content": "?"}])
            return said.choices[0].message.content

    with serving(provider) as server:
        url = server.url
        live = agent()
    with guard.recording(run) as recording:
        assert len(recording) == 2
        assert replay(recording, agent).value == live == "Low risk."


def test_members_of_a_large_result_come_back_in_their_order(guard: Guard, run: str) -> None:
    def agent() -> list[str]:
        with guard.run(run) as here:
            return list(here.custom("look", lambda: {"zulu": "x" * 2000, "alpha": 1}))

    assert agent() == ["zulu", "alpha"]
    with guard.recording(run) as recording:
        assert replay(recording, agent).value == ["zulu", "alpha"]
