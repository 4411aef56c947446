"""Plain values into annotated types: msgspec and pydantic read; what neither takes whole is read member by member.

msgspec cannot tell two dataclasses of a union apart, nor a text from a date; here each member of the union is
tried, and only the one that would be written back as the record stands is taken. Nothing is guessed.
"""

import dataclasses
import inspect
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, Literal, NewType, Union, get_args, get_origin

import msgspec

from twiceshy._encode import TEXTS, encode_result
from twiceshy._misfit import Misfit
from twiceshy._restore_pydantic import from_pydantic, is_for_pydantic
from twiceshy._said import said


def converted(plain: object, annotation: object) -> object:
    """Make a value of the annotated type. Raises Misfit, or whatever a type's own code raises."""
    if is_for_pydantic(annotation):
        try:
            return from_pydantic(plain, annotation)
        except TypeError as error:
            return _by_shape(plain, annotation, str(error))
    try:
        return msgspec.convert(plain, annotation, dec_hook=_of_foreign_type, str_keys=True)
    except TypeError as error:
        return _by_shape(plain, annotation, str(error))


def members_of_union(annotation: object) -> tuple[object, ...]:
    """Return the members of a union, none for any other annotation."""
    annotation = _bare(annotation)
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()


def _of_foreign_type(kind: Any, plain: object) -> object:
    """Make a value of a type that msgspec does not know, within one that it knows."""
    if is_for_pydantic(kind):
        return from_pydantic(plain, kind)
    return _by_shape(plain, kind, f"a {_name(kind)} cannot be read from a record")


def _by_shape(plain: object, annotation: object, reason: str) -> object:
    """Read a value member by member where no library takes it whole."""
    bare = _bare(annotation)
    kind = get_origin(bare) or bare
    if kind in (Union, types.UnionType):
        return _of_union(plain, get_args(bare))
    if kind is Literal:
        return _of_choices(plain, get_args(bare))
    if not isinstance(kind, type):
        return plain
    if issubclass(kind, TEXTS) and isinstance(plain, str):
        return kind(plain)
    for is_such, read in _SHAPES:
        if is_such(kind):
            return read(plain, bare, kind)
    if isinstance(plain, kind):
        return plain
    raise Misfit(reason)


def _bare(annotation: object) -> object:
    """Return what stands behind notes, new types and aliases."""
    while True:
        if get_origin(annotation) in (typing.Annotated, typing.Required, typing.NotRequired):
            annotation = get_args(annotation)[0]
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = getattr(annotation, "__value__", Any)
        else:
            return annotation


def _of_union(plain: object, members: tuple[object, ...]) -> object:
    """Read as the one member that fits. Of several, as the one that would be written as the record stands."""
    if type(plain) in members or (plain is None and types.NoneType in members):
        return plain
    fitting: list[object] = []
    reasons: list[str] = []
    for member in members:
        try:
            fitting.append(converted(plain, member))
        except Exception as error:  # noqa: BLE001 - a type's own code may refuse with anything
            reasons.append(f"{_name(member)}: {said(error)}")
    if not fitting:
        raise Misfit(f"none of its members fits ({'; '.join(reasons)})")
    if len(fitting) > 1:
        written = encode_result(plain)
        fitting = [candidate for candidate in fitting if encode_result(candidate) == written]
    if len(fitting) != 1:
        raise Misfit("several of its members fit, and nothing tells which was meant; give them a member that does")
    return fitting[0]


def _of_choices(plain: object, choices: tuple[object, ...]) -> object:
    written = encode_result(plain)
    for choice in choices:
        if encode_result(choice) == written:
            return choice
    raise Misfit("it is none of the choices")


def _of_enum(plain: object, _annotation: object, kind: Any) -> object:
    return _of_choices(plain, tuple(kind))


def _of_typed_dict(plain: object, annotation: object, kind: Any) -> object:
    return _members(plain, _hints(annotation, kind), kind.__required_keys__)


def _of_named_tuple(plain: object, annotation: object, kind: Any) -> object:
    hints = _hints(annotation, kind)
    items = _items(plain)
    if len(items) != len(kind._fields):
        raise Misfit(f"it has {len(kind._fields)} members, the record {len(items)}")
    return kind(*(converted(item, hints.get(name, Any)) for name, item in zip(kind._fields, items, strict=True)))


def _of_fields(plain: object, annotation: object, kind: Any) -> object:
    """Make a dataclass or attrs object with the members that the record holds, as they were.

    Its constructor is passed by: it would ask for what is no member, or make a member anew.
    """
    if dataclasses.is_dataclass(kind):
        names = [field.name for field in dataclasses.fields(kind)]
    else:
        names = [attribute.name for attribute in kind.__attrs_attrs__]
    hints = _hints(annotation, kind)
    members = _members(plain, {name: hints.get(name, Any) for name in names}, frozenset(names))
    made = object.__new__(kind)
    for name, member in members.items():
        object.__setattr__(made, name, member)
    return made


def _of_mapping(plain: object, annotation: object, kind: Any) -> object:
    if not isinstance(plain, dict):
        raise Misfit(f"it takes a dict, not a {_name(type(plain))}")
    keys, values = (*get_args(annotation), Any, Any)[:2]
    keyed = types.GenericAlias(dict, (keys, types.NoneType))
    names = msgspec.convert(dict.fromkeys(plain), keyed, dec_hook=_of_foreign_type, str_keys=True)
    read = {name: converted(member, values) for name, member in zip(names, plain.values(), strict=True)}
    return read if inspect.isabstract(kind) else kind(read)


def _of_tuple(plain: object, annotation: object, kind: Any) -> object:
    items = _items(plain)
    hints = get_args(annotation) or (Any, ...)
    if hints[-1] is Ellipsis:
        hints = hints[:1] * len(items)
    if len(hints) != len(items):
        raise Misfit(f"it has {len(hints)} items, the record {len(items)}")
    return kind(converted(item, hint) for item, hint in zip(items, hints, strict=True))


def _of_collection(plain: object, annotation: object, kind: Any) -> object:
    (hint,) = get_args(annotation) or (Any,)
    items = [converted(item, hint) for item in _items(plain)]
    if inspect.isabstract(kind):
        return set(items) if issubclass(kind, abc.Set) else items
    return kind(items)


def _items(plain: object) -> list[object]:
    if not isinstance(plain, list):
        raise Misfit(f"it takes a list, not a {_name(type(plain))}")
    return plain


def _members(plain: object, hints: Mapping[str, object], required: frozenset[str]) -> dict[str, object]:
    """Read the members of an object, each by its hint; others than these it has not."""
    if not isinstance(plain, dict):
        raise Misfit(f"it takes a dict, not a {_name(type(plain))}")
    if missing := required - plain.keys():
        raise Misfit(f"it has {', '.join(sorted(missing))}, which the record has not")
    return {name: converted(member, hints[name]) for name, member in plain.items() if name in hints}


def _hints(annotation: object, kind: Any) -> dict[str, object]:
    """Return the hints of a class, with what a generic one was given."""
    given = dict(zip(getattr(kind, "__parameters__", ()), get_args(annotation), strict=False))
    return {name: given.get(hint, hint) for name, hint in typing.get_type_hints(kind, include_extras=True).items()}


def _name(annotation: object) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else str(annotation)


def _has_fields(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or hasattr(kind, "__attrs_attrs__")


_SHAPES: Final[tuple[tuple[Callable[[type], bool], Callable[[object, object, Any], object]], ...]] = (
    (lambda kind: issubclass(kind, Enum), _of_enum),
    (typing.is_typeddict, _of_typed_dict),
    (lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"), _of_named_tuple),
    (_has_fields, _of_fields),
    (lambda kind: issubclass(kind, abc.Mapping), _of_mapping),
    (lambda kind: issubclass(kind, tuple), _of_tuple),
    (lambda kind: issubclass(kind, abc.Iterable) and not issubclass(kind, str | bytes), _of_collection),
)
"""How a class is known, and how its values are read. The first that fits counts."""
