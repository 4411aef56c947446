"""Options that go together with the function, and those that cannot work: a slip is said where it stands."""

import re
from collections.abc import Iterator, Mapping
from inspect import Parameter
from typing import Final

import msgspec

from twiceshy._pointers import require_arguments
from twiceshy._wording import in_words
from twiceshy.exceptions import SetupError
from twiceshy_contract.destinations import DestinationName
from twiceshy_contract.policies import ApprovalRule, Compensation, ResourceRule, Simulator
from twiceshy_contract.tools import ToolDeclaration
from twiceshy_contract.variables import did_you_mean

_PARTS: Final[Mapping[str, tuple[type, str]]] = {
    "approval": (ApprovalRule, "True or an ApprovalRule(...)"),
    "compensation": (Compensation, "a Compensation(tool='...', arguments={...})"),
    "simulator": (Simulator, "a Simulator(result=...)"),
    "resource": (ResourceRule, "a ResourceRule(name='...', start='/...', end='/...')"),
}
_NOT_OF_READS: Final = (
    "approval", "compensation", "key", "loop_limit", "provider_key_header", "provider_window_seconds", "repeat",
    "resource", "scope", "share", "window_seconds",
)  # fmt: skip
"""What is about a lease or a record, which a call that only reads has not."""
_NOT_OF_SINKS: Final = (
    "attempts", "backoff_seconds", "classify", "deadline_seconds", "lease_seconds", "on_doubt", "one_request",
    "provider_key_header", "provider_window_seconds", "settle_seconds",
)  # fmt: skip
"""What is about a lease, or about what a tool did that nobody knows."""
SINK_ALONE: Final = "sink= says that a call stages messages and does nothing else"
_PLACEHOLDER: Final = re.compile(r"\$\{([^{}]+)\}")
_LITERAL: Final = re.compile(r"'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`")
_WITHIN: Final = re.compile(r"\[[^\[\]]*\]|\.\s*\{[^{}]*\}")
"""What is looked up in something else than the call: filters and indexes, and members picked out of a value."""
_ITEMS: Final = re.compile(r"(?<!&)&(?!&)")
_PIPE: Final = re.compile(r"(?<!\|)\|(?!\|)")
_ARGUMENT: Final = re.compile(r"(?<![\w.\"@])arguments\s*\.\s*(?:([A-Za-z_]\w*)|\"([^\"\\]+)\")")


def require_kinds(tool: str, said: Mapping[str, object]) -> None:
    """Check that durations are numbers and parts of a declaration what they are called. Raises SetupError."""
    durations = {option: value for option, value in said.items() if option.endswith("_seconds")}
    approval = said["approval"]
    if isinstance(approval, ApprovalRule):
        durations["approval.deadline_seconds"] = approval.deadline_seconds
    for option, value in durations.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise SetupError(f"{tool}: {option} is {value!r}; say a number of seconds.")
    for option, (kind, words) in _PARTS.items():
        value = said[option]
        is_switch = option == "approval" and isinstance(value, bool)
        if not (value is None or is_switch or isinstance(value, (kind, Mapping))):
            raise SetupError(f"{tool}: {option} is {value!r}; give {words}.")


def refuse_on_read(tool: str, said: Mapping[str, object], unsaid: Mapping[str, object]) -> None:
    """Refuse options that mean nothing for a tool that only reads. Raises SetupError."""
    idle = [option for option in _NOT_OF_READS if said[option] != unsaid[option]]
    if idle:
        raise SetupError(
            f"{tool}: effect='read' says that nothing is changed, so that a call takes no lease and leaves no record; "
            f"{', '.join(idle)} would do nothing. Leave that out, or declare effect='side_effect' or 'idempotent'."
        )


def require_sink(tool: str, sink: object) -> None:
    """Check the name of a destination. Raises SetupError."""
    try:
        msgspec.convert(sink, DestinationName)
    except msgspec.ValidationError as error:
        raise SetupError(
            f"{tool}: {in_words(error, 'sink')}. It is the name of a destination: 1 to 100 letters, digits, dots, "
            "dashes and underscores, such as sink='mail'. `twiceshy destinations list` shows those there are."
        ) from error


def refuse_on_sink(tool: str, said: Mapping[str, object], unsaid: Mapping[str, object]) -> None:
    """Refuse options that mean nothing for a tool that only stages messages. Raises SetupError."""
    if said["effect"] == "read":
        raise SetupError(f"{tool}: {SINK_ALONE}, which changes the world; leave out effect='read', or sink=.")
    idle = [option for option in _NOT_OF_SINKS if said[option] != unsaid[option]]
    if idle:
        raise SetupError(
            f"{tool}: {SINK_ALONE}, in one step that takes no lease and leaves no doubt; {', '.join(idle)} would do "
            "nothing. Leave that out."
        )


def require_fit(tool: str, declaration: ToolDeclaration, parameters: Mapping[str, Parameter]) -> None:
    """Check that a declaration names arguments that the tool has, each in one role. Raises SetupError."""
    taken: dict[str, str] = {}
    roles = declaration.arguments
    for role, paths in (("identity", roles.identity), ("content", roles.content), ("ignored", roles.ignored)):
        for path in paths:
            if path in taken:
                raise SetupError(f"{tool}: {path!r} is {taken[path]} and {role}; an argument has one role.")
            taken[path] = role
    resource = declaration.resource
    if resource is not None:
        moments = (path for path in (resource.start, resource.end, resource.minutes) if path is not None)
        require_arguments(tool, moments, parameters)
    for place, expression in _expressions(declaration):
        for name in _argument_names(expression):
            if name not in parameters:
                near = did_you_mean(name, parameters, prefix="arguments.")
                raise SetupError(
                    f"{tool}: {place} looks at arguments.{name}, and the tool has no such argument{near} The "
                    f"arguments are {', '.join(parameters) or 'none'}."
                )


def _expressions(declaration: ToolDeclaration) -> Iterator[tuple[str, str]]:
    """Yield every expression over the call, with the option that it is in."""
    approval, compensation = declaration.approval, declaration.compensation
    if approval is not None:
        if approval.when is not None:
            yield "approval.when", approval.when
        yield from _placeholders("approval.summary", approval.summary)
    if compensation is not None:
        yield from _placeholders("compensation.arguments", compensation.arguments)
    if declaration.simulator is not None:
        yield from _placeholders("simulator.result", declaration.simulator.result)
    if declaration.resource is not None:
        yield from _placeholders("resource.name", declaration.resource.name)


def _placeholders(place: str, template: object) -> Iterator[tuple[str, str]]:
    match template:
        case str():
            for expression in _PLACEHOLDER.findall(template):
                yield place, expression
        case dict():
            for name, member in template.items():
                yield from _placeholders(f"{place}.{name}", member)
        case list() | tuple():
            for number, item in enumerate(template):
                yield from _placeholders(f"{place}[{number}]", item)
        case _:
            pass


def _argument_names(expression: str) -> Iterator[str]:
    """Yield which arguments an expression surely looks at; the service reads it wholly, here no JMESPath is at hand."""
    plain = _LITERAL.sub("``", expression)
    if _ITEMS.search(plain):
        return
    plain = _PIPE.split(plain)[0]
    while (outer := _WITHIN.sub("", plain)) != plain:
        plain = outer
    for word, quoted in _ARGUMENT.findall(plain):
        yield word or quoted
