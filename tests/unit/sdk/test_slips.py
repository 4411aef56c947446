"""Slips of whoever writes an agent: each is refused where it stands, in words that name what was said."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from twiceshy import (
    ApprovalRule,
    Compensation,
    Guard,
    LiveTerms,
    NotFound,
    ResourceRule,
    SetupError,
    Simulator,
    Tool,
    ToolArgumentError,
)

guard = Guard("http://127.0.0.1:1", spool=None)
DAY: Any = timedelta(days=1)


def book(room: str, start: str = "", minutes: int = 3, **more: str) -> str:
    return room


def room(start: str = "/start", minutes: str = "/minutes", name: str = "room:${arguments.room}") -> ResourceRule:
    return ResourceRule(name=name, start=start, minutes=minutes)


def refused(**options: Any) -> str:
    """Declare a tool and return what is said against it."""
    with pytest.raises(SetupError) as caught:
        Guard("http://127.0.0.1:1", spool=None).tool(**options)(book)
    assert "$" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"approval": "yes"}, "book: approval is 'yes'; give True or an ApprovalRule(...)."),
        ({"approval": ApprovalRule(quorum=0)}, "book: approval.quorum must be a whole number, 1 or more."),
        ({"approval": ApprovalRule(summary="")}, "book: approval.summary must be a text of 1 character or more."),
        (
            {"approval": ApprovalRule(deadline_seconds=DAY)},
            "book: approval.deadline_seconds is datetime.timedelta(days=1); say a number of seconds.",
        ),
        (
            {"compensation": "refund"},
            "book: compensation is 'refund'; give a Compensation(tool='...', arguments={...}).",
        ),
        ({"compensation": Compensation(tool="a/b")}, "book: compensation.tool must be a text without '/'"),
        ({"resource": "room"}, "book: resource is 'room'; give a ResourceRule(name='...'"),
        ({"resource": room(start="start")}, "book: resource.start must be a text that is a JSON Pointer"),
        (
            {"scope": "tenant", "window_seconds": Decimal(60)},
            "window_seconds is Decimal('60'); say a number of seconds.",
        ),
        ({"scope": "tenant", "window_seconds": 0}, "window_seconds must be a number of seconds, 1 or more."),
        ({"retention_seconds": "30d"}, "book: retention_seconds is '30d'; say a number of seconds."),
        ({"loop_limit": "3"}, "book: loop_limit must be a whole number or None, not a text."),
        ({"loop_limit": True}, "book: loop_limit must be a whole number or None, not a boolean."),
        ({"share": "yes"}, "book: share must be True, False or None, not a text."),
        ({"provider_key_header": "Bad Header"}, "provider_key_header must be a text of letters, digits and '-'."),
        ({"approval": {"whn": "x"}}, "book: approval: there is no whn."),
        ({"compensation": {"arguments": {}}}, "book: compensation: tool is missing."),
        ({"simulator": Simulator(result=object())}, "book: what is no JSON cannot be declared"),
        (
            {"name": "a/b"},
            "The tool's name 'a/b' cannot be taken: it must be a text without '/' and control characters",
        ),
    ],
)
def test_an_option_that_cannot_be_taken_is_said_in_words(options: dict[str, Any], words: str) -> None:
    assert words in refused(**options)


def test_a_simulator_that_is_a_function_is_refused() -> None:
    assert "give a Simulator(result=...)" in refused(simulator=lambda room: room)


@pytest.mark.parametrize("said", [{}, {"end": "/end", "minutes": "/minutes"}])
def test_an_interval_has_an_end_or_a_length(said: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="a ResourceRule takes exactly one of `end` and `minutes`"):
        ResourceRule(name="room", start="/start", **said)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"identity": ["/room"], "content": ["/room"]}, "'/room' is identity and content; an argument has one role."),
        ({"content": ["/more"], "ignored": ["/more"]}, "'/more' is content and ignored"),
        ({"resource": room(start="/strat")}, "'/strat' leads to no argument"),
        ({"resource": room(minutes="/length")}, "'/length' leads to no argument"),
        ({"resource": room(name="${arguments.rom}")}, "resource.name looks at arguments.rom, and the tool has no such"),
        ({"approval": ApprovalRule(when="arguments.rom == 'a'")}, "argument; did you mean arguments.room?"),
        ({"approval": ApprovalRule(summary="Book ${arguments.hall}?")}, "approval.summary looks at arguments.hall"),
        (
            {"compensation": Compensation(tool="free", arguments={"a": ["x", {"b": "${length(arguments.rooms)}"}]})},
            "compensation.arguments.a[1].b looks at arguments.rooms",
        ),
        ({"simulator": Simulator(result='${arguments."the room"}')}, "simulator.result looks at arguments.the room"),
    ],
)
def test_an_argument_that_the_tool_has_not_is_named(options: dict[str, Any], words: str) -> None:
    assert words in refused(**options).replace("\n", " ")


@pytest.mark.parametrize(
    "expression",
    [
        "arguments.room == 'arguments.hall'",
        'arguments.room == `"arguments.hall"`',
        "arguments.more.of[?arguments.hall == 'x']",
        "arguments.more[0].arguments.hall",
        "sort_by(arguments.more, &arguments.hall)",
        "arguments.more | arguments.hall",
        "arguments.more.{a: arguments.hall}",
        "@.arguments.room || arguments.start && arguments",
        "arguments.more[?a[0] == b[1].arguments.hall]",
    ],
)
def test_what_an_expression_looks_up_elsewhere_is_left_to_the_service(expression: str) -> None:
    Guard("http://127.0.0.1:1", spool=None).tool(approval=ApprovalRule(when=expression))(book)


def test_keys_of_a_call_are_said_in_words() -> None:
    tool: Tool[..., str] = guard.tool(name="keys")(book)
    misspelt: dict[str, Any] = {"priorty": 5}
    with pytest.raises(TypeError, match=r"with_key takes no argument 'priorty'; did you mean priority?"):
        tool.with_key(**misspelt)
    wrong: dict[str, Any] = {"priority": "5"}
    with guard.run("r"), pytest.raises(ToolArgumentError, match=r"keys: priority must be a whole number, not a text."):
        tool.with_key(**wrong)("a")


def test_an_argument_of_a_saga_is_said_in_words() -> None:
    misspelt: dict[str, Any] = {"deadline": 5}
    with pytest.raises(TypeError, match=r"Guard\.saga takes no argument 'deadline'; did you mean deadline_seconds?"):
        guard.saga("trip", **misspelt)
    with pytest.raises(SetupError, match="it must be a text without '/' and control characters"):
        guard.saga("a/b")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a/b", "The run's name 'a/b' cannot be taken: it must be a text without '/' and control characters"),
        ("", "it must be a text of 1 character or more"),
        ("x" * 201, "it must be a text of 200 characters or less"),
        (7, "it must be a text, not a whole number"),
    ],
)
def test_a_name_of_a_run_is_refused_in_words(name: Any, words: str) -> None:
    with pytest.raises(SetupError, match=words):
        guard.run(name)


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"live": "pay"}, r"live is 'pay'; it is a list of tools, such as \['pay'\]"),
        ({"live": LiveTerms(tool="pay")}, r"live is LiveTerms\(.*\); it is a list of tools\.$"),
        (
            {"live": [guard.tool(name="live")(book)]},
            "live holds .*, and not the name of a tool or LiveTerms.*; say its name, 'live'",
        ),
        ({"live": [7]}, "live holds 7, and not the name of a tool"),
        ({"live": ["pay", LiveTerms(tool="pay")]}, "live: a tool is named once in `live`"),
        ({"live": ["a", "b"] * 101}, "live must be a list of 200 members or less"),
        ({"live": [{"tool": "pay", "call": 3}]}, r"live\[0\]: there is no call"),
        ({"live": [LiveTerms(tool="a/b")]}, r"live\[0\].tool must be a text without '/'"),
        ({"live": [{"tool": "pay", "when": object()}]}, "its terms are no JSON"),
        ({"reads": "lvie"}, "reads is 'lvie'; did you mean live?"),
        ({"at": -1}, "at must be a whole number, 0 or more"),
        ({"fork_of": "a/b"}, "fork_of must be a text without '/'"),
    ],
)
def test_terms_of_a_fork_that_cannot_be_meant_are_refused(terms: dict[str, Any], words: str) -> None:
    with pytest.raises(SetupError, match=f"The fork 'why': {words}"):
        guard.run("why", **{"fork_of": "order-7", "at": 1, **terms})


def test_a_second_probe_on_one_tool_is_refused() -> None:
    tool = guard.tool(name="probed")(book)

    def define() -> None:
        @tool.probe
        def look(effect: object) -> NotFound:
            return NotFound()

    define()
    define()  # the same function defined anew, such as a cell that is run again
    with pytest.raises(SetupError, match=r"The tool probed has a probe, .*look; .*ask would be a second one"):

        @tool.probe
        def ask(effect: object) -> NotFound:
            return NotFound()
