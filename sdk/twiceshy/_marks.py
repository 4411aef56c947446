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
    """Tell whether a tool comes by a `with current_effect().sending():` before anything else may have been sent.

    The effect is the call itself or a local name assigned once, from it. Straight code leads to the block: plain
    statements, `if` that only raises, and a `with` that ends its body. A tool proves nothing whose source is not at
    hand or is no longer what runs, or which another decorator wraps.
    """
    own = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(own, FunctionType) or hasattr(own, "__wrapped__") or "sending" not in own.__code__.co_names:
        return False
    definition = _definition(own)
    if definition is None or not _is_what_runs(own):
        return False
    names = _Names(own, definition)
    return any(_is_mark(item.context_expr, names) for block in _surely_entered(definition.body) for item in block.items)


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


def _is_what_runs(function: FunctionType) -> bool:
    """Tell whether the file, which may have been edited since, compiles to the code that was loaded from it."""
    loaded = function.__code__
    try:
        lines, _ = inspect.findsource(function)
        compiled = compile("".join(lines), "<tool>", "exec", dont_inherit=True)
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return False
    return any(
        (code.co_code, code.co_names, code.co_varnames) == (loaded.co_code, loaded.co_names, loaded.co_varnames)
        for code in _codes_within(compiled)
        if (code.co_name, code.co_firstlineno) == (loaded.co_name, loaded.co_firstlineno)
    )


def _codes_within(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_within(constant)


_PLAIN = (
    ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Assert, ast.Import, ast.ImportFrom, ast.Pass, ast.Delete,
    ast.Global, ast.Nonlocal, ast.FunctionDef, ast.AsyncFunctionDef, ast.Raise,
)  # fmt: skip


def _surely_entered(body: Sequence[ast.stmt]) -> Iterator[ast.With | ast.AsyncWith]:
    """Yield the `with` blocks that straight code leads to, and nothing but an exception passes by."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            yield statement
            if statement is body[-1]:
                yield from _surely_entered(statement.body)
            return
        is_guard = isinstance(statement, ast.If) and not statement.orelse and _only_raises(statement.body)
        if not is_guard and not isinstance(statement, _PLAIN):
            return


def _only_raises(body: Sequence[ast.stmt]) -> bool:
    return all(isinstance(statement, ast.Raise) for statement in body)


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
