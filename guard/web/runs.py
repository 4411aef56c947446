"""Runs as answers."""

import msgspec

from guard.core.runs import Run
from guard.web.instants import rfc3339, rfc3339_or_none
from twiceshy_contract.forks import LiveTerms
from twiceshy_contract.runs import RunView


def run_view(run: Run) -> RunView:
    """Return a run as it stands."""
    view = RunView(
        run=run.name,
        id=str(run.id),
        state=run.state,
        effects=run.effects,
        started_at=rfc3339(run.started_at),
        ended_at=rfc3339_or_none(run.ended_at),
    )
    fork = run.fork
    if fork is None:
        return view
    live = tuple(LiveTerms(tool=terms.tool, when=terms.when, calls=terms.calls) for terms in fork.live)
    return msgspec.structs.replace(view, fork_of=fork.parent, at=fork.at, reads=fork.reads, live=live)
