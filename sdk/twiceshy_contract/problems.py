"""Every problem the service can answer, once: its code, HTTP status, title, and what to do next.

The body is `application/problem+json` (RFC 9457); `type` is `/problems/<code>`, a page that the service serves
from this list.
"""

from typing import Final, Literal

import msgspec

from twiceshy_contract.holds import HoldRef

ProblemCode = Literal[
    "approval-expired", "arguments-changed", "attempts-exhausted", "blobs-missing", "changed-since",
    "decided-already", "edit-refused", "expired", "forbidden", "hold-differs", "hold-lost", "in-progress",
    "invalid-request", "key-used-by-another-tool", "lease-lost", "loop-limit", "message-state",
    "method-not-allowed", "name-taken", "no-relay", "not-found", "not-possible", "outcome-in-doubt",
    "overloaded", "recording-diverged", "recording-gap", "registry-changed", "resource-held", "retry-later",
    "run-finished", "run-suspended", "run-taken-over", "saga-over", "sibling-in-doubt", "store-unavailable",
    "superseded", "too-large", "unauthorized", "unsupported-media-type", "internal",
]  # fmt: skip


class ProblemKind(msgspec.Struct, frozen=True, kw_only=True):
    """What one problem code means, wherever it appears."""

    status: int
    title: str
    remedy: str


class FieldError(msgspec.Struct, frozen=True, kw_only=True):
    """One place in the request that is wrong: a JSON Pointer into the body, and why."""

    path: str
    message: str


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An RFC 9457 problem. `errors` and `paths` name places in the request, never values.

    The members after `errors` are there when an effect is known: its key, public state, and when to ask again.
    `hold` is the claim that stands in the way of another, `pause` the key of a call at which a fork stopped.
    `request_id` names the request in the service's log.
    `next_seq` is where the run's log goes on, where the request brought events that are kept all the same.
    """

    type: str
    title: str
    status: int
    detail: str
    errors: tuple[FieldError, ...] = ()
    paths: tuple[str, ...] = ()
    key: str | None = None
    state: str | None = None
    tool: str | None = None
    tool_version: int | None = None
    run: str | None = None
    step: int | None = None
    generation: int | None = None
    occurrence: int | None = None
    fence: int | None = None
    retry_after_seconds: float | None = None
    resolve: str | None = None
    hold: HoldRef | None = None
    pause: str | None = None
    request_id: str | None = None
    next_seq: int | None = None

    @property
    def code(self) -> str:
        """The last part of `type`."""
        return self.type.rsplit("/", 1)[-1]


PROBLEMS: Final[dict[ProblemCode, ProblemKind]] = {
    "approval-expired": ProblemKind(
        status=409,
        title="Nobody approved the effect in time",
        remedy="That is no denial. Begin again with `reopen: true` to ask anew.",
    ),
    "arguments-changed": ProblemKind(
        status=422,
        title="The step or business key was used with other arguments",
        remedy="Nothing ran. Send the arguments of the first call, or a new step, business key or occurrence. "
        "If a differing argument is only wording, declare it as content: runs that use the tool from then on obey it.",
    ),
    "attempts-exhausted": ProblemKind(
        status=409,
        title="The effect was tried as often as its tool allows",
        remedy="Find out why every attempt failed, then begin again with `reopen: true`, or let an operator reopen it.",
    ),
    "blobs-missing": ProblemKind(
        status=409,
        title="An event names values that are not kept",
        remedy="Nothing was appended. Send the texts of the digests in `paths` as `blobs`, with the same events.",
    ),
    "changed-since": ProblemKind(
        status=409,
        title="The effect has moved on since you looked",
        remedy="Read the effect again, decide anew, and resolve it with the fence that it has now.",
    ),
    "decided-already": ProblemKind(
        status=409,
        title="The question is decided",
        remedy="Read what was decided: one decision counts, and it stays.",
    ),
    "edit-refused": ProblemKind(
        status=409,
        title="The edited arguments cannot stand",
        remedy="Nothing was decided. Approve with arguments that no other effect has and all who approve agree on, "
        "or deny.",
    ),
    "expired": ProblemKind(
        status=410,
        title="The effect is final and its record has expired",
        remedy="It happened, or was refused, so long ago that only its digests are kept; nothing ran now. "
        "Use a new business key, step or occurrence for a new intent.",
    ),
    "forbidden": ProblemKind(
        status=403,
        title="The rules do not allow this",
        remedy="Nothing ran and nothing was changed.",
    ),
    "hold-differs": ProblemKind(
        status=422,
        title="The hold was placed with other words",
        remedy="Nothing was placed or changed. Ask for it as it was placed, its holder and run among all else, "
        "or draw a new id for another hold.",
    ),
    "hold-lost": ProblemKind(
        status=409,
        title="The hold on the resource is lost",
        remedy="Do not act on it. Place a new hold, or choose another time.",
    ),
    "in-progress": ProblemKind(
        status=409,
        title="Another attempt is executing this effect",
        remedy="Ask again after Retry-After, or send `wait_seconds` to be answered when it is over.",
    ),
    "invalid-request": ProblemKind(
        status=400,
        title="The request cannot be understood",
        remedy="Correct the places that are named. Nothing was stored and nothing may run.",
    ),
    "key-used-by-another-tool": ProblemKind(
        status=422,
        title="The business key belongs to another tool",
        remedy="Nothing ran. Use one business key for one tool; put the tool's name into the key if two tools "
        "act on the same business object.",
    ),
    "lease-lost": ProblemKind(
        status=409,
        title="The attempt does not hold the lease",
        remedy="The token or the fence is not that of an attempt which may still write; nothing was changed. "
        "Do not act again: begin with a new attempt and obey its answer.",
    ),
    "loop-limit": ProblemKind(
        status=409,
        title="The run asks for the same thing over and over",
        remedy="Nothing ran. The run is flagged; its agent probably does not see that this was done. "
        "Tell it, end the run, or raise the tool's loop limit.",
    ),
    "message-state": ProblemKind(
        status=409,
        title="The message's state does not allow this",
        remedy="Nothing was changed. Read the message: what is being sent ends by itself, what is over can only be "
        "sent `anew`, and what was never rendered needs what its note names.",
    ),
    "method-not-allowed": ProblemKind(
        status=405,
        title="The resource has no such method",
        remedy="The description at /schema lists the methods of each resource.",
    ),
    "name-taken": ProblemKind(
        status=409,
        title="The name belongs to another run",
        remedy="Nothing was made. Choose another name, or ask for the run as it was made.",
    ),
    "no-relay": ProblemKind(
        status=503,
        title="This service has none of the libraries that reach destinations",
        remedy="Ask a service that was started by `twiceshy serve`, or run `twiceshy relay` and look at its log.",
    ),
    "not-found": ProblemKind(
        status=404,
        title="There is no such thing",
        remedy="Check the key, name or path; the description at /schema lists the paths.",
    ),
    "not-possible": ProblemKind(
        status=409,
        title="The effect's state does not allow this",
        remedy="Nothing was changed. Read the effect, or the saga, and see in the documents what is possible then.",
    ),
    "overloaded": ProblemKind(
        status=503,
        title="More is asked than can be done soon",
        remedy="Nothing happened. Ask again after Retry-After with the same attempt.",
    ),
    "recording-diverged": ProblemKind(
        status=409,
        title="The run's log has another event at this number",
        remedy="Nothing was appended. A log is written once: read it, and go on from its end or under another run.",
    ),
    "recording-gap": ProblemKind(
        status=409,
        title="Events are missing between the run's log and these",
        remedy="Nothing was appended. Send the events from the log's end on.",
    ),
    "registry-changed": ProblemKind(
        status=409,
        title="The registry is not as it was planned on",
        remedy="Nothing was applied. Plan again, look at the plan, and apply that.",
    ),
    "outcome-in-doubt": ProblemKind(
        status=409,
        title="Nobody knows whether the effect happened",
        remedy="Do not retry. Find out at the provider, then settle it through `resolve`, "
        "for instance with `twiceshy effects resolve`.",
    ),
    "resource-held": ProblemKind(
        status=409,
        title="The resource is held for an interval that overlaps",
        remedy="Nothing ran. Choose another time, or ask again later.",
    ),
    "retry-later": ProblemKind(
        status=409,
        title="The effect did not happen and may be tried again later",
        remedy="Begin again after Retry-After.",
    ),
    "run-finished": ProblemKind(
        status=409,
        title="The run is finished and takes no new effects",
        remedy="Its record is still served. Open a run with another name for new work.",
    ),
    "run-suspended": ProblemKind(
        status=409,
        title="The fork stops at a call that may not run live",
        remedy="Nothing ran. Let a person answer the call, register a simulator, or allow the tool when the fork is "
        "made.",
    ),
    "run-taken-over": ProblemKind(
        status=409,
        title="Another process records the run now",
        remedy="Stop here: what you began may still be committed, and is kept. Nothing new is taken from you.",
    ),
    "saga-over": ProblemKind(
        status=409,
        title="The saga takes no such step any more",
        remedy="Nothing ran and nothing was changed. `twiceshy sagas show` tells what became of the saga.",
    ),
    "sibling-in-doubt": ProblemKind(
        status=409,
        title="A call of the same tool is in doubt, and this may be the same intent in other words",
        remedy="Nothing ran. Settle the doubt first; or declare which arguments name the call; "
        "or send `distinct: true` where it is another intent.",
    ),
    "store-unavailable": ProblemKind(
        status=503,
        title="The database cannot be reached",
        remedy="The outcome of this request is unknown. Ask again with the same attempt; "
        "until it is answered, the tool must not run.",
    ),
    "superseded": ProblemKind(
        status=409,
        title="Another attempt has settled the effect",
        remedy="Stop. What this attempt reported was kept as evidence where it contradicts the record; "
        "begin again to read the record.",
    ),
    "too-large": ProblemKind(
        status=413,
        title="The body is larger than it may be",
        remedy="A body has at most 1 MiB, one that appends events 16, each of the blobs in it 8, and an event 128 KiB. "
        "Keep large contents elsewhere and send a reference to them.",
    ),
    "unauthorized": ProblemKind(
        status=401,
        title="A valid bearer token is needed",
        remedy="Send `Authorization: Bearer <token>` with one of the service's TWICESHY_TOKENS; "
        "the SDK and the command take it from TWICESHY_TOKEN.",
    ),
    "unsupported-media-type": ProblemKind(
        status=415,
        title="The body is not application/json",
        remedy="Send `Content-Type: application/json`.",
    ),
    "internal": ProblemKind(
        status=500,
        title="The service has a defect",
        remedy="The outcome of this request is unknown. Ask again with the same attempt and report the defect "
        "with the request's time.",
    ),
}


def problem_type(code: ProblemCode) -> str:
    """Return the `type` member of a problem."""
    return f"/problems/{code}"
