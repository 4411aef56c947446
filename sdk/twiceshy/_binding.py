"""How a call's arguments meet a function's parameters. What plain calls need is done here; the rest by `inspect`."""

import inspect
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class Bound(msgspec.Struct, frozen=True):
    """A bound call: what to call the function with, and every argument by name, defaults among them."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    arguments: Mapping[str, Any]


class Binder:
    """Binds calls to one signature as `inspect.Signature.bind` does, and fills in the defaults."""

    def __init__(self, signature: inspect.Signature) -> None:
        self._signature = signature
        parameters = signature.parameters.values()
        self._is_plain = all(parameter.kind in _NAMED for parameter in parameters)
        self._names = frozenset(signature.parameters)
        self._positions = tuple(p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
        self._defaults = {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}

    def bind(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Bound:
        """Bind a call. Raises TypeError as the function itself would."""
        if self._is_plain and len(args) <= len(self._positions):
            arguments: dict[str, object] = {**self._defaults, **dict(zip(self._positions, args, strict=False))}
            given = arguments.keys() | kwargs.keys()
            if given == self._names and kwargs.keys().isdisjoint(self._positions[: len(args)]):
                arguments.update(kwargs)
                return Bound(args, kwargs, arguments)
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return Bound(bound.args, bound.kwargs, bound.arguments)
