"""Values out of the record, equal in type to what was put in, as far as the annotation tells."""

import base64
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

import msgspec

from twiceshy._misfit import Misfit
from twiceshy._said import ended, message_of, said
from twiceshy._shapes import converted, members_of_union
from twiceshy._type_names import held, qualified, shown_beside
from twiceshy.exceptions import EffectRef, ResultNotKept
from twiceshy_contract.effects import Opaque
from twiceshy_contract.refusals import Refusal

__all__ = ["OPAQUE", "Misfit", "is_opaque", "refuse_opaque", "restore", "untag"]

OPAQUE: Final = "$opaque"


def untag(value: object) -> object:
    """Turn tagged form back into plain Python values. Raises Refusal for a tag that cannot be read."""
    match value:
        case dict():
            if len(value) == 1:
                ((key, payload),) = value.items()
                reader = _READERS.get(key)
                if reader is not None and isinstance(payload, str):
                    return _read(reader, key, payload)
            return {key[1:] if key[:1] == "$" else key: untag(member) for key, member in value.items()}
        case list():
            return [untag(item) for item in value]
        case _:
            return value


def _read(reader: Callable[[str], object], tag: str, payload: str) -> object:
    try:
        return reader(payload)
    except (ValueError, ArithmeticError) as error:
        raise Refusal(f"the tag {tag} holds {payload[:40]!r}: {error}") from error


def restore(value: object, annotation: object, first: str | None = None) -> object:
    """Turn tagged form into a value of the annotated type. Raises Misfit.

    `first` names the type that was put in: of a union it tells the member, of a class the subclass. Another name
    is no fault: a class may be renamed or moved, as long as the value fits.
    """
    try:
        plain = untag(value)
    except (ValueError, ArithmeticError) as error:
        raise Misfit(f"the record holds a tag that cannot be read: {error}") from error
    if annotation in (Any, object):
        return plain
    for kind in _named(annotation, first):
        try:
            return converted(plain, kind)
        except Exception:  # noqa: BLE001, S112 - the whole annotation is asked next, and says why not
            continue
    try:
        return converted(plain, annotation)
    except Exception as error:
        why = message_of(error) if isinstance(error, Misfit | msgspec.ValidationError) else said(error)
        says = "says" if first is None else "now says"
        what, wanted = held(plain, first), shown_beside(annotation, first)
        raise Misfit(
            f"the record holds {what}, the annotation {says} {wanted}: {why}",
            given=f"it is {what}, the annotation says {wanted}: {why}",
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
    if effect.key is None:
        raise ResultNotKept(
            f"{effect.tool} is in the recording, but what it returned ({kept.type}) was not kept: {ended(kept.reason)} "
            "Let it return what can be written as JSON, or say in its place what the code shall get: an Override.",
            effect=effect,
        )
    raise ResultNotKept(
        f"{effect.tool} happened before, but its result ({kept.type}) was not kept: {ended(kept.reason)} Look it up "
        f"at the provider; the effect is {effect.key}.",
        effect=effect,
    )


def _named(annotation: object, first: str | None) -> Iterator[type]:
    """Find the type that was put in among what the annotation allows: members of a union and their subclasses."""
    if first is None:
        return
    allowed = members_of_union(annotation) or (annotation,)
    yield from (kind for kind in _with_subclasses(allowed, set()) if qualified(kind) == first)


def _with_subclasses(kinds: object, seen: set[type]) -> Iterator[type]:
    for kind in kinds if isinstance(kinds, tuple | list) else ():
        if isinstance(kind, type) and kind is not object and kind not in seen:
            seen.add(kind)
            yield kind
            yield from _with_subclasses(type.__subclasses__(kind), seen)


_READERS: Final[dict[str, Callable[[str], object]]] = {
    "$int": int,
    "$dec": Decimal,
    "$dt": datetime.fromisoformat,
    "$b64": base64.b64decode,
    "$uuid": UUID,
}
