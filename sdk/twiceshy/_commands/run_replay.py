"""`twiceshy runs replay`: run an agent again from a record, and show what it did and where it went another way.

Exit codes: those of the replay, 0 the same, 1 diverged, 3 paused or not to its end; 1 also where it cannot be done, 2
wrongly used.
"""

import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import Any, Final, get_args

import click
import msgspec

from twiceshy._commands.agents import named_function
from twiceshy._commands.cards import print_cards
from twiceshy._commands.parameters import json_of
from twiceshy._commands.recorded_runs import Where, place_of, recorded
from twiceshy._commands.service import of_service, print_json, with_json
from twiceshy._commands.tables import print_line
from twiceshy._overrides import Override
from twiceshy._recording import Recording
from twiceshy._replay import replay as replay_recording
from twiceshy._replay_options import ReplayOptions
from twiceshy._replay_plan import Mode, OnMiss
from twiceshy._replayed import Replayed
from twiceshy._timeline import cards
from twiceshy.exceptions import SetupError

_WORDS: Final = ("recorded", "position", "live")


@click.command()
@click.argument("where", metavar="RUN|FILE", callback=place_of)
@click.option("--agent", metavar="MODULE:FUNCTION", required=True, help="The agent; it may take the run's input.")
@click.option("--mode", type=click.Choice(get_args(Mode)), default="full", show_default=True, help="How to replay.")
@click.option("--at", type=click.IntRange(min=1), help="The event to pause at, or to fork at.")
@click.option("--override", multiple=True, metavar="CALL=JSON", help="Another result for a call; repeatable.")
@click.option("--override-error", multiple=True, metavar="CALL=JSON", help="An error in its place: type and message.")
@click.option(
    "--llm", metavar="WORD|MODULE:FUNCTION", help=f"What answers the models: {', '.join(_WORDS)}, a function."
)
@click.option("--on-miss", type=click.Choice(get_args(OnMiss)), default="fail", show_default=True,
              help="Whether a model call that is not in the record is made.")  # fmt: skip
@click.option("--answer", multiple=True, metavar="TOOL=JSON", help="A result for calls that are not in the record.")
@with_json
@of_service
def replay(*, where: Where, agent: str, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    """Run an agent again from the record of a run: no tool runs, and nothing is sent to the service.

    CALL is the number of an event, the name of what is called, or its n-th call: 8, lookup, lookup#2. JSON may be
    @FILE. The exit code says what came of it: 0 the same, 1 it diverged, 3 it paused, or the record ended first.

    \b
    twiceshy runs replay order-1042 --agent shop.agent:main
    twiceshy runs replay case.jsonl --agent shop.agent:main --mode until --at 8
    twiceshy runs replay case.jsonl --agent shop.agent:main --override 'lookup=["GB"]'
    """  # noqa: D301 - click reads the control character
    options = _options(said)
    function = named_function(agent, "--agent")
    with recorded(where, url, token) as recording:
        replayed = _replayed(recording, function, options)
        if as_json:
            shown = list(cards(replayed.log))
            print_json(msgspec.json.encode({**replayed.to_json(), "timeline": shown}))
        else:
            _print(replayed)
    click.get_current_context().exit(replayed.exit_code)


def _replayed(recording: Recording, agent: Any, options: ReplayOptions) -> Replayed:
    """Replay; what the agent prints goes to standard error."""
    try:
        with redirect_stdout(sys.stderr):
            return replay_recording(recording, agent, **options)
    except SetupError as error:
        raise click.UsageError(str(error)) from error


def _print(replayed: Replayed) -> None:
    if print_cards(cards(replayed.log)):
        print_line("")
    for line in replayed.report().splitlines():
        print_line(line)


def _options(said: dict[str, Any]) -> ReplayOptions:
    llm = said["llm"]
    options: ReplayOptions = {
        "mode": said["mode"],
        "at": said["at"],
        "overrides": [
            *(_override(text, "--override") for text in said["override"]),
            *(_override(text, "--override-error") for text in said["override_error"]),
        ],
        "on_miss": said["on_miss"],
        "answers": _answers(said["answer"]),
    }
    if llm is not None:
        options["llm"] = llm if llm in _WORDS or ":" not in llm else named_function(llm, "--llm")
    return options


def _override(text: str, option: str) -> Override:
    call, equals, value = text.partition("=")
    if not equals or not call:
        raise click.UsageError(f"{option} is CALL=JSON, such as 8=[] or lookup#2=null; {text!r} is not.")
    outcome: dict[str, Any] = {("result" if option == "--override" else "error"): json_of(value, f"{option} {call}")}
    if call.isdecimal():
        return _made(option, seq=int(call), **outcome)
    name, mark, count = call.rpartition("#")
    if mark and count.isdecimal():
        return _made(option, name=name, occurrence=int(count), **outcome)
    return _made(option, name=call, **outcome)


def _made(option: str, **fields: Any) -> Override:
    try:
        return Override(**fields)
    except SetupError as error:
        raise click.UsageError(f"{option}: {error}") from error


def _answers(texts: Sequence[str]) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for text in texts:
        tool, equals, value = text.partition("=")
        if not equals or not tool:
            raise click.UsageError(f"--answer is TOOL=JSON, such as flag=true; {text!r} is not.")
        answers[tool] = json_of(value, f"--answer {tool}")
    return answers
