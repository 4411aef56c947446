"""What a use case asks of the store, one step at a time: assume a prior row, and compare and set.

Each step verifies its assumption and writes in one; where the assumption fails it answers with the row that is
there and writes nothing. No step needs a transaction that stays open while Python thinks.
"""

from uuid import UUID

import msgspec

from guard.core.effects import AttemptToken, Duration, Effect, Evidence, Fence, Instant, Intent, Key, RunId
from guard.core.outbox import Staging


class Consent(msgspec.Struct, frozen=True, kw_only=True):
    """What persons have said about an effect, which must stand still when a lease is granted.

    So many approvals, and no more, have put arguments that name it in the place of others' (`edits`, None: no matter);
    where it needs an `approval`, that one is approved. What persons say meanwhile waits for the step.
    """

    edits: int | None = None
    approval: UUID | None = None


class Insert(msgspec.Struct, frozen=True, kw_only=True):
    """Assume that there is no such effect and that its run is open: make it, executing, with its first lease.

    The store sets the intent's `began_at` and `step`, and counts the effect in its run. With `alone`, no other effect
    of the tool that is named by its arguments may be in open doubt in the run with other ones. With `hold`, that hold
    must be held still; `consent` must stand still.
    """

    intent: Intent
    token: AttemptToken
    lease: Duration
    alone: bool = False
    hold: UUID | None = None
    consent: Consent | None = None


class Finish(msgspec.Struct, frozen=True, kw_only=True):
    """Assume an effect in execution or doubt whose latest attempt is this one, unreported: record its success.

    What it stages is written in the same transaction, unless the effect has staged before. `known` is the effect as it
    was last seen: where it still is of that version, it need not be read back.
    """

    key: Key
    token: AttemptToken
    fence: Fence
    outcome: bytes
    staging: Staging | None = None
    known: Effect | None = None


class Replace(msgspec.Struct, frozen=True, kw_only=True):
    """Assume the version that was seen (0: no such effect): write the effect as planned.

    The store sets the version, and for a new effect `began_at` and `step`. Where `open_run` is given, that run must
    be open as well: the run of whoever is granted the lease; where `hold` is given, it must be held still. `alone` and
    `consent` are as of an insert. Of evidence an effect keeps the first hundred pieces. A `staging` goes with an effect
    that has succeeded.
    """

    seen: int
    effect: Effect
    evidence: tuple[Evidence, ...] = ()
    open_run: RunId | None = None
    hold: UUID | None = None
    alone: bool = False
    consent: Consent | None = None
    staging: Staging | None = None


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Assume nothing: read the effect."""

    key: Key


Step = Insert | Finish | Replace | Look


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """The assumption held: the effect as it stands now, at the database's time `at`."""

    effect: Effect
    at: Instant


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """The assumption failed, or nothing was assumed: the effect that is there (None: none), at `at`."""

    effect: Effect | None
    at: Instant


class RunClosed(msgspec.Struct, frozen=True, kw_only=True):
    """The run is not open and takes no new effect; there is no such effect yet, or its lease was not granted."""

    at: Instant


class Sibling(msgspec.Struct, frozen=True, kw_only=True):
    """Another effect of the tool is in doubt in the run; nothing was made."""

    effect: Effect
    at: Instant


class HoldGone(msgspec.Struct, frozen=True, kw_only=True):
    """The hold is not held any more; no lease was granted."""

    at: Instant


class Overruled(msgspec.Struct, frozen=True, kw_only=True):
    """The consent stands no more, or a person has put these arguments into another effect; no lease was granted."""

    at: Instant


StepResult = Written | Found | RunClosed | Sibling | HoldGone | Overruled
