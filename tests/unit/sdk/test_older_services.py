"""A service that is older than the SDK passes over what it does not know: no message is lost that way."""

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.unit.sdk.scripted import ScriptedService, committed, executes, failed, given, problem
from twiceshy import Guard, SetupError, current_effect
from twiceshy._transports.base import Reply, Request
from twiceshy._transports.batch import replies_of

Serve = Callable[..., tuple[Guard, ScriptedService]]


def speaking(contract: str | None) -> Callable[[Request], Reply]:
    """Grant the lease as a service that says it speaks this contract."""

    def grant(request: Request) -> Reply:
        reply = given(executes(), request)
        assert isinstance(reply, Reply)
        return replace(reply, contract=contract)

    return grant


@pytest.mark.parametrize(
    ("contract", "said"),
    [("3", "the service speaks contract 3 and knows no outbox"), (None, "knows no outbox"), ("x", "knows no outbox")],
)
def test_staging_at_a_service_that_would_pass_over_it_is_refused(serve: Serve, contract: str | None, said: str) -> None:
    guard, service = serve(speaking(contract), failed("failed"))

    @guard.tool
    def book() -> int:
        current_effect().stage("orders", {"order": 7})
        return 14

    with guard.run("booking-42"), pytest.raises(SetupError, match=f"book staged nothing: .*{said}.*upgrade it first"):
        book()
    assert service.paths[-1] != "commit"


@pytest.mark.parametrize("contract", ["4", "17"])
def test_a_service_of_this_contract_or_a_later_one_takes_messages(serve: Serve, contract: str) -> None:
    guard, service = serve(speaking(contract), committed())

    @guard.tool
    def book() -> int:
        current_effect().stage("orders", {"order": 7})
        return 14

    with guard.run("booking-42"):
        assert book() == 14
    assert service.bodies("commit")[0]["outbox"] == [{"destination": "orders", "payload": {"order": 7}}]


def test_a_tool_that_stages_nothing_runs_with_an_older_service(serve: Serve) -> None:
    guard, _ = serve(speaking(None), committed())

    @guard.tool
    def book() -> int:
        return 14

    with guard.run("booking-42"):
        assert book() == 14


def test_a_service_without_an_outbox_is_named_where_a_tool_only_stages(serve: Serve) -> None:
    unserved = problem("not-found", 404, detail="Nothing is served at /v1/outbox.")
    guard, _ = serve(unserved)

    @guard.tool(sink="orders")
    def announce() -> str:
        return "order 7"

    with guard.run("booking-42"), pytest.raises(SetupError, match="older than this SDK: upgrade it first"):
        announce()


def test_each_answer_of_a_batch_is_of_the_contract_of_its_service() -> None:
    body = b'{"answers":[{"status":200,"body":{}},{"status":409,"body":{}}]}'
    replies = replies_of(Reply(status=200, content_type="application/json", body=body, contract="4"), 2)
    assert [reply.contract for reply in replies or () if isinstance(reply, Reply)] == ["4", "4"]
