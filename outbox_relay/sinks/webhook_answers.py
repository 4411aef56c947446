"""What a receiver's answer to a webhook means: the status decides, whatever its body is. Pure."""

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec

from outbox_relay.sinks.base import Delivered, Permanent, Result, Retryable, Unknown

RECEIPT_CHARACTERS: Final = 200
"""What is kept of an answer's body."""
_RETRIED: Final = frozenset((408, 425, 429))
_OF_A_GATEWAY: Final = frozenset((502, 504, 524))
"""What a gateway says whose server did not answer in time or in order: it may have done all that was asked."""
_SECONDS: Final = re.compile(r"[0-9]+")
_LONGEST_WISH: Final = 1e9


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as far as it was read. `headers` are asked by their names in lower case."""

    status: int
    headers: Mapping[str, str] = {}
    beginning: bytes = b""


def result_of(answer: Answer, now: int, *, deduplicates: bool) -> Result:
    """Say what an answer means. `now` (seconds since 1970) matters only where the receiver does not say its own.

    Where the receiver `deduplicates`, a message is as well sent again as left in doubt.
    """
    said = receipt(answer)
    status = answer.status
    if 200 <= status < 300:
        return Delivered(receipt=said)
    if 300 <= status < 400:
        return Permanent(why=_redirect(answer, said))
    if status in _OF_A_GATEWAY and not deduplicates:
        return Unknown(why=f"A gateway answered {said}: whether the receiver behind it took the message, nobody knows.")
    if status in _RETRIED or status >= 500:
        wish = retry_after(answer.headers, now)
        is_throttled = status == 429 or (status == 503 and wish is not None)
        return Retryable(why=f"The receiver answered {said}", retry_after=wish, is_throttled=is_throttled)
    if status >= 400:
        is_gone = status == 410
        return Permanent(
            why=f"The receiver {'is gone' if is_gone else 'refused it'}: it answered {said}", is_gone=is_gone
        )
    return Unknown(why=f"The receiver answered {said}, which is no answer to a request that was sent.")


def receipt(answer: Answer) -> str:
    """Return the status, and the beginning of the body as printable text on one line."""
    text = " ".join(answer.beginning.decode(errors="replace").split())
    printable = "".join(letter for letter in text if letter.isprintable())[:RECEIPT_CHARACTERS].strip()
    return f"{answer.status}: {printable}" if printable else str(answer.status)


def retry_after(headers: Mapping[str, str], now: int) -> float | None:
    """Return how many seconds the receiver asks to be left alone, if it says so.

    A date is taken as that long after the receiver's own `Date`: its clock and ours need not agree.
    """
    wish = headers.get("retry-after", "").strip()
    if _SECONDS.fullmatch(wish):
        return min(float(wish), _LONGEST_WISH)
    until = _instant(wish)
    if until is None:
        return None
    date = _instant(headers.get("date", ""))
    return max(0.0, until - (now if date is None else date))


def _instant(text: str) -> float | None:
    try:
        instant = parsedate_to_datetime(text)
        return (instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _redirect(answer: Answer, said: str) -> str:
    place = answer.headers.get("location", "").encode("ascii", "replace").decode()[:RECEIPT_CHARACTERS]
    to = f" and points to {place}" if place.isprintable() and place else ""
    return f"The receiver answered {said}{to}. No redirect is followed: declare the address that takes messages."
