"""A tool's arguments: bound to its signature and written in tagged form before anything begins."""

import inspect
import typing
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from twiceshy._encode import encode
from twiceshy._restore import Misfit, restore
from twiceshy._said import said
from twiceshy.exceptions import SetupError, ToolArgumentError
from twiceshy_contract.refusals import Refusal


class Signature:
    """What the guard knows of a tool's function: its parameters and its annotations."""

    def __init__(self, tool: str, function: Callable[..., Any], *, is_bound: bool = False) -> None:
        self.tool = tool
        self._function = function
        try:
            whole = inspect.signature(function)
        except (TypeError, ValueError) as error:
            raise SetupError(f"The signature of {tool} cannot be read: {error}. Wrap it in a function.") from error
        parameters = list(whole.parameters.values())
        self._of_call = whole.replace(parameters=parameters[1:]) if is_bound else whole

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of a call."""
        return self._of_call.parameters

    def bind(self, args: tuple[object, ...], kwargs: dict[str, object]) -> inspect.BoundArguments:
        """Bind a call and fill in defaults. Raises ToolArgumentError."""
        try:
            bound = self._of_call.bind(*args, **kwargs)
        except TypeError as error:
            raise ToolArgumentError(f"{self.tool}: {error}. Nothing began; correct the call.") from error
        bound.apply_defaults()
        return bound

    def written(self, bound: inspect.BoundArguments) -> dict[str, object]:
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

    def recorded(self, arguments: Mapping[str, object]) -> inspect.BoundArguments:
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
            bound = self._of_call.bind(*args, **kwargs)
        except TypeError as error:
            raise Misfit(f"the recorded arguments do not fit the tool: {error}") from error
        bound.apply_defaults()
        return bound

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
        """The annotations, resolved; empty where a name in them cannot be found."""
        function = inspect.unwrap(self._function)
        try:
            return typing.get_type_hints(function, include_extras=True)
        except Exception:  # noqa: BLE001 - an annotation may be any expression; without it values stay plain
            return {}

    @property
    def returns(self) -> object:
        """The annotated type of the result, Any where there is none."""
        return self.hints.get("return", Any)

    def _refused(self, refusal: Refusal, value: object) -> ToolArgumentError:
        return ToolArgumentError(
            f"{self.tool}: the argument at {refusal.path} ({type(value).__name__}) cannot be taken: "
            f"{refusal.reason}. Nothing began; correct the call.",
            path=refusal.path,
        )
