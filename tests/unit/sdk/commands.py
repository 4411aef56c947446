"""The command line run against a service that says what the test wrote down."""

import os
from collections.abc import Callable
from typing import Any

import msgspec
from click.testing import CliRunner, Result

from tests.unit.sdk.real_server import Handler, serving
from tests.unit.sdk.scripted import KEY, about
from twiceshy._commands import main
from twiceshy._transports.base import Reply

Asked = list[tuple[str, str, Any]]

SUMMARY = about(
    state="in_doubt", rule="once", business_key=None, began_at="2026-10-12T14:00:00Z", ended_at=None,
    lease_expires_at=None, worker="host:1", closed=False,
)  # fmt: skip


def run(handler: Handler, *arguments: str, input: str | None = None) -> Result:  # noqa: A002 - as the runner calls it
    """Run a command against a scripted service, without any TWICESHY_* variable of ours."""
    clean: dict[str, str | None] = {name: None for name in os.environ if name.startswith("TWICESHY_")}
    with serving(handler) as url:
        return CliRunner().invoke(main, [*arguments, "--url", url, "--token", "secret"], input=input, env=clean)


def answering(asked: Asked, answers: Callable[[str, str], Reply]) -> Handler:
    """Note what is asked, and answer by method and path."""

    def handler(method: str, path: str, headers: dict[str, str], body: bytes) -> Reply:
        asked.append((method, path, msgspec.json.decode(body or b"null")))
        return answers(method, path)

    return handler


def numbered(number: int) -> dict[str, object]:
    """Return an effect of a listing, with a key and step of that number."""
    return {**SUMMARY, "key": f"{number:064x}", "step": number}


__all__ = ["KEY", "SUMMARY", "Asked", "answering", "numbered", "run"]
