"""The four accidents that make an agent act twice. Each is played as it happens: by real processes and real faults."""

from collections.abc import Callable
from typing import Final

import msgspec

from guard.demo.record import recorded
from guard.demo.stage import Scene, Stage
from guard.demo.table import Line

_DAY_WITHOUT: Final = "2026-10-05"
_DAY_WITH: Final = "2026-10-12"
_FIRST_HOUR: Final = 14


class Accident(msgspec.Struct, frozen=True, kw_only=True):
    """An accident: how it is called, and how it is played. What is played returns the holds that agents were told of.

    `doubtful` says that nobody can know what happened until the calendar is asked.
    """

    name: str
    title: str
    doubtful: bool
    play: Callable[[Stage, Scene], tuple[int, ...]]


def _drop(stage: Stage, scene: Scene) -> tuple[int, ...]:
    stage.calendar.break_next(scene.start_time, "drop")
    agent = stage.agent(scene)
    agent.go()
    return agent.told()


def _rephrase(stage: Stage, scene: Scene) -> tuple[int, ...]:
    agent = stage.agent(scene, "--asks-anyway", "1")
    agent.go()
    return agent.told()


def _race(stage: Stage, scene: Scene) -> tuple[int, ...]:
    first, second = stage.agent(scene), stage.agent(scene)
    first.go()
    second.go()
    return first.told() + second.told()


def _kill(stage: Stage, scene: Scene) -> tuple[int, ...]:
    stage.calendar.break_next(scene.start_time, "hang")
    agent = stage.agent(scene)
    agent.go()
    stage.see_booked(scene.start_time)
    agent.kill()
    restarted = stage.agent(scene, "--restarted")
    restarted.go()
    return restarted.told()


ACCIDENTS: Final = (
    Accident(name="drop", title="The connection drops after the hold was made", doubtful=True, play=_drop),
    Accident(name="rephrase", title="The model asks again, in other words", doubtful=False, play=_rephrase),
    Accident(name="race", title="Two agents act at the same instant", doubtful=False, play=_race),
    Accident(name="kill", title="The agent is killed between effect and commit", doubtful=True, play=_kill),
)


def play_without(stage: Stage, accident: Accident) -> None:
    """Let an accident happen to an agent that has no guard."""
    accident.play(stage, Scene(run=f"without-{accident.name}", start_time=_time(accident, _DAY_WITHOUT), guarded=False))


def play_with(stage: Stage, accident: Accident) -> Line:
    """Let it happen to a guarded agent, and count in the calendar's file what came of both."""
    scene = Scene(run=f"with-{accident.name}", start_time=_time(accident, _DAY_WITH), guarded=True)
    told = accident.play(stage, scene)
    effect = recorded(stage.guard, scene.run)
    return Line(
        accident=accident.name,
        title=accident.title,
        doubtful=accident.doubtful,
        without_guard=stage.booked(_time(accident, _DAY_WITHOUT)),
        with_guard=stage.booked(scene.start_time),
        told=told,
        states=effect.states,
        settled=effect.settled(answers=len(told)),
    )


def _time(accident: Accident, day: str) -> str:
    """Give each accident an hour of its own, so that its holds can be counted apart."""
    return f"{day}T{_FIRST_HOUR + ACCIDENTS.index(accident)}:00:00Z"
