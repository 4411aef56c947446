"""Play the booking with kills in between, and print what the provider's ledger says."""

import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from examples.booking.agent import TAKEN_BACK
from examples.provider_client import PROVIDER_VARIABLE
from guard.demo.http import JsonService
from guard.demo.processes import Child, ChildFailed, Children, interruptible

_SAGA: Final = "trip-7"
_START_SECONDS: Final = 30.0
_WORK_SECONDS: Final = 40.0
_ROOT: Final = str(Path(__file__).resolve().parents[2])
_WANTED: Final = ["hold", "pay", "refund", "release"]


class Stage:
    """The guard's service and the provider as processes of their own, and agents to send on it."""

    def __init__(self, children: Children, folder: Path) -> None:
        self._children = children
        self.ledger: Final = folder / "provider.ledger"
        database = f"sqlite:///{folder / 'guard.db'}"
        serve = [sys.executable, "-m", "twiceshy", "serve", "--port", "0", "--database", database]
        provider = [sys.executable, "-m", "examples.provider", str(self.ledger), "--refuse", "confirm"]
        self._path = {"PYTHONPATH": _ROOT}
        guard = children.start("The guard's service", serve)
        rooms = children.start("The provider", provider, self._path)
        self.guard: Final = JsonService(_address(guard))
        self._environment = {"TWICESHY_URL": self.guard.url, PROVIDER_VARIABLE: _address(rooms), **self._path}

    def agent(self, *options: str) -> tuple[int, list[str]]:
        """Let an agent book, and return its exit code and what it said."""
        command = [sys.executable, "-m", "examples.booking.agent", _SAGA, *options]
        return self._children.start("An agent", command, self._environment).rest(_WORK_SECONDS)

    def done(self) -> list[str]:
        """Return what the provider did, in order, as its own file has it."""
        return [json.loads(line)["action"] for line in self.ledger.read_text().splitlines()]


def story(stage: Stage) -> Iterator[tuple[str, str]]:
    """Play the booking: an act, and what came of it."""
    for title, options in (
        ("An agent holds the room, and is killed while it pays.", ("--dies-after", "pay")),
        (
            "It starts again, pays once, is refused, and is killed while it refunds.",
            ("--dies-after", "refund"),
        ),
        ("It starts once more.", ()),
    ):
        code, said = stage.agent(*options)
        how = "killed" if code < 0 else "ended well" if code == 0 else "ended with nothing left"
        yield title, "\n".join([*said, f"({how})"])
        if code not in (-9, TAKEN_BACK):
            raise ChildFailed(f"The agent ended with exit code {code}.")


@contextmanager
def stage() -> Iterator[Stage]:
    """Start everything in a folder of its own, and end it afterwards. Raises ChildFailed."""
    with tempfile.TemporaryDirectory(prefix="twiceshy-booking-") as folder, Children(Path(folder)) as children:
        yield Stage(children, Path(folder))


@click.command()
@click.option("--json", "is_json", is_flag=True, help="Print what was seen as JSON.")
def main(*, is_json: bool) -> None:
    """Book a room with kills in between. The exit code is 0 only if everything was done once and taken back once."""
    try:
        with interruptible(), stage() as here:
            acts = []
            for number, (title, came) in enumerate(story(here), start=1):
                acts.append({"title": title, "came": came.splitlines()})
                if not is_json:
                    click.echo(f"{number}. {title}\n{_indented(came)}\n")
            saga: dict[str, Any] = here.guard.get(f"/v1/sagas/{_SAGA}", dict[str, Any])
            done = here.done()
    except KeyboardInterrupt:
        click.echo("Stopped. All processes that the example started are ended.", err=True)
        sys.exit(130)
    except ChildFailed as error:
        raise click.ClickException(f"The example cannot go on. {error}") from error
    is_right = done == _WANTED and saga["state"] == "compensated"
    if is_json:
        click.echo(json.dumps({"acts": acts, "ledger": done, "state": saga["state"], "is_right": is_right}, indent=2))
    else:
        click.echo(f"The provider's ledger: {', '.join(done)}.")
        click.echo(f"The guard's record: saga {_SAGA} is {saga['state']}; it failed because {saga['reason']}.")
        click.echo("Everything was done once, and taken back once." if is_right else "That is not what should be.")
    sys.exit(not is_right)


def _indented(text: str) -> str:
    return "\n".join(f"   {line}" for line in text.splitlines())


def _address(child: Child) -> str:
    line = child.line(_START_SECONDS)
    address = next((word for word in line.split() if word.startswith("http://")), None)
    if address is None:
        raise ChildFailed(f"{child.name} said no address: {line}")
    return address
