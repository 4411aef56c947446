"""Declarations of tools before they are believed: whether one can be carried out at all, and which guards it lowers.

What passes here fails later only by what a call brings: every expression is JMESPath, every pointer and address has
its form, and nobody but a person makes the service send requests.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from guard.core.arguments import ArgumentReader
from guard.core.lease import STRICTNESS
from guard.core.templates import check_template, compiled
from twiceshy_contract.names import Repeat
from twiceshy_contract.policies import ApprovalRule, ForkRule, HttpProbe, ResourceRule
from twiceshy_contract.refusals import Refusal, Step, steps_of
from twiceshy_contract.tools import DeclaredBy, ToolDeclaration

_PLACEHOLDER: Final = re.compile(r"\$\{[^{}]*\}")
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]+\]")
_OF_THE_CONNECTION: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_REPEATS: Final[tuple[Repeat, ...]] = ("allow", "ask", "replay")
_ENDLESS: Final = float("inf")
_FORKS: Final[tuple[ForkRule, ...]] = ("live", "auto", "stub", "recorded", "suspend", "deny")
_Check = Callable[[], object]


def refusals(name: str, declaration: ToolDeclaration) -> list[Refusal]:
    """Return why a declaration of the tool cannot be taken, each with its place; of several in one part, the first."""
    return [refusal for check in _checks(name, declaration) if (refusal := _refusal(check)) is not None]


def lowered(before: ToolDeclaration, after: ToolDeclaration) -> tuple[str, ...]:
    """Name the parts (JSON Pointers) in which a declaration guards less than the one before it."""
    parts = {
        "/class": STRICTNESS.index(after.class_) < STRICTNESS.index(before.class_),
        "/repeat": _REPEATS.index(after.repeat) < _REPEATS.index(before.repeat),
        "/fork": _FORKS.index(after.fork) < _FORKS.index(before.fork),
        "/approval": _asks_less(before.approval, after.approval),
        "/resource": before.resource is not None and after.resource is None,
        "/loop_limit": before.loop_limit is not None and before.loop_limit < (after.loop_limit or _ENDLESS),
        "/redacted": not set(before.redacted) <= set(after.redacted),
        "/settle_seconds": after.settle_seconds < before.settle_seconds,
        "/provider_window_seconds": (before.provider_window_seconds or 0) < (after.provider_window_seconds or 0),
    }
    return tuple(part for part, is_lower in parts.items() if is_lower)


def _asks_less(before: ApprovalRule | None, after: ApprovalRule | None) -> bool:
    """Say whether fewer calls are asked about than before, or fewer people. Another condition may be less."""
    if before is None:
        return False
    if after is None:
        return True
    is_narrower = after.when is not None and after.when != before.when
    return is_narrower or after.quorum < before.quorum or (before.four_eyes and not after.four_eyes)


def _refusal(check: _Check) -> Refusal | None:
    try:
        check()
    except Refusal as refusal:
        return refusal
    return None


def _checks(name: str, declaration: ToolDeclaration) -> Iterator[_Check]:
    """Yield what must hold, part by part."""
    yield partial(ArgumentReader, declaration.arguments)
    if declaration.approval is not None:
        if declaration.approval.when is not None:
            yield partial(compiled, declaration.approval.when, "approval", "when")
        yield partial(check_template, declaration.approval.summary, "approval", "summary")
    if declaration.compensation is not None:
        yield partial(_check_another_tool, name, declaration.compensation.tool)
        yield partial(check_template, declaration.compensation.arguments, "compensation", "arguments")
    if declaration.simulator is not None:
        yield partial(check_template, declaration.simulator.result, "simulator", "result")
    if declaration.resource is not None:
        yield from _checks_of_resource(declaration.resource)
    if declaration.probe is not None:
        yield partial(_check_speaker, declaration.declared_by)
        yield from _checks_of_probe(declaration.probe)


def _checks_of_resource(resource: ResourceRule) -> Iterator[_Check]:
    yield partial(check_template, resource.name, "resource", "name")
    for part, pointer in (("start", resource.start), ("end", resource.end), ("minutes", resource.minutes)):
        if pointer is not None and "*" in steps_of(pointer):
            yield _refusing("an interval is read from one place, not from every item of a list", "resource", part)


def _checks_of_probe(probe: HttpProbe) -> Iterator[_Check]:
    yield partial(_check_url, probe.url)
    for header, value in probe.headers.items():
        yield partial(_check_header, header, value)
    yield partial(check_template, probe.body, "probe", "body")
    readings = {
        "applied": probe.applied,
        "not_applied": probe.not_applied,
        "result": probe.result,
        "echo": probe.echo,
    }
    for part, expression in readings.items():
        if expression is not None:
            yield partial(compiled, expression, "probe", part)
    if probe.applied == probe.not_applied:
        yield _refusing("this is what `applied` asks as well: no answer would be believed", "probe", "not_applied")


def _refusing(reason: str, *place: Step) -> _Check:
    def refuse() -> None:
        raise Refusal(reason, place)

    return refuse


def _check_another_tool(name: str, tool: str) -> None:
    if tool == name:
        raise Refusal("a tool does not take itself back; name the tool that undoes it", ("compensation", "tool"))


def _check_header(name: str, value: str) -> None:
    place = ("probe", "headers", name)
    if name.lower() in _OF_THE_CONNECTION:
        raise Refusal("this header is the connection's; leave it out", place)
    if _CONTROL.search(value):
        raise Refusal("the value of a header is one line without control characters", place)
    check_template(value, *place)


def _check_speaker(declared_by: DeclaredBy) -> None:
    if declared_by != "person":
        raise Refusal(
            "a person declares a probe over HTTP (`twiceshy tools apply`), because it makes the service send requests; "
            "in code, write the probe as a function",
            ("probe",),
        )


def _check_url(url: str) -> None:
    """Refuse an address that is none once its placeholders are filled, or that says more than where to ask."""
    place = ("probe", "url")
    check_template(url, *place)
    try:
        address = urlsplit(_PLACEHOLDER.sub("x", url))
        port = address.port
    except ValueError as error:
        raise Refusal(f"this is no address: {error}", place) from error
    if address.username is not None:
        raise Refusal("an address names no user and no password; send a secret in a header", place)
    if address.fragment:
        raise Refusal("what follows a `#` is never sent", place)
    if not _HOST.fullmatch(address.netloc.removesuffix(f":{port}")):
        raise Refusal("this is no address: its host has another form than a name or an IP address", place)
