"""Which resource a call claims and for when, read from its arguments by its tool's rule."""

import math
from datetime import datetime, timedelta

import msgspec

from guard.core.effects import Instant, instant
from guard.core.normalisers.instants import utc_instant
from guard.core.templates import Known, rendered_text
from twiceshy_contract.holds import ResourceName
from twiceshy_contract.policies import ResourceRule
from twiceshy_contract.refusals import JsonValue, Refusal, steps_of


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A resource, from `start` up to but without `end`."""

    resource: str
    start: Instant
    end: Instant


def span_of(rule: ResourceRule, known: Known) -> Span:
    """Return what a call claims; `known` holds its `arguments`. Raises Refusal with the place in the request."""
    start_at, end_at = _moment(known, rule.start), rule.end or rule.minutes or ""
    end = _moment(known, end_at) if rule.minutes is None else _after(known, rule.minutes, start_at)
    start, stop = instant(start_at), instant(end)
    if stop <= start:
        raise Refusal("it does not lie after the start: what is claimed has a length", _place(end_at))
    return Span(resource=_name(rule, known), start=start, end=stop)


def _name(rule: ResourceRule, known: Known) -> str:
    try:
        return msgspec.convert(rendered_text(rule.name, known, _filled), ResourceName)
    except msgspec.ValidationError as error:
        raise Refusal("the name of the resource that they give has control characters or is too long", _ALL) from error


def _filled(text: str) -> str:
    if not text:
        raise Refusal("a part of the name of the tool's resource is missing", _ALL)
    return text


def _moment(known: Known, pointer: str) -> datetime:
    value = _at(known, pointer)
    try:
        return datetime.fromisoformat(str(utc_instant(value)))
    except ValueError as error:
        raise Refusal(str(error), _place(pointer)) from error


def _after(known: Known, pointer: str, start: datetime) -> datetime:
    minutes = _at(known, pointer)
    if isinstance(minutes, bool) or not isinstance(minutes, (int, float)) or not math.isfinite(minutes):
        raise Refusal("this is no number of minutes", _place(pointer))
    try:
        return start + timedelta(minutes=minutes)
    except OverflowError as error:
        raise Refusal("this ends after the year 9999", _place(pointer)) from error


def _at(known: Known, pointer: str) -> JsonValue:
    """Return the value of an argument. Raises Refusal where there is none."""
    value = known["arguments"]
    for step in steps_of(pointer):
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            raise Refusal("the tool's resource needs this argument, and it is missing", _place(pointer))
    return value


_ALL = ("arguments",)


def _place(pointer: str) -> tuple[str, ...]:
    return ("arguments", *steps_of(pointer))
