"""Why a value cannot be taken, and where in it. A refusal always names the place, never the value."""

from collections.abc import Iterable
from typing import TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"

Step: TypeAlias = "str | int"


def pointer(steps: Iterable[Step]) -> str:
    """Write steps into a JSON value as a JSON Pointer (RFC 6901); the whole value is the empty string."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)


def steps_of(path: str) -> tuple[str, ...]:
    """Read a JSON Pointer into its steps. Raises ValueError where it is not one."""
    if path == "":
        return ()
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not a JSON Pointer: it must be empty or begin with '/'")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))


class Refusal(ValueError):
    """The value cannot be taken as it is."""

    def __init__(self, reason: str, steps: Iterable[Step] = ()) -> None:
        self.reason = reason
        self.steps = tuple(steps)
        super().__init__(self.reason, self.steps)

    @property
    def path(self) -> str:
        """The place, as a JSON Pointer."""
        return pointer(self.steps)

    def __str__(self) -> str:
        return f"at {self.path or 'the top'}: {self.reason}"

    def under(self, *steps: Step) -> "Refusal":
        """Return the same refusal seen from a value that holds this one at `steps`."""
        return Refusal(self.reason, (*steps, *self.steps))
