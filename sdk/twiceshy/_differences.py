"""Where two values in tagged form differ, as JSON Pointers with what stands there on either side."""

from collections.abc import Iterator
from typing import Final, Literal

import msgspec

from twiceshy_contract.refusals import Step, pointer

ABSENT: Final = msgspec.UNSET
"""What stands where one side has nothing."""


class Difference(msgspec.Struct, frozen=True, omit_defaults=True):
    """One place where two values differ; a side that has nothing there is unset."""

    path: str
    left: object = ABSENT
    right: object = ABSENT

    @property
    def is_at(self) -> Literal["both", "left", "right"]:
        """On which sides there is something."""
        if self.left is ABSENT:
            return "right"
        return "left" if self.right is ABSENT else "both"


def differences(left: object, right: object) -> Iterator[Difference]:
    """Find the places where two values differ, in the order of the left one, the deepest that tell it."""
    yield from _differences(left, right, ())


def _differences(left: object, right: object, steps: tuple[Step, ...]) -> Iterator[Difference]:
    if isinstance(left, dict) and isinstance(right, dict) and not (_is_tag(left) or _is_tag(right)):
        for name in [*left, *(name for name in right if name not in left)]:
            yield from _member(left.get(name, ABSENT), right.get(name, ABSENT), (*steps, name))
    elif isinstance(left, list | tuple) and isinstance(right, list | tuple):
        for at in range(max(len(left), len(right))):
            one = left[at] if at < len(left) else ABSENT
            other = right[at] if at < len(right) else ABSENT
            yield from _member(one, other, (*steps, at))
    elif not _is_same(left, right):
        yield Difference(pointer(steps), left, right)


def _member(left: object, right: object, steps: tuple[Step, ...]) -> Iterator[Difference]:
    if left is ABSENT or right is ABSENT:
        yield Difference(pointer(steps), left, right)
    else:
        yield from _differences(left, right, steps)


def _is_tag(value: dict[str, object]) -> bool:
    """Say whether an object stands for one value, which has no members."""
    return len(value) == 1 and next(iter(value)).startswith("$") and not next(iter(value)).startswith("$$")


def _is_same(left: object, right: object) -> bool:
    """Compare as JSON does: 1 and 1.0 are one value, 1 and true are two."""
    return isinstance(left, bool) == isinstance(right, bool) and left == right
