"""Results on their way into the record and out of it: what cannot be kept leaves its digest, never a lie."""

import hashlib
import logging
from typing import Any

import msgspec

from twiceshy._answers import Replay
from twiceshy._encode import encode, encode_result
from twiceshy._options import ToolSpec
from twiceshy._restore import OPAQUE, Misfit, refuse_opaque, restore, untag
from twiceshy.exceptions import EffectRef, RecordMismatch, Rejected
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.effects import (
    CommitRequest,
    Opaque,
    ReportedError,
)
from twiceshy_contract.refusals import Refusal

_LONGEST_MESSAGE = 10_000
_LARGEST_DATA = 2**19
_log = logging.getLogger("twiceshy")


def commit_body(value: object, effect: EffectRef) -> bytes:
    """Write the commit of what a tool returned; a result that cannot be kept becomes opaque, with a warning."""
    try:
        body = _body(encode_result(value, depth=2), effect)
    except Refusal as refusal:
        return opaque_body(value, effect, f"it cannot be written as JSON: {refusal}")
    except Exception as error:  # noqa: BLE001 - a property or model_dump of the tool's own may raise anything
        return opaque_body(value, effect, f"it cannot be written as JSON: {type(error).__name__}: {error}")
    if len(body) > MAX_BYTES:
        return opaque_body(value, effect, f"it is larger than {MAX_BYTES} bytes", body)
    return body


def opaque_body(value: object, effect: EffectRef, reason: str, kept: bytes | None = None) -> bytes:
    """Write the commit of a result of which only a digest is kept."""
    _log.warning(
        "The result of %s (effect %s) is not kept: %s. A replay will raise ResultNotKept.",
        effect.tool, effect.key, reason,
    )  # fmt: skip
    opaque = Opaque(
        type=f"{type(value).__module__}.{type(value).__qualname__}",
        size=None if kept is None else len(kept),
        sha256=None if kept is None else hashlib.sha256(kept).hexdigest(),
        reason=_clean(reason),
    )
    return _body({OPAQUE: msgspec.to_builtins(opaque)}, effect)


def error_outcome(error: BaseException) -> ReportedError:
    """Write an exception down: its type's name, its message, and a rejection's data."""
    name = error.type if isinstance(error, Rejected) else type(error).__qualname__
    data = _data(error.data) if isinstance(error, Rejected) else None
    return ReportedError(type=name[:200] or "Error", message=_clean(str(error)), data=data)


def replayed(answer: Replay, spec: ToolSpec) -> Any:
    """Return the recorded result in its annotated type, or raise the recorded rejection."""
    reference = EffectRef(tool=answer.tool, key=answer.key, run=answer.run, fence=answer.fence)
    drift = answer.drift.content if answer.drift else ()
    _log.info(
        "%s was answered from the record: effect %s of %s%s.",
        spec.name, answer.key, answer.committed_at, f", worded differently at {', '.join(drift)}" if drift else "",
    )  # fmt: skip
    error = answer.outcome.failure
    if error is not None:
        raise Rejected(error.message, data=untag(error.data), type=error.type)
    refuse_opaque(answer.outcome.result, reference)
    return _restored(answer.outcome.result, spec, reference)


def warn_of_change(value: object, body: bytes, spec: ToolSpec) -> None:
    """Warn where a replay would not give back what the tool has just returned."""
    result = msgspec.json.decode(body)["result"]
    if isinstance(result, dict) and OPAQUE in result:
        return
    try:
        again = restore(result, spec.signature.returns)
        is_same = type(again) is type(value) and bool(again == value)
    except Misfit as misfit:
        _log.warning("A replay of %s would fail: %s. Correct its return annotation.", spec.name, misfit)
        return
    except Exception:  # noqa: BLE001 - a value whose comparison raises cannot be judged
        return
    if not is_same:
        _log.warning(
            "A replay of %s would return a %s where the tool returned a %s. Annotate its return type.",
            spec.name, type(again).__qualname__, type(value).__qualname__,
        )  # fmt: skip


def _restored(result: object, spec: ToolSpec, reference: EffectRef) -> object:
    try:
        return restore(result, spec.signature.returns)
    except Misfit as misfit:
        raise RecordMismatch(
            f"{spec.name} happened before, but its record does not fit its return annotation: {misfit}. The effect "
            f"is {reference.key}; `twiceshy effects show` has the record.",
            effect=reference,
        ) from misfit


def _body(result: object, effect: EffectRef) -> bytes:
    if effect.attempt is None or effect.fence is None:
        raise TypeError("a commit needs an attempt and a fence")
    return msgspec.json.encode(CommitRequest(attempt=effect.attempt, fence=effect.fence, result=result))


def _data(data: object) -> object:
    try:
        written = encode(data, depth=3)
    except Refusal as refusal:
        _log.warning("The data of a rejection is not kept: %s", refusal)
        return None
    if len(msgspec.json.encode(written)) > _LARGEST_DATA:
        _log.warning("The data of a rejection is not kept: it is larger than %d bytes", _LARGEST_DATA)
        return None
    return written


def _clean(text: str) -> str:
    return text[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
