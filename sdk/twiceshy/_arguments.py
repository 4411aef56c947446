"""A tool's arguments: bound to its signature and written in tagged form before anything begins."""

import contextlib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final

from twiceshy._binding import Binder, Bound
from twiceshy._encode import encode
from twiceshy._restore import Misfit, restore
from twiceshy._said import said
from twiceshy.exceptions import SetupError, ToolArgumentError
from twiceshy_contract.refusals import Refusal

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

_REST: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Signature:
    """What the guard knows of a tool's function: its parameters and its annotations.

    A call has a `result` of another type than the function where that is given.
    """

    def __init__(
        self, tool: str, function: Callable[..., Any], *, is_bound: bool = False, result: type | None = None
    ) -> None:
        self.tool = tool
        self.result: Final = result
        self._function = function
        try:
            whole = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise SetupError(f"The signature of {tool} cannot be read: {error}. Wrap it in a function.") from error
        parameters = list(whole.parameters.values())
        self._of_call = whole.replace(parameters=parameters[1:]) if is_bound else whole
        self._binder = Binder(self._of_call)

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of a call."""
        return self._of_call.parameters

    def bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Bound:
        """Bind a call and fill in defaults. Raises ToolArgumentError."""
        try:
            return self._binder.bind(args, kwargs)
        except TypeError as error:
            raise ToolArgumentError(f"{self.tool}: {error}. Nothing began; correct the call.") from error

    def written(self, bound: Bound) -> dict[str, object]:
        """Write bound arguments in tagged form. Raises ToolArgumentError."""
        written: dict[str, object] = {}
        for name, value in bound.arguments.items():
            try:
                written[name] = encode(value, depth=2)
            except Refusal as refusal:
                raise self._refused(refusal.under(name), value) from refusal
            except Exception as error:
                raise self._refused(Refusal(said(error), (name,)), value) from error
        return written

    def recorded(self, arguments: Mapping[str, object]) -> Bound:
        """Bind arguments of the record, restored to the annotated types. Raises Misfit."""
        args: list[object] = []
        kwargs: dict[str, object] = {}
        if set(arguments) != set(self.parameters):
            raise Misfit(
                f"the record has the arguments {', '.join(sorted(arguments)) or 'none'}, "
                f"the tool takes {', '.join(self.parameters) or 'none'}"
            )
        for name, parameter in self.parameters.items():
            self._place(parameter, arguments[name], args, kwargs)
        try:
            return self._binder.bind(tuple(args), kwargs)
        except TypeError as error:
            raise Misfit(f"the recorded arguments do not fit the tool: {error}") from error

    def made(self, arguments: Mapping[str, object]) -> Bound:
        """Bind arguments that the service made; what they leave out has its default. Raises Misfit."""
        missing = [name for name in self.parameters if name not in arguments]
        defaults = {name: self.parameters[name].default for name in missing}
        named = [name for name in missing if self.parameters[name].kind not in _REST]
        lacking = [name for name in named if defaults[name] is inspect.Parameter.empty]
        unknown = [name for name in arguments if name not in self.parameters]
        if lacking or unknown:
            what = [*(f"{name} is missing" for name in lacking), *(f"there is no {name}" for name in unknown)]
            raise Misfit(", ".join(what))
        args: list[object] = []
        kwargs: dict[str, object] = {}
        for name, parameter in self.parameters.items():
            if name in arguments:
                self._place(parameter, arguments[name], args, kwargs)
            elif parameter.kind in _POSITIONAL:
                args.append(defaults[name])
        return self._binder.bind(tuple(args), kwargs)

    def _place(
        self, parameter: inspect.Parameter, value: object, args: list[object], kwargs: dict[str, object]
    ) -> None:
        hint = self.hints.get(parameter.name, Any)
        match parameter.kind, value:
            case ((inspect.Parameter.POSITIONAL_ONLY | inspect.Parameter.POSITIONAL_OR_KEYWORD), _):
                args.append(restore(value, hint))
            case inspect.Parameter.VAR_POSITIONAL, list():
                args.extend(restore(item, hint) for item in value)
            case inspect.Parameter.VAR_KEYWORD, dict():
                kwargs.update({n[1:] if n[:1] == "$" else n: restore(v, hint) for n, v in value.items()})
            case _:
                kwargs[parameter.name] = restore(value, hint)

    @cached_property
    def hints(self) -> dict[str, Any]:
        """The annotations, resolved; without those in which a name cannot be found."""
        function = _annotated(self._function)
        try:
            return typing.get_type_hints(function, include_extras=True)
        except Exception:  # noqa: BLE001 - an annotation may be any expression; those that can be read still count
            hints: dict[str, Any] = {}
        for name, annotation in _written_annotations(function).items():
            with contextlib.suppress(Exception):
                hints[name] = _resolved(annotation, function)
        return hints

    @property
    def returns(self) -> object:
        """The type of a call's result: as it is fixed, else as it is annotated, Any where it is not."""
        return self.hints.get("return", Any) if self.result is None else self.result

    @property
    def unread_return(self) -> str | None:
        """Why the return annotation cannot be read; None where it can, or where there is none."""
        function = _annotated(self._function)
        written = _written_annotations(function)
        if "return" in self.hints or "return" not in written:
            return None
        try:
            _resolved(written["return"], function)
        except Exception as error:  # noqa: BLE001 - an annotation may be any expression
            return f"{written['return']!r} raises {said(error)}"
        return None

    def _refused(self, refusal: Refusal, value: object) -> ToolArgumentError:
        return ToolArgumentError(
            f"{self.tool}: the argument at {refusal.path} ({type(value).__name__}) cannot be taken: "
            f"{refusal.reason}. Nothing began; correct the call.",
            path=refusal.path,
        )


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that carries the annotations: behind wrappers, partials and objects that are called."""
    found: Callable[..., Any] = inspect.unwrap(function)
    while isinstance(found, functools.partial):
        found = inspect.unwrap(found.func)
    if not inspect.isroutine(found) and not isinstance(found, type):
        found = inspect.unwrap(type(found).__call__)
    return found


def _written_annotations(function: Callable[..., Any]) -> dict[str, object]:
    """Return annotations as they were written, none where Python cannot read even that."""
    try:
        return dict(function.__annotations__)
    except Exception:  # noqa: BLE001 - an annotation may be any expression
        return {}


def _resolved(annotation: object, function: Callable[..., Any]) -> object:
    """Resolve one annotation. Raises whatever its expression raises."""
    alone = types.SimpleNamespace(__annotations__={"it": annotation})
    names = getattr(inspect.unwrap(function), "__globals__", {})
    return typing.get_type_hints(alone, globalns=names, include_extras=True)["it"]
