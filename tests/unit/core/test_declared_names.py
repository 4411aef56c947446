"""Declarations that would quietly do nothing: expressions over what is not known, parts that a read never obeys."""

from typing import Any

import msgspec
import pytest

from guard.core.declarations import refusals
from twiceshy_contract.tools import ToolDeclaration

ASKS = {"url": "https://pay.example/v1/charges/${downstream_key}", "applied": "status == `200`", "not_applied": "body"}


def refused(**parts: Any) -> list[tuple[str, str]]:
    """Return the places that are refused, and why."""
    declaration = msgspec.convert(parts, ToolDeclaration)
    return [(refusal.path, refusal.reason) for refusal in refusals("pay", declaration)]


@pytest.mark.parametrize(
    ("parts", "place"),
    [
        ({"approval": {"when": "amount > `50`"}}, "/approval/when"),
        ({"approval": {"when": "tool == 'pay'"}}, "/approval/when"),
        ({"approval": {"summary": "${result}"}}, "/approval/summary"),
        ({"compensation": {"tool": "refund", "arguments": {"id": "${reslt.id}"}}}, "/compensation/arguments/id"),
        ({"simulator": {"result": ["${result}"]}}, "/simulator/result/0"),
        ({"resource": {"name": "room-${room}", "start": "/start", "minutes": "/minutes"}}, "/resource/name"),
        ({"probe": {**ASKS, "applied": "stats == `200`"}}, "/probe/applied"),
        ({"probe": {**ASKS, "url": "https://pay.example/${ky}"}}, "/probe/url"),
        ({"probe": {**ASKS, "headers": {"A": "${secret.x}"}}}, "/probe/headers/A"),
        ({"probe": {**ASKS, "body": {"a": "${env.TWICESHY_SECRET_A}"}}}, "/probe/body/a"),
    ],
)
def test_an_expression_about_what_is_not_known_there_is_refused(parts: dict[str, Any], place: str) -> None:
    ((path, reason),) = refused(**parts)
    assert (path, "is nothing that is known here" in reason) == (place, True)


@pytest.mark.parametrize(
    "parts",
    [
        {"approval": {}},
        {"compensation": {"tool": "refund"}},
        {"key": {"rule": "step"}},
        {"key": {"scope": "tenant", "window_seconds": 60}},
        {"loop_limit": 3},
        {"provider_key_header": "Idempotency-Key"},
        {"provider_window_seconds": 60},
        {"repeat": "ask"},
        {"resource": {"name": "room", "start": "/start", "minutes": "/minutes"}},
        {"share": False},
    ],
)
def test_what_means_nothing_for_a_tool_that_only_reads_is_refused(parts: dict[str, Any]) -> None:
    ((path, reason),) = refused(**{"class": "read", **parts})
    assert (path, "leaves no record" in reason) == (f"/{next(iter(parts))}", True)


def test_what_a_fork_or_the_record_asks_of_a_tool_that_only_reads_is_taken() -> None:
    said = {"fork": "recorded", "simulator": {"result": 1}, "redacted": ["/card"], "lease_seconds": 60}
    assert refused(**{"class": "read", **said}) == []
