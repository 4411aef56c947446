"""The terms of a fork as they are typed: `--at`, `--reads` and `--live`."""

from collections.abc import Callable, Sequence
from typing import Any, Final, get_args

import click
import msgspec

from twiceshy._commands.parameters import json_of
from twiceshy_contract.forks import LiveTerms, Reads
from twiceshy_contract.names import ToolName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.wire import convert

_LIVE: Final = '--live takes a tool, or JSON such as \'{"tool": "pay", "when": "arguments.amount < `10`", "calls": 1}\''


def with_terms(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say what a fork may do."""
    live = click.option(
        "--live",
        multiple=True,
        metavar="TOOL|JSON",
        help="A tool that may really run, or JSON with `tool`, `when` and `calls`; repeatable.",
    )
    reads = click.option("--reads", type=click.Choice(get_args(Reads)), default="live", show_default=True,
                         help="Whether a call that only reads may really run.")  # fmt: skip
    return reads(live(command))


def live_terms(given: Sequence[str]) -> tuple[LiveTerms, ...]:
    """Read the tools that may really run."""
    return tuple(_terms(text) for text in given)


def _terms(text: str) -> LiveTerms:
    try:
        if text.startswith(("{", "@")):
            return convert(json_of(text, "--live"), LiveTerms)
        return LiveTerms(tool=msgspec.convert(text, ToolName))
    except (Refusal, msgspec.ValidationError) as error:
        raise click.UsageError(f"{_LIVE}; {text!r} is neither: {error}.") from error
