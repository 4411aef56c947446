"""The named scopes around a boundary: calls that are alike are told apart by them."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from twiceshy._boundary_names import required_name
from twiceshy.exceptions import SetupError

_MOST_CHARACTERS: Final = 500
_path: Final[ContextVar[str]] = ContextVar("twiceshy_scope", default="")


def current_scope() -> str:
    """Return the path of the scopes here, with slashes between their names."""
    return _path.get()


@contextmanager
def scoped(name: str) -> Iterator[None]:
    """Let the boundaries in the block be within one more scope. Raises SetupError for what is no name."""
    inner = required_name("The scope", name)
    outer = _path.get()
    path = f"{outer}/{inner}" if outer else inner
    if len(path) > _MOST_CHARACTERS:
        raise SetupError(f"The scope {name!r} is too deep: its path has more than {_MOST_CHARACTERS} characters.")
    token = _path.set(path)
    try:
        yield
    finally:
        _path.reset(token)


def set_scope(path: str) -> None:
    """Let the path of the scopes here be this one."""
    _path.set(path)
