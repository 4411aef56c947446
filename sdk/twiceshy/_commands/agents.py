"""Functions that are named on the command line as `module:function`, and what is wrong where they cannot be had."""

import importlib
import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from twiceshy._in_brief import brief
from twiceshy._said import said
from twiceshy_contract.variables import did_you_mean


def named_function(text: str, option: str) -> Callable[..., Any]:
    """Import `module:function`, or `file.py:function`. Modules are looked for in the current folder first."""
    place, _, path = text.rpartition(":")
    if not place or not all(part.isidentifier() for part in path.split(".")):
        raise click.UsageError(f"{option} is module:function, such as shop.agent:main; {text!r} is not.")
    found: Any = _module(place, option)
    for name in path.split("."):
        if not hasattr(found, name):
            raise click.UsageError(f"{option}: {place} has no {path!r}{did_you_mean(name, vars(found))}")
        found = getattr(found, name)
    if not callable(found):
        raise click.UsageError(f"{option}: {text} is no function, but {brief(found)}.")
    function: Callable[..., Any] = found
    return function


def _module(place: str, option: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return _of_file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is None or not (place == error.name or place.startswith(f"{error.name}.")):
            raise _broken(place, option, error) from error
        raise click.UsageError(
            f"{option}: there is no module {error.name!r} in {here}, nor is one installed. Call the command from the "
            "folder that your program is started from."
        ) from error
    except FileNotFoundError as error:
        raise click.UsageError(f"{option}: there is no file {place}.") from error
    except (Exception, SystemExit) as error:
        raise _broken(place, option, error) from error


def _of_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(path)
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _broken(place: str, option: str, error: BaseException) -> click.ClickException:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return click.ClickException(f"{option}: {place} cannot be imported: {said(error)} ({last.filename}:{last.lineno}).")
