"""Runs as answers."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from guard.core.runs import Run
from guard.web.instants import rfc3339, rfc3339_or_none
from twiceshy_contract.forks import LiveTerms
from twiceshy_contract.runs import Fact, RunView

_NO_FACTS: Final[Mapping[str, Fact]] = MappingProxyType({})


def run_view(run: Run, facts: Mapping[str, Fact] = _NO_FACTS, *, listed: bool = False) -> RunView:
    """Return a run as it stands; where it is one of a list, without what its agent was given."""
    about = run.about
    if listed and about is not None:
        about = msgspec.structs.replace(about, input=msgspec.UNSET)
    view = RunView(
        run=run.name,
        id=str(run.id),
        state=run.state,
        effects=run.effects,
        started_at=rfc3339(run.started_at),
        ended_at=rfc3339_or_none(run.ended_at),
        events=run.events,
        epoch=run.epoch,
        parent=run.child_of,
        about=about,
        facts=dict(facts),
    )
    fork = run.fork
    if fork is None:
        return view
    live = tuple(LiveTerms(tool=terms.tool, when=terms.when, calls=terms.calls) for terms in fork.live)
    fork_of = msgspec.UNSET if fork.is_empty else fork.parent
    return msgspec.structs.replace(view, fork_of=fork_of, at=fork.at, reads=fork.reads, live=live)
