"""The names and numbers that callers choose, with their bounds."""

from typing import Annotated, Final, Literal

import msgspec

NO_CONTROL: Final = r"^[^\x00-\x1f\x7f]+$(?!\n)"
NAME_FORM: Final = r"^(?!\.{1,2}$)[^\x00-\x1f\x7f/]+$(?!\n)"
FACT_FORM: Final = r"^[a-z][a-z0-9_]{0,49}$(?!\n)"

ToolName = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NAME_FORM)]
"""1 to 200 characters without control characters and slashes; not `.` or `..`, which no path can name."""
RunName = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NAME_FORM)]
"""1 to 200 characters without control characters and slashes; not `.` or `..`, which no path can name."""
BusinessKey = Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern=NO_CONTROL)]
"""1 to 255 characters without control characters."""
CallerStep = (
    Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]
    | Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_CONTROL)]
)
"""The caller's authoritative step; `3` and `"3"` are the same step."""
REASON_FORM: Final = r"^[^\x00]*[^\s\x00][^\x00]*$"
Reason = Annotated[str, msgspec.Meta(min_length=1, max_length=2000, pattern=REASON_FORM)]
"""Words of a person: 1 to 2,000 characters, not all of them blank, which every database takes."""
Worker = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_CONTROL)]
Occurrence = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
LeaseSeconds = Annotated[float, msgspec.Meta(ge=1, le=3600)]
WaitSeconds = Annotated[float, msgspec.Meta(ge=0, le=30)]
Person = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_CONTROL)]
"""How a person is called: 1 to 200 characters without control characters."""
Priority = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]
FenceNumber = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]

EffectClass = Literal["read", "idempotent", "side_effect"]
"""`read` changes nothing, `idempotent` may be repeated harmlessly, `side_effect` must not happen twice."""
PublicState = Literal["pending", "executing", "succeeded", "failed", "in_doubt"]
Repeat = Literal["replay", "allow", "ask"]
"""What a call means whose effect has succeeded: the record again, a new effect, or one that a person must approve."""
OnDoubt = Literal["suspend", "tell"]
KeyScope = Literal["run", "tenant"]
KeyRule = Literal["once", "step", "business_key"]
"""What names an intent: its identity arguments, the caller's step, or a key of the business."""
