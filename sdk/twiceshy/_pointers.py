"""JSON Pointers of arguments as code declares them: a slip would quietly change which calls are the same."""

from collections.abc import Iterable, Mapping
from inspect import Parameter

from twiceshy.exceptions import SetupError
from twiceshy_contract.refusals import steps_of
from twiceshy_contract.variables import did_you_mean


def require_lists(tool: str, roles: Mapping[str, object]) -> None:
    """Check that each role is a list of texts. Raises SetupError."""
    for role, paths in roles.items():
        is_list = isinstance(paths, (list, tuple, set, frozenset)) and all(isinstance(path, str) for path in paths)
        if not is_list:
            raise SetupError(f"{tool}: {role} is a list of JSON Pointers, such as ['/title'].")


def require_arguments(tool: str, paths: Iterable[str], parameters: Mapping[str, Parameter]) -> None:
    """Check that each path begins at an argument of the tool. Raises SetupError with the nearest name."""
    rest = next((name for name, parameter in parameters.items() if parameter.kind is Parameter.VAR_KEYWORD), None)
    for path in paths:
        if not path.startswith("/"):
            raise SetupError(f"{tool}: {path!r} is no JSON Pointer; it begins with '/', such as '/title'.")
        first = steps_of(path)[0]
        if first not in parameters:
            near = did_you_mean(first, parameters, prefix="/")
            if rest is not None:
                near = f"; what **{rest} takes lies below it: did you mean '/{rest}{path}'?"
            raise SetupError(f"{tool}: {path!r} leads to no argument{near} The arguments are {_shown(parameters)}.")


def _shown(parameters: Mapping[str, Parameter]) -> str:
    return ", ".join(parameters) or "none"
