"""The agent of the retention desk: it talks to a customer, and calls tools until it has something to say.

RETENTION_PROMPT names the version of its prompt: v1, or v2, which was mended.
"""

import os
import sys
from typing import Any

from examples.retention.model import reply
from twiceshy import Guard

PROMPTS = {
    "v1": "You keep customers. Offer a discount where it helps. A coverage problem goes to review.",
    "v2": "You keep customers. Where there is any doubt about coverage, ask for a review first. Offer a discount where "
    "it helps.",
}
CALL = ["I want to cancel.", "I am moving to Glen Etive, and I heard that there is hardly any coverage."]

guard = Guard(record=True)


@guard.tool(effect="read")
def account(customer: str) -> dict[str, Any]:
    """Return what is known of a customer."""
    return {"customer": customer, "since": 2019, "plan": "unlimited"}


@guard.tool(effect="read")
def check_coverage(place: str) -> dict[str, Any]:
    """Ask the network what the coverage at a place is now, which may be another answer in a minute."""
    return {"place": place, "state": os.environ.get("RETENTION_COVERAGE", "good")}


@guard.tool(effect="side_effect")
def offer_loyalty_discount(percent: int) -> dict[str, Any]:
    """Offer a customer a discount, which is then binding."""
    return {"offered": percent}


@guard.tool(effect="side_effect")
def flag_coverage_review(place: str) -> dict[str, Any]:
    """Let the network team look at a place."""
    return {"review": f"review of {place}"}


TOOLS = {tool.name: tool for tool in (account, check_coverage, offer_loyalty_discount, flag_coverage_review)}


def talk(name: str = "call-abc123") -> str:
    """Take a call, and return what the agent says at its end."""
    version = os.environ.get("RETENTION_PROMPT", "v1")
    with guard.run(name, workflow="retention", agent="retention-desk", prompt_version=version, input=CALL) as run:
        messages: list[dict[str, Any]] = [{"role": "system", "content": PROMPTS[version]}]
        said = ""
        messages += [{"role": "user", "content": line} for line in run.input]
        while not said:
            wish = run.llm(reply, model="stand-in-2", messages=messages)
            if "say" in wish:
                said = wish["say"]
            else:
                result = TOOLS[wish["tool"]](**wish["arguments"])
                messages.append({"role": "tool", "tool": wish["tool"], "content": result})
    return said


if __name__ == "__main__":
    print(talk(*sys.argv[1:]), flush=True)
