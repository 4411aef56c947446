"""The agent: a tool behind the guard, a loop around a model, and what to do when nobody knows.

It is a process of its own: it says `ready`, waits for a line, works, and prints which holds it was told of.
"""

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import asdict

import click
import msgspec

from guard.demo.holds import CALENDAR_VARIABLE, GUEST_VARIABLE, Calendar, Hold
from guard.demo.http import JsonService
from guard.demo.model import ModelStandIn
from twiceshy import Guard, Mail, RunSuspended, current_effect

guard = Guard()  # the service that TWICESHY_URL names
calendar = Calendar(os.environ[CALENDAR_VARIABLE])
guest = os.environ.get(GUEST_VARIABLE)


@guard.tool(
    effect="side_effect",  # it changes the world, so that it must not happen twice
    content=["/title"],  # may be worded differently; the time and the length must match
    normalisers={"/start_time": "utc"},  # 14:00Z and 16:00+02:00 are one time
    lease_seconds=2,
)
def create_calendar_hold(start_time: str, duration_minutes: int, title: str) -> Hold:
    """Hold a time in the calendar, and tell who is to know: with the commit, or not at all."""
    hold = calendar.hold(start_time, duration_minutes, title)
    if guest is not None:
        told = Mail(to=(guest,), subject=f"Booked: {title}", text=f"We meet at {start_time}.")
        current_effect().stage("guest", told)
        current_effect().stage("office", asdict(hold), type="hold.created")
    return hold


unguarded_hold: Callable[..., Hold] = inspect.unwrap(create_calendar_hold)


def work(model: ModelStandIn, create_hold: Callable[..., Hold]) -> list[int]:
    """Do what the model asks until it is content, and return the holds that it was told of."""
    told: list[int] = []
    hold: Hold | None = None
    while (call := model.next_call(hold)) is not None:
        try:
            hold = create_hold(**call)
        except OSError:
            hold = None  # no answer: without a guard, the model knows no better than to ask again
        except RunSuspended as doubt:
            settle(doubt, call["start_time"])
            hold = None
        else:
            told.append(hold.id)
    return told


def settle(doubt: RunSuspended, start_time: str) -> None:
    """Ask the calendar whether the hold was made, and tell the guard."""
    holds = calendar.holds(start_time)
    if not holds:
        raise doubt  # the request may still be on its way: leave it to someone who can wait
    applied = {
        "as": "applied",
        "fence": doubt.effect.fence,
        "reason": f"the agent asked the calendar, which has hold {holds[0].id}",
        "result": asdict(holds[0]),
    }
    JsonService(guard.url).post(f"/v1/effects/{doubt.key}/resolve", applied, dict[str, object])


@click.command()
@click.argument("run")
@click.argument("start_time")
@click.option("--guarded", is_flag=True, help="Call the tool through the guard.")
@click.option("--asks-anyway", type=int, default=0, help="How often the model asks again without a need.")
@click.option("--restarted", is_flag=True, help="The model samples its words anew.")
def main(*, run: str, start_time: str, guarded: bool, asks_anyway: int, restarted: bool) -> None:
    """Book one hold in the run RUN."""
    model = ModelStandIn(start_time, asks_anyway=asks_anyway, is_restarted=restarted)
    click.echo("ready")
    sys.stdin.readline()
    with guard.run(run):
        told = work(model, create_calendar_hold if guarded else unguarded_hold)
    click.echo(msgspec.json.encode(told).decode())
    guard.close()


if __name__ == "__main__":
    main()
