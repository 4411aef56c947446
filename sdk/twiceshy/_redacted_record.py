"""Calls of which the record has another part redacted than what is redacted now: they are known by the rest."""

from twiceshy._boundaries import Boundary
from twiceshy._recording import Recording
from twiceshy._script import Order, key_of


def digest_in(recording: Recording, order: Order, boundary: Boundary, digest: str) -> str:
    """Return the digest that the record has of a call: its own, or that of the next one which it is but for marks."""
    key = key_of(boundary, digest)
    if boundary.is_that is None or order.has_left(key):
        return digest
    alike = (order.intent(seq) for seq in order.left_like(key[:3]))
    same = (intent.digest for intent in alike if boundary.is_that(recording.arguments(intent)))
    return next(same, digest)
