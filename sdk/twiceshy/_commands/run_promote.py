"""`twiceshy runs promote`: a run of production becomes a test: its recording, and checks of what happened."""

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from twiceshy._commands.agents import named_function
from twiceshy._commands.recorded_runs import Where, place_of, recorded
from twiceshy._commands.service import of_service, print_json, with_json
from twiceshy._commands.tables import print_line
from twiceshy._in_brief import printable
from twiceshy._recorded_calls import RecordedCalls
from twiceshy._recording import Recording
from twiceshy._replay import replay
from twiceshy._replayed import Replayed
from twiceshy._type_names import qualified
from twiceshy.exceptions import SetupError

_MOST_TOOLS: Final = 30
_LINE: Final = 100
_PLACEHOLDER: Final = "agent_module:agent"


@click.command()
@click.argument("where", metavar="RUN|FILE", callback=place_of)
@click.option("--dir", "folder", metavar="DIR", default="tests/recordings", show_default=True, help="Where to write.")
@click.option("--agent", metavar="MODULE:FUNCTION", help="The agent that the test replays.")
@click.option("--name", metavar="NAME", help="The name of the case; else that of the run.")
@click.option("--force", is_flag=True, help="Write over files that are there.")
@with_json
@of_service
def promote(*, where: Where, folder: str, agent: str | None, name: str | None, as_json: bool, **said: Any) -> None:
    """Make a test of a run: NAME.jsonl, its recording, and test_NAME.py, which replays it and checks what happened.

    The test passes as long as the agent does what it did. Edit its checks to what should have happened.

    \b
    twiceshy runs promote order-1042 --agent shop.agent:main
    pytest tests/recordings/test_order_1042.py
    """  # noqa: D301 - click reads the control character
    function = None if agent is None else named_function(agent, "--agent")
    with recorded(where, said["url"], said["token"]) as recording:
        case = _case(name or recording.run)
        file, test = Path(folder) / f"{case}.jsonl", Path(folder) / f"test_{case}.py"
        _require_free([file, test], force=said["force"])
        replayed = None if function is None else _replayed(recording, function)
        _write(file, test, recording, _test(recording, case, agent or _PLACEHOLDER, replayed))
    if as_json:
        same = None if replayed is None else replayed.is_same
        print_json(
            msgspec.json.encode({"run": recording.run, "recording": str(file), "test": str(test), "is_same": same})
        )
        return
    print_line(f"{file} is the recording of run {recording.run}, {test} its test.")
    if replayed is None:
        print_line(f"Name the agent in {test}: it says {_PLACEHOLDER}.")
    elif not replayed.is_same:
        print_line("The agent does not do any more what was recorded, so that the test fails as it is:")
        print_line(f"  {replayed.report().splitlines()[1]}")
    print_line(f"Run it: python -m pytest {test}")


def _case(text: str) -> str:
    case = re.sub(r"\W+", "_", text.casefold(), flags=re.ASCII).strip("_")
    if not case:
        raise click.UsageError(f"{text!r} makes no name of a file: say another with --name.")
    return case


def _require_free(paths: list[Path], *, force: bool) -> None:
    there = [str(path) for path in paths if path.exists()]
    if there and not force:
        are = "is there already" if len(there) == 1 else "are there already"
        raise click.ClickException(
            f"{' and '.join(there)} {are}; nothing was written. Say another --name, or --force to write over it."
        )


def _replayed(recording: Recording, agent: Any) -> Replayed:
    """Replay the agent as the test will; what it prints goes to standard error."""
    try:
        with redirect_stdout(sys.stderr):
            return replay(recording, agent, mode="retest")
    except SetupError as error:
        raise click.UsageError(str(error)) from error


def _write(file: Path, test: Path, recording: Recording, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        recording.save(file)
        test.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.ClickException(f"{error.filename or file} cannot be written: {error.strerror or error}.") from error


def _test(recording: Recording, case: str, agent: str, replayed: Replayed | None) -> str:
    place, _, path = agent.rpartition(":")
    module = Path(place).stem if place.endswith(".py") else place
    imported = [f"from {module} import {path.partition('.')[0]}"]
    if replayed is not None and replayed.is_same and replayed.error is not None:
        imported += _import_of(type(replayed.error))
    what = f"Run {_in_docstring(recording.run)} of {recording.head.started_at[:10]}, held against the agent of today."
    lines = [
        f'"""{what}"""',
        "",
        "import pytest",
        "",
        *sorted(imported),
        "",
        "",
        f'@pytest.mark.twiceshy(recording="{case}.jsonl", mode="retest")',
        f"def test_{case}(replayed):",
        f"    happened = replayed({path})",
        *_checks(recording, replayed),
    ]
    return "\n".join(lines) + "\n"


def _checks(recording: Recording, replayed: Replayed | None) -> Iterator[str]:
    tools = [call.intent.name for call in RecordedCalls(recording) if call.intent.kind == "tool_call"]
    yield from _call("in_order", [_quoted(tool) for tool in tools[:_MOST_TOOLS]])
    if replayed is None or not replayed.is_same:
        return
    if replayed.error is not None:
        yield f"    happened.raised({type(replayed.error).__name__}, {str(replayed.error)!r})"
    elif _is_literal(replayed.value):
        yield from _call("outcome", [repr(replayed.value)])


def _call(check: str, arguments: list[str]) -> Iterator[str]:
    """Write a check, on a line of its own for each argument where it is long."""
    line = f"    happened.{check}({', '.join(arguments)})"
    if len(line) <= _LINE or len(arguments) == 1:
        yield line
        return
    yield f"    happened.{check}("
    yield from (f"        {argument}," for argument in arguments)
    yield "    )"


def _quoted(text: str) -> str:
    """Write a text as code, in the quotation marks that formatters like."""
    return repr(text) if '"' in text or "\\" in repr(text) else f'"{text}"'


def _is_literal(value: object) -> bool:
    """Say whether a value stands in code as it prints."""
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return False


def _import_of(kind: type[BaseException]) -> list[str]:
    module, _, name = qualified(kind).rpartition(".")
    return [f"from {module} import {name}"] if module else []


def _in_docstring(text: str) -> str:
    return printable(text).replace("\\", "\\\\").replace('"', "'")
