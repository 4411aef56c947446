"""`twiceshy sagas`: look at sagas, and see to those that cannot be taken back by themselves."""

from typing import Any, get_args

import click
import msgspec

from twiceshy._commands.groups import Group
from twiceshy._commands.pages import Page, gather, how_many
from twiceshy._commands.parameters import in_path, run_name, saga_name
from twiceshy._commands.service import Service, of_service, print_json, with_json
from twiceshy._commands.tables import Cell, moment, print_facts, print_line, print_table, state_of
from twiceshy._transports.base import Request
from twiceshy_contract.sagas import (
    FailSagaRequest,
    ResumeSagaRequest,
    SagaState,
    SagaStepView,
    SagaSummary,
    SagaView,
    SettleAs,
    SettleStepRequest,
)

_by = click.option("--by", required=True, help="Who decides so.")
_reason = click.option("--reason", required=True, help="Why; kept with the saga.")


@click.group(cls=Group)
def sagas() -> None:
    """List and show sagas, and let go on what stands still."""


@sagas.command(name="list")
@click.option("--state", type=click.Choice(get_args(SagaState)), help="Only sagas in this state.")
@click.option("--run", callback=run_name, help="Only sagas of this run.")
@how_many
@with_json
@of_service
def list_(*, as_json: bool, url: str | None, token: str | None, **asked: Any) -> None:
    """List sagas, newest first. Those in the state `stuck` wait for a person."""
    filters = {name: asked[name] for name in ("state", "run") if asked[name] is not None}
    limit = None if asked["everything"] else asked["limit"]
    found = gather(Service(url, token), "/v1/sagas", filters, Page[SagaSummary], limit=limit, total=None)
    if as_json:
        print_json(found.body)
    elif not found.items:
        print_line("No sagas.")
    else:
        headings = ("saga", "run", "state", "started", "ended", "why it is taken back")
        print_table(headings, (_row(saga) for saga in found.items))
        if found.next is not None:
            print_line("There are more: use --limit, --all, --state or --run.")


@sagas.command()
@click.argument("saga", callback=saga_name)
@with_json
@of_service
def show(*, saga: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Show the saga SAGA with its steps, in the order in which they were begun."""
    _told(Service(url, token).ask(Request(method="GET", path=_path(saga)), SagaView), as_json=as_json)


@sagas.command()
@click.argument("saga", callback=saga_name)
@_reason
@with_json
@of_service
def fail(*, saga: str, reason: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Fail the running saga SAGA: no step of it begins any more, and what was done is taken back."""
    _told(_posted(Service(url, token), saga, "fail", FailSagaRequest(reason=reason)), as_json=as_json)


@sagas.command()
@click.argument("saga", callback=saga_name)
@click.argument("key")
@click.option(
    "--as",
    "as_",
    type=click.Choice(get_args(SettleAs)),
    required=True,
    help="It was taken back by hand (done), stays as it is (skip), or is to be tried again (retry).",
)
@_by
@_reason
@with_json
@of_service
def settle(*, saga: str, key: str, as_json: bool, url: str | None, token: str | None, **said: Any) -> None:
    """Settle the step KEY of the saga SAGA, which cannot be taken back by itself; the saga goes on then."""
    asked = SettleStepRequest(as_=said["as_"], by=said["by"], reason=said["reason"])
    _told(_posted(Service(url, token), saga, f"steps/{in_path(key)}/settle", asked), as_json=as_json)


@sagas.command()
@click.argument("saga", callback=saga_name)
@_by
@_reason
@with_json
@of_service
def resume(*, saga: str, by: str, reason: str, as_json: bool, url: str | None, token: str | None) -> None:
    """Let every compensation of the saga SAGA be tried again that was refused or given up."""
    _told(_posted(Service(url, token), saga, "resume", ResumeSagaRequest(by=by, reason=reason)), as_json=as_json)


def _posted(service: Service, saga: str, verb: str, body: msgspec.Struct) -> tuple[SagaView, bytes]:
    path = f"{_path(saga)}/{verb}"
    return service.ask(Request(method="POST", path=path, body=msgspec.json.encode(body)), SagaView)


def _told(answer: tuple[SagaView, bytes], *, as_json: bool) -> None:
    """Print a saga as it stands."""
    saga, body = answer
    if as_json:
        print_json(body)
        return
    print_facts(
        [
            ("saga", saga.saga), ("run", saga.run), ("state", state_of(saga.state)), ("why", saga.reason),
            ("started", saga.started_at), ("deadline", saga.deadline), ("failed", saga.failed_at),
            ("ended", saga.ended_at), ("next", _next(saga)),
        ]
    )  # fmt: skip
    if saga.steps:
        print_table(
            ("number", "tool", "step", "effect", "key", "compensation", "its effect", "note"),
            (_step(step) for step in saga.steps),
        )


def _next(saga: SagaView) -> str | None:
    """Say what the saga needs next."""
    if saga.due is not None:
        what = "takes back" if saga.due.purpose == "compensate" else "learns whether it was done:"
        return f"{saga.due.tool} {what} {saga.due.key}"
    return None if saga.waits is None else f"{saga.waits.why}; step {saga.waits.key}"


def _row(saga: SagaSummary) -> tuple[Cell, ...]:
    return (
        saga.saga, saga.run, state_of(saga.state), moment(saga.started_at), moment(saga.ended_at), saga.reason,
    )  # fmt: skip


def _step(step: SagaStepView) -> tuple[Cell, ...]:
    return (
        step.number, step.tool, step.state, _state(step.effect), step.key, step.compensation,
        _state(step.compensation_effect), step.note,
    )  # fmt: skip


def _state(state: str | None) -> Cell:
    return None if state is None else state_of(state)


def _path(saga: str) -> str:
    return f"/v1/sagas/{in_path(saga)}"
