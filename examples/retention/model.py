"""A stand-in for a language model: what it says depends on its prompt alone, as that of a model at temperature 0.

It weighs what it was told: a customer who wants to leave is worth an offer, unless the coverage at the new address is
the reason. What counts as such a reason, the prompt says.
"""

from typing import Any


def reply(*, model: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what to do next in a conversation: call a tool, or answer the customer."""
    del model
    told = str(messages[0]["content"])
    results = {message["tool"]: message["content"] for message in messages if message["role"] == "tool"}
    said = " ".join(str(message["content"]) for message in messages if message["role"] == "user")
    if "account" not in results:
        return _call("account", {"customer": "c-17"})
    if "moving" in said and "check_coverage" not in results:
        return _call("check_coverage", {"place": "Glen Etive"})
    if _is_coverage_issue(told, results.get("check_coverage", {})) and "flag_coverage_review" not in results:
        return _call("flag_coverage_review", {"place": "Glen Etive"})
    if "flag_coverage_review" in results:
        return {"say": "I have passed your new address on to our network team. They call you today."}
    if "offer_loyalty_discount" not in results:
        return _call("offer_loyalty_discount", {"percent": 20})
    return {"say": "I can offer you 20 percent off for a year."}


def _is_coverage_issue(told: str, coverage: dict[str, Any]) -> bool:
    """Judge as the prompt says: what is degraded is an outage that passes, unless the prompt asks for more care."""
    state = coverage.get("state")
    return state == "none" or (state == "degraded service" and "any doubt about coverage" in told)


def _call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"tool": tool, "arguments": arguments}
