"""What a call of a stage-only tool comes to."""

from uuid import UUID

import msgspec

from twiceshy._restore import Misfit, refuse_opaque, restore
from twiceshy.exceptions import EffectRef, RecordMismatch


class Staged(msgspec.Struct, frozen=True, kw_only=True):
    """Messages are staged and will be delivered: one id for every row, in the order of messages and recipients.

    `key` names the effect; what stands in a fork in the place of one has none. `is_replay` says that they were staged
    by an earlier call. `twiceshy outbox show ID` tells what became of each.
    """

    key: str | None
    messages: tuple[UUID, ...]
    is_replay: bool = False


class _Kept(msgspec.Struct, frozen=True):
    """What a record says of staged messages: the service's own calls them `staged`, that of a run is a Staged."""

    staged: tuple[UUID, ...] = ()
    messages: tuple[UUID, ...] = ()


def staged_of(result: object, reference: EffectRef) -> Staged:
    """Return a record, or what a fork is given in its place, as a replay. Raises RecordMismatch."""
    refuse_opaque(result, reference)
    try:
        kept = _Kept() if result is None else restore(result, _Kept)
    except Misfit as misfit:
        raise RecordMismatch(
            f"{reference.tool} stages messages, and its record says something else: {misfit}. Did the tool have no "
            "sink when it was called? Take back that change, or give the tool another name.",
            effect=reference,
        ) from misfit
    if not isinstance(kept, _Kept):
        raise TypeError("a record was restored into another type than was asked for")
    return Staged(key=reference.key, messages=kept.staged or kept.messages, is_replay=True)
