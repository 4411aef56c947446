"""The command `twiceshy`: the SDK's own verbs, and those that other distributions add."""

from twiceshy._commands.main import main

__all__ = ["main"]
