"""Wire structs of what a tool's declaration says beyond its key and its lease: people and policy around the effect.

A *template* is JSON whose texts may hold `${…}`, an expression in JMESPath over the call: `arguments`, `key`,
`downstream_key`, `run`, `step`, `tool`, and, where the effect has succeeded, `result`. A text that is one
placeholder becomes the value; within a longer text the value is written out. An expression sees tagged values plain.
"""

from typing import Annotated, Any, Final, Literal

import msgspec

from twiceshy_contract.names import ToolName

POINTER_FORM: Final = r"^/(?:[^~]|~[01])*$"
Pointer = Annotated[str, msgspec.Meta(pattern=POINTER_FORM, max_length=500)]
"""A JSON Pointer (RFC 6901) into the arguments; `*` stands for every item of a list."""
Expression = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
"""An expression in JMESPath."""
Template = Any
"""JSON whose texts may hold `${…}`."""

ForkRule = Literal["auto", "live", "recorded", "stub", "suspend", "deny"]
"""What a call of the tool may do in a fork, at most; `auto` is decided by the tool's class and what is recorded."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a declaration."""


class ApprovalRule(Part, frozen=True, kw_only=True):
    """A person must approve a call before it runs; with `when`, not one whose `arguments` make it false.

    `quorum` is how many must agree. With `four_eyes` whoever asked for the call may not decide. After
    `deadline_seconds` without a decision the approval expires; without it, it waits for ever. `summary` is a template
    that says what is asked.
    """

    when: Expression | None = None
    quorum: Annotated[int, msgspec.Meta(ge=1, le=10)] = 1
    four_eyes: bool = True
    deadline_seconds: Annotated[float, msgspec.Meta(ge=1, le=31_536_000)] | None = None
    summary: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)] | None = None


class Compensation(Part, frozen=True, kw_only=True):
    """What takes a succeeded effect back: a tool, and a template of its arguments."""

    tool: ToolName
    arguments: dict[str, Template] = msgspec.field(default_factory=dict)


class HttpProbe(Part, frozen=True, kw_only=True):
    """Ask the provider over HTTP whether a doubtful effect was applied.

    `url`, `headers` and `body` are templates; the host of `url` is fixed, and a header may take a secret from the
    service's environment: `${env.TWICESHY_SECRET_…}`. The answer is read by expressions over `status`, `headers` and
    `body`: it is believed where exactly one of `applied` and `not_applied` is true, and, with `echo`, only where that
    expression gives the effect's downstream key. A redirect, a status of 500 or more and silence prove nothing.
    """

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^/$\s]+(?:/\S*)?$(?!\n)", max_length=2000)]
    applied: Expression
    not_applied: Expression
    method: Literal["GET", "HEAD", "POST"] = "GET"
    headers: dict[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9-]+$(?!\n)")], str] = {}
    body: Template = None
    result: Expression | None = None
    echo: Expression | None = None
    timeout_seconds: Annotated[float, msgspec.Meta(ge=0.1, le=30)] = 5


class Simulator(Part, frozen=True, kw_only=True):
    """What a fork is told in the place of the tool: a template of its result."""

    result: Template


class ResourceRule(Part, frozen=True, kw_only=True):
    """A call claims a resource for an interval: `name` is a template, `start` and `end` are pointers to date-times.

    In the place of `end`, `minutes` points to a number of minutes from the start.
    """

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    start: Pointer
    end: Pointer | None = None
    minutes: Pointer | None = None

    def __post_init__(self) -> None:
        if (self.end is None) == (self.minutes is None):
            raise ValueError("a ResourceRule takes exactly one of `end` and `minutes`, beside `start`")
