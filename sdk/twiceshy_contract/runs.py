"""Wire structs of a run: one execution of an agent."""

from typing import Annotated, Literal

import msgspec

from twiceshy_contract.forks import LiveTerms, Reads
from twiceshy_contract.names import FACT_FORM, NO_CONTROL, RunName
from twiceshy_contract.policies import Part

RunState = Literal["open", "finished", "failed", "cancelled"]
RunText = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=NO_CONTROL)]
"""1 to 200 characters without control characters."""
FactName = Annotated[str, msgspec.Meta(pattern=FACT_FORM)]
Fact = bool | int | float | Annotated[str, msgspec.Meta(max_length=500)]


class RunAbout(Part, frozen=True, kw_only=True, omit_defaults=True):
    """What a run is: enough to tell in which surroundings its agent worked, and to find it again.

    `reference` is the business's own name of what it was about, such as a contract. `input` is what the agent was
    given, in payload form.
    """

    workflow: RunText | None = None
    agent: RunText | None = None
    agent_version: RunText | None = None
    prompt_version: RunText | None = None
    model: RunText | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None
    tags: Annotated[tuple[RunText, ...], msgspec.Meta(max_length=50)] = ()
    reference: RunText | None = None
    input: object = msgspec.UNSET


class OpenRunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Open a run, or find it open.

    With `record` the caller becomes the one writer of its log, and whoever wrote before is fenced. `about` is kept of
    the first opening that says it. `parent` makes it a child of that run.
    """

    run: RunName
    record: bool = False
    about: RunAbout | None = None
    parent: RunName | None = None


class FinishRunRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """End a run. It serves its record and takes no new effects."""

    as_: Literal["finished", "failed", "cancelled"] = msgspec.field(name="as", default="finished")


class RunFacts(Part, frozen=True, kw_only=True):
    """What became known of a run, whenever that was: its outcome, a score, that it was escalated."""

    facts: Annotated[dict[FactName, Fact], msgspec.Meta(min_length=1, max_length=50)]


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """A run; `effects` is the `step` of its newest effect, `events` the number of the newest event of its log.

    A fork says of which run it is, and its terms; its steps count on from the cut, `at`. `epoch` is that of the
    log's writer (0: it was never recorded). `credential` is the token that drives a fork, told to who makes it.
    """

    run: str
    id: str
    state: RunState
    effects: int
    started_at: str
    ended_at: str | None
    fork_of: str | msgspec.UnsetType = msgspec.UNSET
    at: int | msgspec.UnsetType = msgspec.UNSET
    reads: Reads | msgspec.UnsetType = msgspec.UNSET
    live: tuple[LiveTerms, ...] | msgspec.UnsetType = msgspec.UNSET
    events: int = 0
    epoch: int = 0
    parent: str | None = None
    about: RunAbout | None = None
    facts: dict[str, Fact] = {}
    credential: str | msgspec.UnsetType = msgspec.UNSET


class RunPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of runs, newest first."""

    items: tuple[RunView, ...]
    next: str | None
