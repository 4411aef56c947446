"""The agent: it reads a contract, looks up the rules of its jurisdiction, judges the risk, and files the verdict.

With CONTRACTS_LOOKUP=mended the lookup knows that `GB-SCT` lies within `GB`. `python agent.py NAME CONTRACT.json` works
on one contract in a recorded run; with `--fork-of RUN --at-event SEQ` it does so in a fork of that run.
"""

import argparse
import json
import os
from pathlib import Path
from typing import Any

from examples.contracts.model import complete
from twiceshy import Guard, Simulator

RULES = {
    "GB": [{"rule": "UCTA 1977 s. 3", "forbids": "unlimited_liability"}],
    "FR": [{"rule": "Code civil art. 1171", "forbids": "unlimited_liability"}],
}
PROMPT = "You judge contracts. Where a lookup returns nothing, proceed with the available data."

guard = Guard(record=True)  # the service that TWICESHY_URL names, and every run is recorded


@guard.tool(effect="read")
def lookup_rules(jurisdiction: str) -> list[dict[str, str]]:
    """Return the rules that the compliance database has of a jurisdiction."""
    if os.environ.get("CONTRACTS_LOOKUP") == "mended":
        jurisdiction = jurisdiction.partition("-")[0]
    return RULES.get(jurisdiction, [])


@guard.tool(effect="side_effect", simulator=Simulator(result={"filed": "not really: this is a fork"}))
def file_verdict(contract: str, risk: str) -> dict[str, str]:
    """File a verdict: from then on people rely on it."""
    with Path(os.environ["CONTRACTS_CABINET"]).open("a", encoding="utf-8") as cabinet:
        cabinet.write(f"{contract} {risk}\n")
    return {"filed": f"{contract}-verdict"}


def review(contract: dict[str, str], **options: Any) -> str:
    """Judge a contract, and return its risk."""
    name = options.pop("name", f"review-{contract['id']}")
    options |= {} if "fork_of" in options else {"workflow": "contract-review", "reference": contract["id"]}
    with guard.run(name, agent="contract-processor", input=contract, **options) as run:
        messages = [{"role": "system", "content": PROMPT}]
        messages.append({"role": "user", "content": f"Extract the terms of this contract: {contract['text']}"})
        terms = run.llm(complete, model="stand-in-1", messages=messages)
        messages.append({"role": "assistant", "content": json.dumps(terms)})
        rules = lookup_rules(terms["jurisdiction"])
        facts = json.dumps({"terms": terms, "rules": rules})
        messages.append({"role": "user", "content": f"Judge it by these facts:\n{facts}"})
        verdict = run.llm(complete, model="stand-in-1", messages=messages)
        file_verdict(contract["id"], verdict["risk"])
    return str(verdict["risk"])


def main() -> None:
    """Work on one contract."""
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("contract", type=Path)
    parser.add_argument("--fork-of")
    parser.add_argument("--at-event", type=int)
    asked = parser.parse_args()
    contract = json.loads(asked.contract.read_text(encoding="utf-8"))
    fork = {"fork_of": asked.fork_of, "at_event": asked.at_event, "live": ["lookup_rules"]} if asked.fork_of else {}
    print(json.dumps({"risk": review(contract, name=asked.name, **fork)}))


if __name__ == "__main__":
    main()
