"""Every client of a library records, without a change of the agent's code."""

import importlib
import threading
from collections.abc import Callable
from importlib.util import find_spec
from types import TracebackType
from typing import Final, Literal, Self, get_args

from twiceshy._exchanges.options import DEFAULT, HttpOptions
from twiceshy.exceptions import SetupError
from twiceshy_contract.variables import did_you_mean

Library = Literal["aiohttp", "anthropic", "httpx", "httpx2", "openai", "requests"]
"""Libraries whose clients can be recorded. Those of `openai` and `anthropic` send through httpx2."""

_THROUGH: Final = {"anthropic": ("httpx2",), "openai": ("httpx2",)}


class _Adapter:
    """One library's adapter while it is in force: how often it was asked for, and what takes it out again."""

    def __init__(self, name: str) -> None:
        self.options: list[HttpOptions] = []
        self._name = name
        self._undo: Callable[[], None] | None = None

    def enter(self, options: HttpOptions) -> None:
        """Put the adapter in force, if it is not; these options hold from now on."""
        if self._undo is None:
            module = importlib.import_module(f"twiceshy.adapters.{self._name}")
            self._undo = module.instrumented(lambda: self.options[-1] if self.options else DEFAULT)
        self.options.append(options)

    def leave(self, options: HttpOptions) -> None:
        """Take these options back, and the adapter where nobody else asked for it."""
        self.options.remove(options)
        if not self.options and self._undo is not None:
            undo, self._undo = self._undo, None
            undo()


class Instrumented:
    """Libraries whose clients record, until `undo` is called or the `with` block is left."""

    def __init__(self, names: tuple[str, ...], options: HttpOptions) -> None:
        """Put the adapters in force."""
        self.libraries: Final = names
        self._options = options
        self._entered: list[str] = []
        with _lock:
            try:
                for name in names:
                    _adapters.setdefault(name, _Adapter(name)).enter(options)
                    self._entered.append(name)
            except BaseException:
                self.undo()
                raise

    def undo(self) -> None:
        """Let the clients be as they were."""
        with _lock:
            while self._entered:
                _adapters[self._entered.pop()].leave(self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.undo()


def instrument(*libraries: Library, options: HttpOptions = DEFAULT) -> Instrumented:
    """Let every client of these libraries record wherever a recorded run is open, those that are there already too.

        twiceshy.instrument("openai")

    Without a name: of all that are installed. In a replay they open no connection. It lasts until `undo` is called on
    what it returns, or as long as that is a `with` block.
    """
    known = get_args(Library)
    for name in libraries:
        if name not in known:
            choice = ", ".join(known)
            raise SetupError(f"instrument knows no {name!r}{did_you_mean(str(name), known)} The choice is {choice}.")
    asked = libraries or tuple(name for name in known if name not in _THROUGH and find_spec(name) is not None)
    names = {through: None for name in asked for through in _THROUGH.get(name, (name,))}
    return Instrumented(tuple(names), options)


_adapters: Final[dict[str, _Adapter]] = {}
_lock: Final = threading.RLock()
