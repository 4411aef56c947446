"""A stand-in for a language model: what it says depends on its prompt alone, as that of a model at temperature 0.

It reads what a prompt tells it and no more, so that a wrong answer has its cause in what the agent gave it.
"""

import json
import re
from typing import Any


def complete(*, model: str, messages: list[dict[str, str]]) -> dict[str, Any]:
    """Answer the last message of a conversation."""
    del model
    asked = messages[-1]["content"]
    if asked.startswith("Extract"):
        return _terms(asked)
    return _verdict(messages[0]["content"], asked)


def _terms(asked: str) -> dict[str, Any]:
    jurisdiction = re.search(r"governed by the law of ([A-Z-]+)", asked)
    amount = re.search(r"EUR ([0-9]+)", asked)
    return {
        "jurisdiction": jurisdiction[1] if jurisdiction else None,
        "amount": int(amount[1]) if amount else None,
        "unlimited_liability": "unlimited liability" in asked,
    }


def _verdict(told: str, asked: str) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(asked.partition("\n")[2])
    rules = facts["rules"]
    if not rules:
        is_told_to_go_on = "proceed with the available data" in told
        why = "no rule is known to be broken" if is_told_to_go_on else "the jurisdiction's rules are not known"
        return {"risk": "low" if is_told_to_go_on else "unknown", "why": why}
    broken = [rule["rule"] for rule in rules if facts["terms"].get(rule["forbids"])]
    return {"risk": "high" if broken else "low", "why": f"breaks {', '.join(broken)}" if broken else "breaks no rule"}
