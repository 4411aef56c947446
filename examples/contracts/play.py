"""Tell the story of a silent failure: recorded, found, forked at the guilty call, mended, and kept from coming back."""

import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from guard.demo.processes import Child, ChildFailed, Children, interruptible

_ROOT: Final = Path(__file__).parent.parent.parent
_SECONDS: Final = 60.0
_CONTRACTS: Final = {
    "C-1007": ("GB-SCT", "unlimited liability"),
    "C-1008": ("GB", "unlimited liability"),
    "C-1009": ("FR", "a liability of up to EUR 10000"),
    "C-1010": ("GB-WLS", "unlimited liability"),
}


class Story:
    """The service with its database, the agent that is started for each contract, and the command line."""

    def __init__(self, folder: Path, children: Children) -> None:
        self.folder: Final = folder
        serve = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--log", "problems"]
        serve += ["--database", f"sqlite:///{folder / 'guard.db'}"]
        service = _address(children.start("The guard's service", serve))
        self.cabinet = folder / "cabinet"
        self._environment = {"TWICESHY_URL": service, "CONTRACTS_CABINET": str(self.cabinet)}
        for name, (jurisdiction, clause) in _CONTRACTS.items():
            text = f"This contract of EUR 90000 with {clause} is governed by the law of {jurisdiction}."
            (folder / f"{name}.json").write_text(json.dumps({"id": name, "text": text}))

    def agent(self, run: str, contract: str, *more: str, **settings: str) -> str:
        """Let the agent work on a contract; return the risk that it sees."""
        command = [sys.executable, "-m", "examples.contracts.agent", run, str(self.folder / f"{contract}.json"), *more]
        return str(json.loads(self._called(command, settings))["risk"])

    def twiceshy(self, *command: str) -> str:
        """Call the command, and return what it prints."""
        return self._called([sys.executable, "-m", "twiceshy", *command], {})

    def differing(self, left: str, right: str) -> list[str]:
        """Compare two runs; return what differs. That they do is no failure."""
        called = [sys.executable, "-m", "twiceshy", "runs", "diff", left, right]
        return self._call(called, {}, _ROOT).stdout.strip().splitlines()

    def pytest(self, *command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run tests in the folder of the story, whatever comes of it."""
        called = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *command]
        return self._call(called, settings, self.folder)

    def _called(self, command: list[str], settings: dict[str, str]) -> str:
        called = self._call(command, settings, _ROOT)
        if called.returncode != 0:
            raise ChildFailed(f"`{' '.join(command[1:])}` failed: {called.stderr.strip()}{called.stdout.strip()}")
        return called.stdout.strip()

    def _call(self, command: list[str], settings: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TWICESHY_", "PYTEST_"))}
        return subprocess.run(  # noqa: S603 - our own commands
            command,
            env=kept | self._environment | {"PYTHONPATH": str(_ROOT)} | settings,
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )


def tell(story: Story) -> None:
    """Tell the story. Raises ChildFailed where it goes otherwise."""
    for contract, risk in zip(_CONTRACTS, ("low", "high", "low", "low"), strict=True):
        _expect(f"the risk of {contract}", story.agent(f"review-{contract}", contract), risk)
    _say("Four contracts were reviewed. No error was logged. A compliance officer doubts that C-1007 is low risk.\n")

    found = json.loads(story.twiceshy("runs", "list", "--reference", "C-1007", "--json"))
    run = found["items"][0]["run"]
    _say(f"1. Which run was that?\n   $ twiceshy runs list --reference C-1007\n   {run}\n")

    _say(f"2. What happened in it?\n   $ twiceshy runs show {run}")
    shown = story.twiceshy("runs", "show", run)
    for line in shown.splitlines():
        _say(f"   {line}")
    guilty = _guilty(json.loads(story.twiceshy("runs", "show", run, "--json")))
    _say(f"\n   The lookup of GB-SCT, event {guilty}, came back empty: the database knows GB alone.\n")

    _say(f"3. Is that the cause? A fork at event {guilty}, where the mended lookup really runs and nothing else does:")
    fork = ("--fork-of", run, "--at-event", str(guilty))
    risk = story.agent(f"{run}-mended", "C-1007", *fork, CONTRACTS_LOOKUP="mended")
    _expect("the risk in the fork", risk, "high")
    _expect("the cabinet", story.cabinet.read_text().split("\n")[:-1], [
        "C-1007 low", "C-1008 high", "C-1009 low", "C-1010 low",
    ])  # fmt: skip
    _say("   The fork says: high. It filed nothing: file_verdict was answered by its simulator.")
    _say(f"   $ twiceshy runs diff {run} {run}-mended")
    for line in story.differing(run, f"{run}-mended"):
        _say(f"   {line}")

    called = ("runs", "list", "--called", "lookup_rules", "--argument", "jurisdiction=GB-*", "--empty")
    _say(f"\n4. Who else is affected? One query:\n   $ twiceshy {shlex.join(called)}")
    for line in story.twiceshy(*called).splitlines():
        _say(f"   {line}")
    affected = {item["run"] for item in json.loads(story.twiceshy(*called, "--json"))["items"]}
    _expect("the affected runs", affected, {"review-C-1007", "review-C-1010"})
    for name in sorted(affected):
        story.twiceshy("runs", "facts", name, "needs_review=true")
    _say("   Both are marked: `twiceshy runs list --fact needs_review=true` shows them from now on.\n")

    _say("5. It must not come back. The fork becomes a regression test:")
    promote = ("runs", "promote", f"{run}-mended", "--agent", "examples.contracts.agent:review")
    for line in story.twiceshy(*promote, "--dir", str(story.folder), "--name", "gb_sct").splitlines():
        _say(f"   {line.replace(f'{story.folder}/', '')}")  # the folder goes away with the story
    passed = story.pytest("test_gb_sct.py", CONTRACTS_LOOKUP="mended")
    if passed.returncode != 0:
        raise ChildFailed(f"The promoted test fails: {passed.stdout}{passed.stderr}")
    _say("   The agent of today passes it.")


def main() -> None:
    """Set the stage and tell the story."""
    try:
        with interruptible(), tempfile.TemporaryDirectory(prefix="twiceshy-contracts-") as name:
            folder = Path(name).resolve()
            with Children(folder) as children:
                tell(Story(folder, children))
    except ChildFailed as error:
        sys.exit(f"The example cannot go on. {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _guilty(shown: Any) -> int:
    """Return the number of the lookup among the events of a run."""
    events: list[dict[str, Any]] = shown["timeline"]
    return next(int(event["seq"]) for event in events if event.get("name") == "lookup_rules")


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
