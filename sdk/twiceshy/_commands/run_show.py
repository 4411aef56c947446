"""`twiceshy runs show`: a run, its effects, and the timeline of its log."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import click
import msgspec

from twiceshy._commands.cards import print_cards, print_json_cards
from twiceshy._commands.pages import Page, gather
from twiceshy._commands.parameters import in_path, run_name
from twiceshy._commands.recorded_runs import Where, event_range, fetched, recorded
from twiceshy._commands.recordings import said_plainly
from twiceshy._commands.run_facts import one_line
from twiceshy._commands.run_notes import Notes, notes_of
from twiceshy._commands.run_replies import joined, print_replies, replies_of
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, print_facts, print_line, print_table, state_of
from twiceshy._recording import Recording
from twiceshy._timeline import Card, cards
from twiceshy._transports.base import Request
from twiceshy_contract.effects import EffectSummary
from twiceshy_contract.forks import LiveTerms
from twiceshy_contract.replies import ReplyView
from twiceshy_contract.runs import RunAbout, RunView


@click.command()
@click.argument("run", required=False, callback=run_name)
@click.option("--file", metavar="FILE", help="Show a file of recordings instead; RUN then names one of its runs.")
@click.option("--events", metavar="5-20", callback=event_range, help="Only the calls of these events.")
@click.option("--full", is_flag=True, help="Show arguments and results whole.")
@with_json
@of_service
def show(*, run: str | None, file: str | None, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    """Show the run RUN, its effects, oldest first, and, where it was recorded, what it did call by call.

    A call of a tool also says what became of its effect later, where the code was told something else.

    \b
    twiceshy runs show order-1042 --events 5-20
    twiceshy runs show --file case.jsonl --full
    """  # noqa: D301 - click reads the control character
    if file is not None:
        with recorded(Where(run, file), url, token) as recording:
            _print_recording(recording, said, as_json=as_json)
    elif run is not None:
        _print_run(Service(url, token), run, said, as_json=as_json)
    else:
        raise click.UsageError("Name a run, or a file with --file.")


def _print_run(service: Service, run: str, said: dict[str, Any], *, as_json: bool) -> None:
    head, body = service.ask(Request(method="GET", path=f"/v1/runs/{in_path(run)}"), RunView)
    listing = gather(service, "/v1/effects", {"run": run}, Page[EffectSummary], limit=None, total=head.effects)
    replies = replies_of(service, run, head.effects)
    shown = {"run": msgspec.Raw(body), "effects": listing.raw[::-1], "replies": replies.raw}
    with said_plainly(), fetched(service, run) if head.events else nullcontext() as recording:
        if as_json and recording is None:
            print_json(msgspec.json.encode(shown))
            return
        effects = listing.items[::-1]
        notes: Notes = {} if recording is None else notes_of(service, recording, effects)
        if as_json and recording is not None:
            print_json_cards(shown, _cards(recording, said, notes))
            return
        print_head(head)
        if effects:
            _print_effects(effects)
        if recording is not None:
            _print_timeline(recording, said, notes, replies.items)
        else:
            print_replies(replies.items)


def _print_recording(recording: Recording, said: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json_cards({"run": recording.head}, _cards(recording, said, {}))
        return
    print_head(recording.head)
    _print_timeline(recording, said, {})


def _cards(recording: Recording, said: dict[str, Any], notes: Notes) -> Iterator[Card]:
    first, last = said["events"]
    return cards(recording, first=first, last=last, whole=said["full"], notes=notes)


def _print_timeline(
    recording: Recording, said: dict[str, Any], notes: Notes, replies: Sequence[ReplyView] = ()
) -> None:
    print_line("")
    (first, last), whole = said["events"], len(recording)
    is_whole = first == 1 and last is None
    if not print_cards(joined(_cards(recording, said, notes), replies, whole=is_whole)):
        beyond = f" and ends before event {first}" if first > whole else ""
        print_line(f"No calls there: the log has {_counted(whole, 'event')}{beyond}.")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def print_head(run: RunView) -> None:
    """Print what a run is."""
    print_facts(
        [
            ("run", run.run), ("state", state_of(run.state)), ("id", run.id), ("effects", run.effects),
            ("events", run.events or None), ("started", run.started_at), ("ended", run.ended_at),
            ("parent", run.parent), *_fork_of(run), *_about(run.about),
            ("facts", one_line(run.facts) if run.facts else None),
        ]
    )  # fmt: skip


def _print_effects(effects: list[EffectSummary]) -> None:
    print_table(
        ("step", "tool", "state", "key", "worker"),
        ((effect.step, effect.tool, state_of(effect.state), effect.key, effect.worker) for effect in effects),
    )


def _about(about: RunAbout | None) -> list[tuple[str, Cell]]:
    if about is None:
        return []
    agent = " ".join(part for part in (about.agent, about.agent_version) if part)
    temperature = "" if about.temperature is None else f", temperature {about.temperature:g}"
    return [
        ("about", about.reference),
        ("workflow", about.workflow),
        ("agent", agent or None),
        ("prompt", about.prompt_version),
        ("model", f"{about.model}{temperature}" if about.model else None),
        ("tags", ", ".join(about.tags) or None),
    ]


def _fork_of(run: RunView) -> list[tuple[str, Cell]]:
    """Return what is said of a fork."""
    if not isinstance(run.fork_of, str):
        return []
    live = run.live if isinstance(run.live, tuple) else ()
    named = ", ".join(tool.tool if tool == LiveTerms(tool=tool.tool) else _written(tool) for tool in live)
    return [("fork of", run.fork_of), ("at", str(run.at)), ("reads", str(run.reads)), ("live", named or "nothing")]


def _written(tool: LiveTerms) -> str:
    return msgspec.json.encode(tool).decode()
