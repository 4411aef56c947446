"""`twiceshy runs pauses` and `runs answer`: the calls at which a fork stopped, and a person's answers."""

import getpass
import json
from typing import Any, Final, get_args

import click
import msgspec

from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.parameters import in_path, json_of, run_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy._transports.base import Request
from twiceshy_contract.forks import AnswerPauseRequest, ForkPause, InjectedOutcome, PauseState
from twiceshy_contract.names import Person
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.wire import convert

_ONE: Final = "Give one answer: --inject JSON, --inject-error JSON, --deny REASON or --allow REASON."


@click.command()
@click.argument("fork", callback=run_name)
@click.option("--state", type=click.Choice(get_args(PauseState)), help="Only pauses in this state.")
@how_many
@with_json
@of_service
def pauses(*, fork: str, state: PauseState | None, url: str | None, token: str | None, **asked: Any) -> None:
    """List the calls at which the fork FORK stopped, oldest first."""
    limit = None if asked["everything"] else asked["limit"]
    filters = {} if state is None else {"state": str(state)}
    found = gather(Service(url, token), _path(fork), filters, Page[ForkPause], limit=limit, total=None)
    if asked["as_json"]:
        print_json(found.body)
    elif not found.items:
        print_line("No pauses." if state is None else f"No pauses that are {state}.")
    else:
        print_table(("key", "state", "tool", "arguments", "stopped by", "since"), map(_row, found.items))
        if found.next is not None:
            print_line("There are more: use --limit, --all or --state.")


@click.command()
@click.argument("fork", callback=run_name)
@click.argument("key")
@click.option("--inject", metavar="JSON", help="Answer with this result in the tool's place; @FILE or - to read.")
@click.option("--inject-error", metavar="JSON", help="Answer with a Rejected of a type: {type, message, data}.")
@click.option("--deny", metavar="REASON", help="Refuse the call; the agent is told why.")
@click.option("--allow", metavar="REASON", help="Let this one call, with these arguments, really run.")
@click.option("--as", "as_", metavar="NAME", help="Who answers; else the owner of --token, or your login name.")
@with_json
@of_service
def answer(*, fork: str, key: str, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    """Answer the call KEY at which the fork FORK stopped. It is answered once; run the same fork again then.

    \b
    twiceshy runs answer why-1042 4f…c2 --inject '{"id": "r-17"}'
    twiceshy runs answer why-1042 4f…c2 --deny "not in a rehearsal"
    """  # noqa: D301 - click reads the control character
    request = _answer_of(said, by=said["as_"] or (None if token else _login()))
    path = f"{_path(fork)}/{in_path(key)}"
    answered, body = Service(url, token).ask(
        Request(method="POST", path=path, body=msgspec.json.encode(request)), ForkPause
    )
    if as_json:
        print_json(body)
    else:
        print_facts(_facts(answered))


def _answer_of(said: dict[str, Any], by: str | None) -> AnswerPauseRequest:
    """Read the one answer that was typed."""
    given = {name: said[name] for name in ("inject", "inject_error", "deny", "allow") if said[name] is not None}
    if len(given) != 1:
        raise click.UsageError(_ONE)
    ((word, text),) = given.items()
    if word == "inject":
        return AnswerPauseRequest(answer="inject", outcome=InjectedOutcome(result=json_of(text, "--inject")), by=by)
    if word == "inject_error":
        return AnswerPauseRequest(answer="inject", outcome=_error(text), by=by)
    if not text.strip():
        raise click.UsageError(f"--{word} needs a reason; the fork keeps it.")
    return AnswerPauseRequest(answer="deny" if word == "deny" else "allow", reason=text, by=by)


def _error(text: str) -> InjectedOutcome:
    try:
        return convert({"error": json_of(text, "--inject-error")}, InjectedOutcome)
    except Refusal as error:
        raise click.UsageError(
            f'--inject-error takes an object such as \'{{"type": "Declined", "message": "no"}}\': {error.path}: '
            f"{error.reason}."
        ) from error


def _login() -> str | None:
    """Return who is logged in, where that is a name."""
    try:
        name: str = msgspec.convert(getpass.getuser(), Person)
    except (KeyError, OSError, msgspec.ValidationError):
        return None
    return name


def _row(pause: ForkPause) -> tuple[Cell, ...]:
    said = json.dumps(pause.arguments, ensure_ascii=False)
    state = state_of(
        pause.state if pause.answer is None else f"{pause.answer}, {'used' if pause.spent else 'not used'}"
    )
    return (pause.key, state, pause.tool, said, pause.rule, moment(pause.at))


def _facts(pause: ForkPause) -> list[tuple[str, Cell]]:
    facts: list[tuple[str, Cell]] = [
        ("fork", pause.run),
        ("key", pause.key),
        ("tool", pause.tool),
        ("arguments", json.dumps(pause.arguments, ensure_ascii=False)),
        ("stopped by", pause.rule),
        ("answer", pause.answer),
        ("reason", pause.reason),
        ("by", pause.by),
    ]
    return [(name, value) for name, value in facts if value is not None]


def _path(fork: str) -> str:
    return f"/v1/runs/{in_path(fork)}/pauses"
