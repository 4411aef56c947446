"""What became of a run's effects after their outcomes were delivered, joined to the calls of its log.

The log holds what the code saw; the effect's own history goes on: doubt is settled, late proof comes, people decide.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from twiceshy._commands.pages import Page, gather
from twiceshy._commands.service import Service
from twiceshy._commands.tables import moment
from twiceshy._recorded_calls import Call, RecordedCalls
from twiceshy._recording import Recording
from twiceshy._transports.base import Request
from twiceshy_contract.approvals import ApprovalView
from twiceshy_contract.effects import EffectSummary, EffectView

Notes = Mapping[int, tuple[str, ...]]
"""What is said of a call, by the number of its intent."""


def notes_of(service: Service, recording: Recording, effects: Sequence[EffectSummary]) -> Notes:
    """Say of each call of a tool how its effect stands, where that is not what was delivered, and who approved it."""
    if not effects:
        return {}
    by_key: dict[str, EffectSummary] = {effect.key: effect for effect in effects}
    approvals = _approvals(service, recording.run)
    notes: dict[int, tuple[str, ...]] = {}
    for call, effect in _joined(RecordedCalls(recording), by_key):
        said = (*_history(service, call, effect), *(_decided(one) for one in approvals.get(effect.key, ())))
        if said:
            notes[call.intent.seq] = said
    return notes


def _joined(calls: RecordedCalls, effects: Mapping[str, EffectSummary]) -> Iterator[tuple[Call, EffectSummary]]:
    """Join calls to their effects: by the key of the delivery, and where none came, in the order of their steps."""
    left = dict(effects)
    silent: list[Call] = []
    for call in calls:
        if call.intent.kind != "tool_call":
            continue
        key = None if call.delivery is None else call.delivery.effect
        if key is None and call.delivery is None:
            silent.append(call)
        elif key is not None and key in effects:
            left.pop(key, None)
            yield call, effects[key]
    for call in silent:
        found = next((effect for effect in left.values() if effect.tool == call.intent.name), None)
        if found is not None:
            del left[found.key]
            yield call, found


def _history(service: Service, call: Call, effect: EffectSummary) -> Iterator[str]:
    """Say how an effect stands, where the code was told something else."""
    delivered = None if call.delivery is None else call.delivery.outcome
    if effect.state == "succeeded" and delivered != "result":
        yield f"later resolved as applied{_how(service, effect)}"
    elif effect.state == "failed" and delivered != "error":
        yield f"later resolved as failed{_how(service, effect)}"
    elif effect.state == "pending" and delivered not in ("error", "cancelled"):
        yield f"not applied: the effect is pending, and may be tried again{_how(service, effect)}"
    elif effect.state == "in_doubt":
        closed = ", closed by an operator" if effect.closed else "; settle it with `twiceshy effects resolve`"
        yield f"still in doubt{closed}"
    elif effect.state == "executing":
        yield "still executing"


def _how(service: Service, effect: EffectSummary) -> str:
    """Say when it was settled, by whose word, and what contradicts it."""
    view, _ = service.ask(Request(method="GET", path=f"/v1/effects/{effect.key}"), EffectView)
    when = f" on {moment(view.ended_at)}" if view.ended_at else ""
    why = f" ({view.resolution})" if view.resolution else ""
    against = f"; {len(view.evidence)} pieces of evidence, see `twiceshy effects show`" if view.evidence else ""
    return f"{when}{why}{against}"


def _approvals(service: Service, run: str) -> Mapping[str, Sequence[ApprovalView]]:
    found = gather(service, "/v1/approvals", {"run": run}, Page[ApprovalView], limit=None, total=None)
    grouped: defaultdict[str, list[ApprovalView]] = defaultdict(list)
    for approval in reversed(found.items):
        grouped[approval.key].append(approval)
    return grouped


def _decided(approval: ApprovalView) -> str:
    by = _people(vote.by for vote in approval.decisions)
    edited = ", with changed arguments" if approval.edited is not None else ""
    when = f" on {moment(approval.decided_at)}" if approval.decided_at else ""
    reason = f" ({approval.reason})" if approval.reason else ""
    match approval.state:
        case "open":
            return "waits for an approval: `twiceshy approvals list`"
        case "approved":
            return f"approved{by}{when}{edited}"
        case "denied":
            return f"denied{by}{when}{reason}"
        case "expired":
            return "nobody decided in time: the approval is expired"
        case "cancelled":
            return f"the question was taken back{when}{reason}"


def _people(names: Iterable[str]) -> str:
    listed = ", ".join(dict.fromkeys(names))
    return f" by {listed}" if listed else ""
