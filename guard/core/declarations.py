"""Declarations of tools before they are believed: whether one can be carried out at all, and which guards it lowers.

What passes here fails later only by what a call brings: every expression is JMESPath, every pointer and address has
its form, and nobody but a person makes the service send requests.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from guard.core.arguments import ArgumentReader
from guard.core.lease import STRICTNESS
from guard.core.template_names import ARGUMENTS, OF_CALL, OF_EFFECT, check_expression_names, check_template_names
from guard.core.template_reads import read_of_arguments
from twiceshy_contract.names import Repeat
from twiceshy_contract.policies import ApprovalRule, ForkRule, HttpProbe, ResourceRule
from twiceshy_contract.refusals import JsonValue, Refusal, Step, steps_of
from twiceshy_contract.tools import DeclaredBy, ToolDeclaration

_PLACEHOLDER: Final = re.compile(r"\$\{[^{}]*\}")
_HOST: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9.])?|\[[0-9A-Fa-f:.]+\]")
_OF_THE_CONNECTION: Final = frozenset({"connection", "content-length", "host", "transfer-encoding"})
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_REPEATS: Final[tuple[Repeat, ...]] = ("allow", "ask", "replay")
_ENDLESS: Final = float("inf")
_FORKS: Final[tuple[ForkRule, ...]] = ("live", "auto", "stub", "recorded", "suspend", "deny")
_EVERY: Final = "*"
_OF_RESOURCES: Final = tuple(name for name in OF_CALL if name != "step")
_OF_ANSWERS: Final = ("body", "headers", "status")
_NOT_OF_READS: Final = (
    "approval", "compensation", "loop_limit", "provider_key_header", "provider_window_seconds", "repeat", "resource",
    "share",
)  # fmt: skip
"""What is about a lease or a record, which a call that only reads has not."""
_UNSAID: Final = ToolDeclaration()
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


def asks_fewer(before: ToolDeclaration, after: ToolDeclaration) -> bool:
    """Say whether a declaration lets calls run without a person, or with fewer, that the one before it did not."""
    is_read = before.approval is not None and after.class_ == "read" and before.class_ != "read"
    is_free = before.repeat == "ask" and after.repeat == "allow"
    return is_read or is_free or _asks_less(before.approval, after.approval)


def asks_elsewhere(before: ToolDeclaration | None, after: ToolDeclaration) -> bool:
    """Say whether a declaration makes the service ask a provider what the one before it did not.

    A probe may hold secrets of the service, and sends them where it says.
    """
    return after.probe is not None and (before is None or after.probe != before.probe)


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
    if declaration.class_ == "read":
        yield partial(_check_reading, declaration)
    if declaration.approval is not None:
        if declaration.approval.when is not None:
            yield partial(check_expression_names, declaration.approval.when, (ARGUMENTS,), "approval", "when")
        yield partial(check_template_names, declaration.approval.summary, OF_CALL, "approval", "summary")
    if declaration.compensation is not None:
        yield partial(_check_another_tool, name, declaration.compensation.tool)
        template: JsonValue = declaration.compensation.arguments
        yield partial(check_template_names, template, (*OF_EFFECT, "result"), "compensation", "arguments")
    if declaration.simulator is not None:
        yield partial(check_template_names, declaration.simulator.result, OF_EFFECT, "simulator", "result")
    if declaration.resource is not None:
        yield from _checks_of_resource(declaration.resource, declaration.redacted)
    if declaration.probe is not None:
        yield partial(_check_speaker, declaration.declared_by)
        yield from _checks_of_probe(declaration.probe)


def _check_reading(declaration: ToolDeclaration) -> None:
    """Refuse what would never be obeyed: a call that only reads asks nobody and takes no lease."""
    for part in _NOT_OF_READS:
        if getattr(declaration, part) != getattr(_UNSAID, part):
            raise Refusal(
                "a tool of the class `read` takes no lease and leaves no record: this would do nothing", (part,)
            )
    if declaration.key != _UNSAID.key:
        raise Refusal("a tool of the class `read` leaves no record: nothing of it is named", ("key",))


def _checks_of_resource(resource: ResourceRule, redacted: Sequence[str]) -> Iterator[_Check]:
    yield partial(_check_name, resource.name, redacted)
    for part, pointer in (("start", resource.start), ("end", resource.end), ("minutes", resource.minutes)):
        if pointer is not None and "*" in steps_of(pointer):
            yield _refusing("an interval is read from one place, not from every item of a list", "resource", part)
        elif pointer is not None:
            yield partial(_check_stored, steps_of(pointer), redacted, part)


def _check_name(name: str, redacted: Sequence[str]) -> None:
    check_template_names(name, _OF_RESOURCES, "resource", "name")
    for steps in read_of_arguments(name):
        _check_stored(steps, redacted, "name")


def _check_stored(steps: tuple[str, ...], redacted: Sequence[str], part: str) -> None:
    """Refuse to claim by what is not stored: two rooms would be one, or none could be read."""
    for path in redacted:
        if all(_EVERY in pair or pair[0] == pair[1] for pair in zip(steps, steps_of(path), strict=False)):
            raise Refusal(f"it needs what is redacted, at {path}: a claim is seen by everybody", ("resource", part))


def _checks_of_probe(probe: HttpProbe) -> Iterator[_Check]:
    yield partial(_check_url, probe.url)
    for header, value in probe.headers.items():
        yield partial(_check_header, header, value)
    yield partial(check_template_names, probe.body, OF_EFFECT, "probe", "body")
    readings = {
        "applied": probe.applied,
        "not_applied": probe.not_applied,
        "result": probe.result,
        "echo": probe.echo,
    }
    for part, expression in readings.items():
        if expression is not None:
            yield partial(check_expression_names, expression, _OF_ANSWERS, "probe", part)
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
    check_template_names(value, (*OF_EFFECT, "env"), *place)


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
    check_template_names(url, OF_EFFECT, *place)
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
