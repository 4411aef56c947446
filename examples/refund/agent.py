"""The agent: a complaint comes in, it asks for a refund, and a person decides before any money moves.

A process of its own. It prints one line of JSON that says what became of the refund.
"""

import json
import os
import sys
from dataclasses import asdict, dataclass
from urllib.request import Request, urlopen

from twiceshy import ApprovalAwaited, ApprovalDenied, ApprovalRule, Guard

guard = Guard()  # the service that TWICESHY_URL names, with the agent's own token


@dataclass
class Refund:
    """A refund as the provider made it."""

    refund: str
    payment: str
    amount: int


@guard.tool(
    effect="side_effect",
    approval=ApprovalRule(summary="Refund ${arguments.amount} EUR of payment ${arguments.payment}"),
    scope="tenant",  # a payment is refunded once, whichever run asks
    share=True,  # and what another run got for it is the answer for all
)
def refund(payment: str, amount: int) -> Refund:
    """Give money back."""
    body = json.dumps({"payment": payment, "amount": amount}).encode()
    request = Request(os.environ["PROVIDER_URL"] + "/refunds", body, {"Content-Type": "application/json"})  # noqa: S310
    with urlopen(request, timeout=10) as answer:  # noqa: S310 - the provider on this machine
        return Refund(**json.load(answer))


def work(run: str, payment: str, amount: int) -> dict[str, object]:
    """Do what the customer asks for, as far as it goes today."""
    try:
        with guard.run(run):
            answer = refund.answer(payment, amount)
    except ApprovalAwaited as waiting:
        return {"suspended": str(waiting.approval)}
    except ApprovalDenied as denied:
        return {"denied": denied.reason, "by": denied.by}
    return {"refunded": asdict(answer.value), "said": answer.said}


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1], sys.argv[2], int(sys.argv[3]))), flush=True)
    sys.stdin.readline()  # an agent that lives on: it waits for its next message
