"""Answers of another run: whose they are, and who agreed to that."""

from collections.abc import Callable
from typing import Unpack

import pytest

from tests.unit.sdk.scripted import KEY, ScriptedService, answered, replays
from twiceshy import ClaimedByAnother, Guard, Rejected, ResultNotKept, Tool, ToolOptions
from twiceshy._transports.base import Reply

Serve = Callable[..., tuple[Guard, ScriptedService]]


def of_another(result: object = 14) -> Reply:
    return replays(result, shared={"run": "mail-7"})


def tool(guard: Guard, **options: Unpack[ToolOptions]) -> Tool[[int], int]:
    @guard.tool(**options)
    def pay(amount: int) -> int:
        pytest.fail("ran")

    return pay


def test_what_another_run_has_done_is_not_done_again_and_not_taken_as_ones_own(serve: Serve) -> None:
    guard, _ = serve(of_another())
    with guard.run("booking-42"), pytest.raises(ClaimedByAnother, match=r"run mail-7 has done it.*step 1") as caught:
        tool(guard, scope="tenant")(7)
    claimed = caught.value
    assert (claimed.result, claimed.run, claimed.step, claimed.key) == (14, "mail-7", 1, KEY)


def test_a_tool_that_shares_takes_another_runs_answer(serve: Serve) -> None:
    guard, _ = serve(of_another())
    with guard.run("booking-42"):
        assert tool(guard, scope="tenant", share=True)(7) == 14


def test_whoever_names_a_business_key_agrees_to_share_it(serve: Serve) -> None:
    guard, _ = serve(of_another())
    with guard.run("booking-42"):
        assert tool(guard).with_key(business_key="invoice-9")(7) == 14


def test_a_tool_that_says_it_does_not_share_does_not_by_a_business_key_either(serve: Serve) -> None:
    guard, _ = serve(of_another())
    with guard.run("booking-42"), pytest.raises(ClaimedByAnother):
        tool(guard, share=False).with_key(business_key="invoice-9")(7)


@pytest.mark.parametrize(("said", "held"), [(False, True), (True, False), (None, True)])
def test_what_a_person_set_in_the_registry_wins_over_the_code(serve: Serve, *, said: bool | None, held: bool) -> None:
    guard, service = serve(of_another())
    service.declaration = answered(200, {"declaration": {"class": "side_effect", "share": held}})
    pay = tool(guard, scope="tenant", share=said)
    with guard.run("booking-42"):
        if held:
            assert pay(7) == 14
        else:
            with pytest.raises(ClaimedByAnother):
                pay(7)


def test_another_runs_rejection_is_a_rejection_here_too(serve: Serve) -> None:
    rejection: dict[str, object] = {"type": "CardDeclined", "message": "no money"}
    guard, _ = serve(replays(error=rejection, shared={"run": "mail-7"}, said="refused at step 1 of run mail-7"))
    with guard.run("booking-42"), pytest.raises(Rejected, match="no money") as caught:
        tool(guard, scope="tenant")(7)
    assert caught.value.type == "CardDeclined"
    assert caught.value.__notes__ == ["twiceshy: refused at step 1 of run mail-7. It was not asked for again."]


def test_a_claim_whose_result_was_not_kept_says_so_as_its_cause(serve: Serve) -> None:
    opaque = {"type": "bytes", "size": 9, "sha256": None, "reason": "it is too large"}
    guard, _ = serve(of_another({"$opaque": opaque}))
    with guard.run("booking-42"), pytest.raises(ClaimedByAnother) as caught:
        tool(guard, scope="tenant")(7)
    assert caught.value.result is None
    assert isinstance(caught.value.__cause__, ResultNotKept)


def test_a_claim_by_a_caller_without_a_run_names_none(serve: Serve) -> None:
    guard, _ = serve(replays(14, shared={"run": None}, step=None))
    with guard.run("booking-42"), pytest.raises(ClaimedByAnother, match="another caller has done it") as caught:
        tool(guard, share=False).with_key(business_key="invoice-9")(7)
    assert caught.value.run is None
