"""Tell the story of a refund, with a real service, a real provider, agents that are killed, and a person."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final, cast

from guard.demo.processes import Child, ChildFailed, Children, interruptible

_HERE: Final = Path(__file__).parent
_AGENT_TOKEN: Final = "agents-secret"
_ALICE_TOKEN: Final = "alices-secret"
_SECONDS: Final = 30.0


class Story:
    """The service, the provider with its ledger, agents, and Alice."""

    def __init__(self, folder: Path, children: Children) -> None:
        self._children = children
        self._ledger = folder / "ledger.jsonl"
        settings = {"TWICESHY_TOKENS": _AGENT_TOKEN, "TWICESHY_APPROVERS": f"alice:{_ALICE_TOKEN}"}
        serve = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--log", "problems"]
        serve += ["--database", f"sqlite:///{folder / 'guard.db'}"]
        service = _address(children.start("The guard's service", serve, settings))
        keep_ledger = [sys.executable, str(_HERE / "provider.py"), str(self._ledger)]
        provider = _address(children.start("The provider", keep_ledger))
        self._environment = {"TWICESHY_URL": service, "TWICESHY_TOKEN": _AGENT_TOKEN, "PROVIDER_URL": provider}

    def agent(self, run: str, payment: str, amount: int) -> tuple[Child, dict[str, Any]]:
        """Start an agent, and read what it says; it lives on."""
        command = [sys.executable, str(_HERE / "agent.py"), run, payment, str(amount)]
        child = self._children.start("The agent", command, self._environment)
        return child, json.loads(child.line(_SECONDS))

    def as_agent(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Call the command with the agent's token, whatever comes of it."""
        return self._command(command, self._environment)

    def as_alice(self, *command: str) -> str:
        """Call the command with Alice's token, and return what it prints."""
        called = self._command(command, self._environment | {"TWICESHY_TOKEN": _ALICE_TOKEN})
        if called.returncode != 0:
            raise ChildFailed(f"`twiceshy {' '.join(command)}` failed: {called.stderr.strip()}")
        return called.stdout.strip()

    def ledger(self) -> list[tuple[str, int]]:
        """Read from the provider's own file which payments were refunded, and how much of each."""
        lines = self._ledger.read_text().splitlines() if self._ledger.exists() else []
        entries = (cast("dict[str, Any]", json.loads(line)) for line in lines)
        return [(entry["payment"], entry["amount"]) for entry in entries]

    def _command(self, command: tuple[str, ...], settings: dict[str, str]) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TWICESHY_")}
        called = [sys.executable, "-m", "twiceshy", "approvals", *command]
        return subprocess.run(  # noqa: S603 - our own command
            called, env=kept | settings, capture_output=True, text=True, timeout=_SECONDS, check=False
        )


def tell(story: Story) -> list[tuple[str, int]]:
    """Tell the story, and return the provider's ledger at its end. Raises ChildFailed where it goes otherwise."""
    agent, said = story.agent("complaint-17", "pay-1", 100)
    approval = said["suspended"]
    _say("An agent asks to refund 100 EUR of pay-1. A person must decide first; the run is suspended.")
    _say(f"  {story.as_alice('list', '--state', 'open').splitlines()[-1]}")
    agent.kill()
    _say("The agent's process is killed (SIGKILL). The question stays.")

    minted = story.as_agent("approve", approval, "--as", "alice")
    _expect("an agent cannot approve", minted.returncode, 1)
    _say("The agent's own token tries to approve it, in Alice's name:")
    _say(f"  {minted.stderr.strip()}")

    edit = '{"payment": "pay-1", "amount": 80}'
    _say("Alice approves, but only 80 EUR:")
    _say(f"  $ twiceshy approvals approve {approval} --edit '{edit}'")
    for line in story.as_alice("approve", approval, "--edit", edit, "--reason", "a fifth was used").splitlines():
        _say(f"  {line}")

    _, said = story.agent("complaint-17", "pay-1", 100)
    _expect("the agent goes on", said["refunded"]["amount"], 80)
    _say(f"The agent starts again, asks again for 100 EUR, and gets: {json.dumps(said['refunded'])}")
    _expect("the ledger", story.ledger(), [("pay-1", 80)])

    for amount in (100, 80):
        _, said = story.agent("complaint-18", "pay-1", amount)
        _expect("another run is answered from the record", said["refunded"]["refund"], "re-1")
        _say(f"Another run asks to refund {amount} EUR of pay-1, and is answered from the record: {said['said']}.")

    _, said = story.agent("complaint-19", "pay-2", 5000)
    story.as_alice("deny", said["suspended"], "--reason", "no receipt")
    for _ in range(2):
        _, said = story.agent("complaint-19", "pay-2", 5000)
        _expect("a denial is a denial", said, {"denied": "no receipt", "by": "alice"})
    _say("5000 EUR of pay-2 are denied: the agent is told `no receipt`, by alice, and is not asked for it again.")
    return story.ledger()


def main() -> None:
    """Set the stage, tell the story, and look into the provider's ledger."""
    try:
        with interruptible(), tempfile.TemporaryDirectory(prefix="twiceshy-refund-") as name:
            folder = Path(name).resolve()
            with Children(folder) as children:
                ledger = tell(Story(folder, children))
    except ChildFailed as error:
        sys.exit(f"The example cannot go on. {error}")
    except KeyboardInterrupt:
        sys.exit(130)
    _say(f"The provider's ledger: {ledger}")
    sys.exit(0 if ledger == [("pay-1", 80)] else 1)


def _expect(what: str, seen: object, wanted: object) -> None:
    if seen != wanted:
        raise ChildFailed(f"This should hold: {what}. It is {seen!r}, and should be {wanted!r}.")


def _address(child: Child) -> str:
    """Read the address that a service says it serves once it does."""
    line = child.line(_SECONDS)
    address = next((word for word in line.split() if word.startswith("http://")), None)
    if address is None:
        raise ChildFailed(f"{child.name} said no address: {line}")
    return address


def _say(line: str) -> None:
    print(line, flush=True)
