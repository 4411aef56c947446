"""Whether a tool surely marks what it sends, proved by its own source and guessed from no name.

An exception before the mark counts as not applied, and the tool runs again: what this module proves must be so.
"""

import ast
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FunctionType, MethodType
from typing import Any

from twiceshy._effect import current_effect


def marks_sending(function: Callable[..., Any]) -> bool:
    """Tell whether every way through a tool's own body leads to a `with current_effect().sending():`.

    The effect is the call itself or a local name assigned once, from it. A mark under a condition, a loop, an
    `except`, `else` or `finally`, or in an inner function proves nothing; nor does a tool whose source is not at
    hand, or another decorator between the tool and the guard.
    """
    own = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(own, FunctionType) or hasattr(own, "__wrapped__") or "sending" not in own.__code__.co_names:
        return False
    definition = _definition(own)
    if definition is None:
        return False
    names = _Names(own, definition)
    return any(_is_mark(item.context_expr, names) for block in _always_entered(definition.body) for item in block.items)


def _definition(function: FunctionType) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """Return a function's definition, read from its source; None where there is none or it cannot be read."""
    try:
        source = inspect.getsource(function)
        body = ast.parse(f"if True:\n{source}" if source[:1].isspace() else source).body
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return None
    first = body[0] if body else None
    found = first.body[0] if isinstance(first, ast.If) else first
    if isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef)) and found.name == function.__code__.co_name:
        return found
    return None


def _always_entered(body: Sequence[ast.stmt]) -> Iterator[ast.With | ast.AsyncWith]:
    """Yield the `with` blocks of a body that nothing but an exception, or leaving the function, can pass by."""
    for statement in body:
        match statement:
            case ast.With() | ast.AsyncWith():
                yield statement
                yield from _always_entered(statement.body)
            case ast.Try() | ast.TryStar():
                yield from _always_entered(statement.body)
            case _:
                pass


class _Names:
    """What the names in a function's own body stand for, as far as that is certain."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self._code: CodeType = function.__code__
        self._globals = function.__globals__
        self._nodes = [node for part in (definition.args, *definition.body) for node in ast.walk(part)]

    def is_current_effect(self, node: ast.expr) -> bool:
        """Tell whether an expression is the call `current_effect()`, under the name that it is imported by."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)) or node.args or node.keywords:
            return False
        name = node.func.id
        is_global = name not in (*self._code.co_varnames, *self._code.co_cellvars, *self._code.co_freevars)
        return is_global and not self._bindings(name) and self._globals.get(name) is current_effect

    def is_assigned_once_from_it(self, name: str) -> bool:
        """Tell whether a local name is bound once in the whole function, by `name = current_effect()`."""
        if name not in (*self._code.co_varnames, *self._code.co_cellvars) or self._bindings(name) != 1:
            return False
        return any(
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == name
            and self.is_current_effect(node.value)
            for node in self._nodes
        )

    def _bindings(self, name: str) -> int:
        """Count what binds a name anywhere in the function, inner scopes included."""
        return sum(name in _bound_by(node) for node in self._nodes)


def _bound_by(node: ast.AST) -> Sequence[str | None]:  # noqa: PLR0911 - one case a kind of binding
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()):
            return [node.id]
        case ast.arg():
            return [node.arg]
        case ast.alias():
            return [node.asname or node.name.split(".")[0]]
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [node.name]
        case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
            return [node.name]
        case ast.MatchMapping():
            return [node.rest]
        case ast.Global() | ast.Nonlocal():
            return node.names
        case _:
            return []


def _is_mark(node: ast.expr, names: _Names) -> bool:
    """Tell whether an expression is `X.sending()` of the effect that the tool runs for."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "sending"):
        return False
    whose = node.func.value
    if isinstance(whose, ast.Name):
        return names.is_assigned_once_from_it(whose.id)
    return names.is_current_effect(whose)
