"""What must agree: an answer, or the effect as it is read, with the oracle's effect."""

from datetime import datetime
from typing import Final

from tests.acceptance.machine.intents import Call, Record
from tests.acceptance.machine.line import Disagreement, word
from tests.acceptance.machine.oracle import Effect
from tests.acceptance.machine.verbs import UNTOLD
from tests.service import Reply

STATUS: Final = {
    "execute": 201,
    "replay": 200,
    "ok": 200,
    "arguments-changed": 422,
    "key-used-by-another-tool": 422,
}
CARRIED: Final = ("key", "state", "generation", "tool_version", "fence", "occurrence", "tool")
SLACK_SECONDS: Final = 4.5
"""The oracle's seconds are far enough apart that a loaded machine may be so late."""


def expect(what: str, found: object, wanted: object) -> None:
    """Say what differs."""
    if found != wanted:
        raise Disagreement(f"{what}: the service says {found!r}, the design says {wanted!r}")


def expect_answer(reply: Reply, wanted: str, record: Record | None, *, is_judged: bool = True) -> None:
    """The answer is the one that the design says, in word, status and headers, and carries the effect's members."""
    expect("answer", word(reply), wanted)
    expect("status", reply.status, STATUS.get(wanted, 409))
    retry = "retry-after" in reply.headers
    if wanted in ("in-progress", "retry-later"):
        expect("Retry-After is there", retry, wanted=True)
    if wanted == "outcome-in-doubt":
        expect("Retry-After is there", retry, wanted=False)
        expect("the link", reply.body.get("resolve"), f"/v1/effects/{reply.body.get('key')}/resolve")
    if wanted == "replay":
        expect("the mark of a replay", reply.headers.get("idempotent-replayed"), "true")
    if record is not None:
        expect_carried(reply.body, record, is_judged=is_judged and reply.status != 422)


def expect_carried(body: dict[str, object], record: Record, *, is_judged: bool = True) -> None:
    """Every answer says which effect it is about, and how it stands; not judged, a lease may have run out unseen."""
    expect("missing members", [name for name in CARRIED if name not in body], [])
    record.key = record.key or str(body["key"])
    effect = record.effect
    expect("key", body["key"], record.key)
    if is_judged or body["state"] != "executing":
        expect("state", body["state"], effect.state)
    expect("fence", body["fence"], effect.fence)
    expect("step", body.get("step"), record.step)
    expect("generation", body["generation"], record.generation)
    expect("occurrence", body["occurrence"], record.call.occurrence)
    expect("tool", body["tool"], record.call.tool)
    expect("tool_version", body["tool_version"], effect.version.number)


def expect_replay(reply: Reply, record: Record, call: Call) -> None:
    """A replay is the recorded outcome; other content is marked, the same is not, and so is another run's."""
    expect_outcome(reply.body["outcome"], record.effect)
    is_shared = record.call.run != call.run
    expect("shared", reply.body.get("shared"), {"run": record.call.run} if is_shared else None)
    differs = record.effect.arguments["note"] != call.note
    expect("drift", reply.body.get("drift"), {"content": ["/note"]} if differs else None)
    expect("repeat_of", reply.body["repeat_of"], {"run": record.call.run, "step": record.step})


def expect_outcome(found: object, effect: Effect) -> None:
    """The outcome is the recorded one, or one that nobody gave."""
    if effect.outcome == {"result": UNTOLD}:
        has_result = isinstance(found, dict) and "$opaque" in str(found.get("result"))
        expect("an opaque result", has_result, wanted=True)
        return
    expect("outcome", found, effect.outcome)


def expect_view(body: dict[str, object], record: Record, now: int) -> None:
    """The effect as it is read: what is known of it, of its attempts, and from when on it may be settled."""
    effect = record.effect
    expect_carried(body, record)
    if effect.is_final:
        expect_outcome(body["outcome"], effect)
    else:
        expect("outcome", body["outcome"], None)
    expect("closed", body["closed"], effect.is_closed)
    expect("attempts", _attempts_read(body), _attempts_wanted(effect))
    expect("evidence", _evidence_read(body), effect.evidence)
    arguments = body["arguments"]
    if isinstance(arguments, dict):
        expect("arguments", {name: arguments[name] for name in ("to", "note")}, effect.arguments)
    held = effect.latest
    lease_ends = held.deadline if held is not None and effect.state == "executing" else None
    expect_instant("lease_expires_at", body, lease_ends, now)
    is_open = effect.state in ("in_doubt", "pending")
    expect_instant("settles_at", body, effect.settles_at() if is_open else None, now)


def expect_instant(name: str, body: dict[str, object], wanted: int | None, now: int) -> None:
    """An instant of a view is as far from the reading as the oracle says."""
    text = body[name]
    if wanted is None or text is None:
        expect(name, text, wanted)
        return
    away = (datetime.fromisoformat(str(text)) - datetime.fromisoformat(str(body["as_of"]))).total_seconds()
    if abs(away - (wanted - now)) > SLACK_SECONDS:
        expect(f"seconds to {name}", away, wanted - now)


def _attempts_read(body: dict[str, object]) -> list[tuple[object, object]]:
    attempts = body["attempts"]
    if not isinstance(attempts, list):
        raise Disagreement("attempts is not a list")
    return sorted((attempt["fence"], attempt["report"]) for attempt in attempts)


def _attempts_wanted(effect: Effect) -> list[tuple[object, object]]:
    return sorted((attempt.fence, attempt.report) for attempt in effect.attempts.values())


def _evidence_read(body: dict[str, object]) -> list[tuple[object, object]]:
    evidence = body["evidence"]
    if not isinstance(evidence, list):
        raise Disagreement("evidence is not a list")
    return [
        (proof["kind"], proof["body"] if proof["kind"] in ("success", "other_result") else None) for proof in evidence
    ]
