"""An agent as a process whose tools return one value of each kind; what they did stands in the sink, a line a call."""

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.unit.sdk.typed_values import TABLE
from twiceshy import Guard, RecordMismatch, ResultNotKept

guard = Guard(os.environ["AGENT_URL"])
sink = Path(os.environ["AGENT_SINK"])


@dataclass
class Hold:
    """What the shop returned at first."""

    start: str
    id: int


@dataclass
class Booking:
    """What it returns since its annotation was changed."""

    room: str


def selling(name: str, annotation: object, value: object) -> Callable[[], Any]:
    """Put a tool behind the guard that returns a value and notes that it ran."""

    def sell() -> Any:
        with sink.open("ab", buffering=0) as world:
            world.write(f"{name}\n".encode())
        return value

    sell.__annotations__["return"] = annotation
    return guard.tool(name=name)(sell)


def numbers() -> Iterator[int]:
    """Yield numbers."""
    yield 1


def unkept() -> Iterator[tuple[str, object]]:
    """Return values that no record can hold."""
    loop: dict[str, object] = {}
    loop["again"] = loop
    yield "cycle", loop
    yield "lambda", lambda: 1
    yield "generator", numbers()
    with Path(__file__).open() as file:
        yield "file", file
    deep: object = 1
    for _ in range(65):
        deep = [deep]
    yield "deep", deep
    yield "nan", [float("nan")]
    yield "large", "x" * 2**21


def sell_everything() -> None:
    """Call every tool of the table; say which gave back what differs in type or value."""
    for number, (row, annotation, value) in enumerate(TABLE):
        got = selling(f"tool-{number}", annotation, value)()
        if type(got) is not type(value) or got != value:
            print(f"{number} {row}: {got!r}")


def sell_unkept() -> None:
    """Call every tool whose result is not kept; say what came of it."""
    for name, value in unkept():
        try:
            got = selling(name, object, value)()
        except ResultNotKept as error:
            print(f"{name}: {error}")
        else:
            print(f"{name}: {'the value' if got is value else 'another value'}")


def change(name: str) -> None:
    """Call a tool whose return annotation is another each time; say what came of it."""
    annotation: Any = {"Hold": Hold, "Booking": Booking}[name]
    try:
        print(selling("create_hold", annotation, Hold("noon", 7))())
    except RecordMismatch as error:
        print(error)


if __name__ == "__main__":
    with guard.run("shop"):
        verbs: dict[str, Callable[..., None]] = {verb.__name__: verb for verb in (sell_everything, sell_unkept, change)}
        verbs[sys.argv[1]](*sys.argv[2:])
    guard.close()
