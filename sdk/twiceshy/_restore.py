"""Values out of the record, equal in type to what was put in, as far as the annotation tells."""

import base64
import types
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Final, Union, get_args, get_origin
from uuid import UUID

import msgspec

from twiceshy._said import ended
from twiceshy.exceptions import EffectRef, ResultNotKept
from twiceshy_contract.effects import Opaque

OPAQUE: Final = "$opaque"


class Misfit(ValueError):
    """The value does not fit the annotation; the message names both types."""


def untag(value: object) -> object:
    """Turn tagged form back into plain Python values."""
    match value:
        case dict():
            if len(value) == 1:
                ((key, payload),) = value.items()
                reader = _READERS.get(key)
                if reader is not None and isinstance(payload, str):
                    return reader(payload)
            return {key[1:] if key[:1] == "$" else key: untag(member) for key, member in value.items()}
        case list():
            return [untag(item) for item in value]
        case _:
            return value


def restore(value: object, annotation: object) -> object:
    """Turn tagged form into a value of the annotated type. Raises Misfit."""
    try:
        plain = untag(value)
    except (ValueError, ArithmeticError) as error:
        raise Misfit(f"the record holds a tag that cannot be read: {error}") from error
    if annotation in (Any, object):
        return plain
    try:
        return _converted(plain, annotation)
    except Misfit:
        raise
    except Exception as error:
        raise Misfit(
            f"the record holds a {type(plain).__name__}, the annotation says {_shown(annotation)}: {error}"
        ) from error


def is_opaque(result: object) -> bool:
    """Tell whether the record holds only what is left of a result that was not kept."""
    return isinstance(result, dict) and set(result) == {OPAQUE}


def refuse_opaque(result: object, effect: EffectRef) -> None:
    """Raise ResultNotKept where the record holds only a result's digest."""
    if not isinstance(result, dict) or not is_opaque(result):
        return
    try:
        kept = msgspec.convert(result[OPAQUE], Opaque)
    except msgspec.ValidationError:
        kept = Opaque(type="unknown type", size=None, sha256=None, reason="the record does not say why")
    raise ResultNotKept(
        f"{effect.tool} happened before, but its result ({kept.type}) was not kept: {ended(kept.reason)} Look it up "
        f"at the provider; the effect is {effect.key}.",
        effect=effect,
    )


def _converted(plain: object, annotation: object) -> object:
    try:
        return msgspec.convert(plain, annotation, dec_hook=_decoded)
    except TypeError:
        members = _members_of_union(annotation)
        if members is None:
            return _unconverted(plain, annotation)
    return _of_union(plain, members, annotation)


def _decoded(kind: type, plain: object) -> object:
    """Make a value of a type that msgspec does not know."""
    if isinstance(plain, kind):
        return plain
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise Misfit(f"the record holds a {type(plain).__name__}, the annotation says {_shown(kind)}")
    return validate(plain)


def _unconverted(plain: object, annotation: object) -> object:
    """Give the plain value where the annotation is beyond what can be checked, unless it clearly differs."""
    if isinstance(annotation, type) and not isinstance(plain, annotation):
        raise Misfit(f"the record holds a {type(plain).__name__}, the annotation says {_shown(annotation)}")
    return plain


def _members_of_union(annotation: object) -> tuple[object, ...] | None:
    if get_origin(annotation) is Annotated:
        return _members_of_union(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else None


def _of_union(plain: object, members: tuple[object, ...], annotation: object) -> object:
    fitting: list[object] = []
    for member in members:
        try:
            fitting.append(_converted(plain, member))
        except (Misfit, msgspec.ValidationError, ValueError):
            continue
    if len(fitting) != 1:
        how_many = "none of its members fits" if not fitting else "several of its members fit"
        raise Misfit(
            f"the record holds a {type(plain).__name__}, the annotation says {_shown(annotation)}, and {how_many}"
        )
    return fitting[0]


def _shown(annotation: object) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "$int": int,
    "$dec": Decimal,
    "$dt": datetime.fromisoformat,
    "$b64": base64.b64decode,
    "$uuid": UUID,
}
