"""Results on their way into the record: what cannot be kept leaves its digest, never a lie."""

import hashlib
import logging
from collections.abc import Sequence

import msgspec

from twiceshy._encode import encode_result
from twiceshy._options import ToolSpec
from twiceshy._restore import OPAQUE, Misfit, is_opaque, restore
from twiceshy._said import clean, ended, kind_of, said
from twiceshy._type_names import type_of_result
from twiceshy.exceptions import EffectRef
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.effects import CommitRequest, Opaque
from twiceshy_contract.messages import Message
from twiceshy_contract.refusals import Refusal

_log = logging.getLogger("twiceshy")


def commit_body(value: object, effect: EffectRef, staged: Sequence[Message] = ()) -> bytes:
    """Write the commit of what a tool returned; a result that cannot be kept becomes opaque, with a warning.

    The messages that the tool has staged go with it.
    """
    try:
        body = _body(encode_result(value, depth=2), effect, staged, type_of_result(value))
    except Refusal as refusal:
        return opaque_body(value, effect, f"it cannot be written as JSON: {refusal}", staged)
    except Exception as error:  # noqa: BLE001 - a property or model_dump of the tool's own may raise anything
        return opaque_body(value, effect, f"it cannot be written as JSON: {said(error)}", staged)
    if len(body) > MAX_BYTES:
        beside = " with the messages that go with it" if staged else ""
        return opaque_body(value, effect, f"it is larger than {MAX_BYTES} bytes{beside}", staged)
    return body


def opaque_body(value: object, effect: EffectRef, reason: str, staged: Sequence[Message] = ()) -> bytes:
    """Write the commit of a result of which only a digest is kept; one that cannot be written has none."""
    _log.warning(
        "The result of %s (effect %s) is not kept: %s A replay raises ResultNotKept, unless the tool is annotated "
        "to return None.",
        effect.tool, effect.key, ended(reason),
    )  # fmt: skip
    written = _written_or_none(value)
    opaque = Opaque(
        type=clean(f"{type(value).__module__}.{kind_of(value)}"),
        size=None if written is None else len(written),
        sha256=None if written is None else hashlib.sha256(written).hexdigest(),
        reason=clean(reason),
    )
    return _body({OPAQUE: msgspec.to_builtins(opaque)}, effect, staged)


def returns_nothing(spec: ToolSpec) -> bool:
    """Tell whether the tool is annotated to return None, so that no result of it can be missed."""
    return spec.signature.returns is type(None)


def warn_of_change(value: object, body: bytes, spec: ToolSpec) -> None:
    """Warn where a replay would not give back what the tool has just returned."""
    commit = msgspec.json.decode(body, type=_Kept)
    if is_opaque(commit.result):
        return
    unread = spec.signature.unread_return
    advice = f"Its return annotation cannot be read: {ended(unread)}" if unread else "Correct its return annotation."
    try:
        again = restore(commit.result, spec.signature.returns, commit.result_type)
        is_same = _is_same(again, value)
    except Misfit as misfit:
        _log.warning("A replay of %s would fail: %s. %s", spec.name, misfit, advice)
        return
    except Exception:  # noqa: BLE001 - a value whose comparison raises cannot be judged
        return
    if is_same:
        return
    if type(again) is type(value):
        differs = f"another {type(value).__qualname__} than the tool returned"
        advice = advice if unread else "Annotate its return type down to the members of containers and classes."
    else:
        differs = f"a {type(again).__qualname__} where the tool returned a {type(value).__qualname__}"
        advice = advice if unread else "Annotate its return type."
    _log.warning("A replay of %s would return %s. %s", spec.name, differs, advice)


class _Kept(msgspec.Struct, frozen=True):
    """What a commit says of the result."""

    result: object
    result_type: str | None = None


def _is_same(again: object, value: object) -> bool:
    """Tell whether two values are equal in type and value; containers, and what has no equality, by their members."""
    if type(again) is not type(value):
        return False
    if isinstance(again, list | tuple) and isinstance(value, list | tuple):
        return len(again) == len(value) and all(map(_is_same, again, value))
    if isinstance(again, dict) and isinstance(value, dict):
        return _is_same(list(again), list(value)) and _is_same(list(again.values()), list(value.values()))
    if type(value).__eq__ is object.__eq__:
        return encode_result(again) == encode_result(value)
    return bool(again == value)


def _written_or_none(value: object) -> bytes | None:
    try:
        return msgspec.json.encode(encode_result(value))
    except Exception:  # noqa: BLE001 - a property or model_dump of the tool's own may raise anything
        return None


def _body(result: object, effect: EffectRef, staged: Sequence[Message], result_type: str | None = None) -> bytes:
    if effect.attempt is None or effect.fence is None:
        raise TypeError("a commit needs an attempt and a fence")
    commit = CommitRequest(
        attempt=effect.attempt, fence=effect.fence, result=result, result_type=result_type, outbox=tuple(staged)
    )
    return msgspec.json.encode(commit)
