"""Instants: a date-time with its offset, written in UTC."""

from twiceshy_contract.canonical import utc
from twiceshy_contract.refusals import JsonValue


def utc_instant(value: JsonValue) -> JsonValue:
    """Write a date-time with offset in UTC. A tagged date-time is the same as its text."""
    if isinstance(value, dict) and isinstance(tagged := value.get("$dt"), str):
        return utc(tagged)
    if not isinstance(value, str):
        raise ValueError("a date-time is a string or a $dt")
    return utc(value)
