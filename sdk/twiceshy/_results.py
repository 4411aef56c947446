"""Results on their way into the record and out of it: what cannot be kept leaves its digest, never a lie."""

import hashlib
import logging
from typing import Any

import msgspec

from twiceshy._answers import Replay
from twiceshy._encode import encode_result
from twiceshy._options import ToolSpec
from twiceshy._restore import OPAQUE, Misfit, is_opaque, refuse_opaque, restore, untag
from twiceshy._said import clean, ended, kind_of, said
from twiceshy.exceptions import EffectRef, RecordMismatch, Rejected
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.effects import (
    CommitRequest,
    Opaque,
)
from twiceshy_contract.refusals import Refusal

_log = logging.getLogger("twiceshy")


def commit_body(value: object, effect: EffectRef) -> bytes:
    """Write the commit of what a tool returned; a result that cannot be kept becomes opaque, with a warning."""
    try:
        body = _body(encode_result(value, depth=2), effect)
    except Refusal as refusal:
        return opaque_body(value, effect, f"it cannot be written as JSON: {refusal}")
    except Exception as error:  # noqa: BLE001 - a property or model_dump of the tool's own may raise anything
        return opaque_body(value, effect, f"it cannot be written as JSON: {said(error)}")
    if len(body) > MAX_BYTES:
        return opaque_body(value, effect, f"it is larger than {MAX_BYTES} bytes", body)
    return body


def opaque_body(value: object, effect: EffectRef, reason: str, kept: bytes | None = None) -> bytes:
    """Write the commit of a result of which only a digest is kept."""
    _log.warning(
        "The result of %s (effect %s) is not kept: %s A replay raises ResultNotKept, unless the tool is annotated "
        "to return None.",
        effect.tool, effect.key, ended(reason),
    )  # fmt: skip
    opaque = Opaque(
        type=clean(f"{type(value).__module__}.{kind_of(value)}"),
        size=None if kept is None else len(kept),
        sha256=None if kept is None else hashlib.sha256(kept).hexdigest(),
        reason=clean(reason),
    )
    return _body({OPAQUE: msgspec.to_builtins(opaque)}, effect)


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
    result = answer.outcome.result
    if is_opaque(result) and returns_nothing(spec):
        return None
    refuse_opaque(result, reference)
    return _restored(result, spec, reference)


def returns_nothing(spec: ToolSpec) -> bool:
    """Tell whether the tool is annotated to return None, so that no result of it can be missed."""
    return spec.signature.returns is type(None)


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
