"""A shop's tools behind a guard that may send nothing, and the log of an agent that used them."""

from typing import Any, Never

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN, unsent
from twiceshy import Recording

guard = unsent()


def really_ran(*what: object) -> Never:
    raise AssertionError(f"{what} really ran")


@guard.tool(effect="read")
def look_up(order: str) -> dict[str, Any]:
    really_ran("look_up", order)


@guard.tool(effect="side_effect")
def charge(order: str, amount: int) -> str:
    really_ran("charge", order, amount)


@guard.tool(effect="side_effect")
def refund(order: str, amount: int) -> str:
    really_ran("refund", order, amount)


@guard.tool(effect="side_effect")
def notify(text: str) -> None:
    really_ran("notify", text)


@guard.tool(effect="read")
async def look_up_async(order: str) -> dict[str, Any]:
    really_ran("look_up_async", order)


@guard.tool(effect="side_effect")
async def charge_async(order: str, amount: int) -> str:
    really_ran("charge_async", order, amount)


@guard.tool(effect="side_effect")
async def refund_async(order: str, amount: int) -> str:
    really_ran("refund_async", order, amount)


def ask(prompt: str) -> str:
    really_ran("ask", prompt)


async def ask_async(prompt: str) -> str:
    really_ran("ask_async", prompt)


def recording_of(*, suffix: str = "") -> Recording:
    """Return the log of: look up a and b, ask a model, charge a."""
    log = Writing(RUN)
    log.tool(f"look_up{suffix}", {"order": "a"}, {"price": 5})  # events 1, 2
    log.tool(f"look_up{suffix}", {"order": "b"}, {"price": 7})  # events 3, 4
    log.call("llm_call", f"ask{suffix}", {"prompt": "which of 5 and 7?"}, "a")  # events 5, 6
    log.tool(f"charge{suffix}", {"order": "a", "amount": 5}, "charged a")  # events 7, 8
    return log.recording()


def agent() -> str:
    with guard.run(RUN) as run:
        prices = [look_up(order)["price"] for order in ("a", "b")]
        order = run.llm(ask, prompt=f"which of {prices[0]} and {prices[1]}?")
        return charge(order, prices[0] if order == "a" else prices[1])


async def agent_async() -> str:
    async with guard.run(RUN) as run:
        prices = [(await look_up_async(order))["price"] for order in ("a", "b")]
        order = await run.llm(ask_async, prompt=f"which of {prices[0]} and {prices[1]}?")
        return await charge_async(order, prices[0] if order == "a" else prices[1])
