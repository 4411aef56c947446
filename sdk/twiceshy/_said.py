"""Exceptions in words. A foreign exception may break at every touch; nothing here raises for it."""

import logging
from typing import Final

_LONGEST_TEXT: Final = 10_000
_log = logging.getLogger("twiceshy")


def clean(text: str) -> str:
    """Return text that every encoder takes: not too long, and without lone surrogates."""
    return str.encode(text, "utf-8", "replace").decode()[:_LONGEST_TEXT]


def kind_of(value: object) -> str:
    """Return the qualified name of a value's class."""
    try:
        return clean(type(value).__qualname__) or "Error"
    except Exception:  # noqa: BLE001 - a metaclass may do anything
        return "Error"


def message_of(error: BaseException) -> str:
    """Return an exception's message, or say that it has none that can be read."""
    try:
        return clean(str(error))
    except Exception as broken:  # noqa: BLE001 - its __str__ is the tool's own code
        return f"(the message of this {kind_of(error)} cannot be read: its __str__ raised {kind_of(broken)})"


def said(error: BaseException) -> str:
    """Return an exception's name and, where it has one, its message."""
    message = message_of(error)
    return f"{kind_of(error)}: {message}" if message else kind_of(error)


def ended(text: str) -> str:
    """Return a text with the one full stop that ends it."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def note(error: BaseException, text: str) -> None:
    """Add a note to an exception; one that takes no notes, such as a frozen dataclass, goes without."""
    try:
        error.add_note(text)
    except Exception:  # noqa: BLE001 - its attributes are the tool's own code
        _log.warning("An exception of the kind %s takes no notes; the note was: %s", kind_of(error), text)
