"""A call's arguments: bound, filled in, written; what cannot be taken begins nothing."""

import inspect
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.sdk.scripted import ScriptedService, committed, executes
from twiceshy import Guard, SetupError, ToolArgumentError, ToolOptions
from twiceshy._arguments import Signature
from twiceshy._restore import Misfit

Serve = Callable[..., tuple[Guard, ScriptedService]]


def everything(first: int, /, second: datetime, *rest: int, third: str = "3", **more: object) -> None:
    """Take arguments of every kind."""


def test_all_kinds_of_parameters_are_written_and_read_back() -> None:
    noon = datetime(2026, 10, 12, 12, tzinfo=UTC)
    signature = Signature("everything", everything)
    bound = signature.bind((1, noon, 3, 4), {"fourth": [5]})
    written = signature.written(bound)
    assert written == {
        "first": 1,
        "second": {"$dt": "2026-10-12T12:00:00+00:00"},
        "rest": [3, 4],
        "third": "3",
        "more": {"fourth": [5]},
    }
    again = signature.recorded(written)
    assert (again.args, again.kwargs) == ((1, noon, 3, 4), {"third": "3", "fourth": [5]})


def test_recorded_arguments_of_another_shape_are_a_misfit() -> None:
    signature = Signature("everything", everything)
    with pytest.raises(Misfit, match="the arguments first, the tool takes first, second"):
        signature.recorded({"first": 1})


@pytest.mark.parametrize(
    ("args", "message", "path"),
    [
        ((), "missing a required argument", ""),
        ((1, 2), "too many positional", ""),
        (([{"when": {1}}],), r"at /items/0/when \(list\) cannot be taken: a set has no order", "/items/0/when"),
        (("x" * 2**20,), "1048576 are the most", ""),
    ],
)
def test_a_call_that_cannot_be_written_begins_nothing(
    serve: Serve, args: tuple[Any, ...], message: str, path: str
) -> None:
    guard, service = serve()

    @guard.tool
    def order(items: object) -> None: ...

    call: Callable[..., object] = order
    with guard.run("booking-42"), pytest.raises(ToolArgumentError, match=message) as caught:
        call(*args)
    assert isinstance(caught.value, TypeError)
    assert caught.value.path == path
    assert service.paths == []


@pytest.mark.parametrize("keys", [{"occurrence": 0}, {"step": ""}, {"business_key": "a\nb"}, {"step": 1.5}])
def test_a_key_that_is_none_begins_nothing(serve: Serve, keys: dict[str, Any]) -> None:
    guard, service = serve()

    @guard.tool
    def order() -> None: ...

    call: Callable[..., object] = order
    with guard.run("booking-42"), pytest.raises(ToolArgumentError, match=next(iter(keys))):
        call(**keys)
    assert service.requests == []


def test_a_method_leaves_its_instance_out_of_the_arguments(serve: Serve) -> None:
    guard, service = serve(executes(), committed(), executes({"amount": 5}), committed())

    class Bank:
        """Holds an account."""

        def __init__(self, name: str) -> None:
            self.name = name

        @guard.tool
        def pay(self, amount: int) -> str:
            return f"{self.name}:{amount}"

    with guard.run("booking-42"):
        assert Bank("a").pay(1) == "a:1"
        assert Bank("b").pay.with_key(step="s")(2) == "b:5"
    assert [body["arguments"] for body in service.bodies("/v1/effects")] == [{"amount": 1}, {"amount": 2}]


def test_a_tool_keeps_name_docstring_and_signature(serve: Serve) -> None:
    guard, _ = serve()

    @guard.tool
    async def order(item: str, count: int = 1) -> bool:
        """Order an item."""
        return bool(item) and count > 0

    assert (order.__name__, order.__doc__) == ("order", "Order an item.")
    assert list(inspect.signature(order).parameters) == ["item", "count"]
    assert inspect.iscoroutinefunction(type(order).__call__)


def _stream() -> Any:
    yield 1


@pytest.mark.parametrize("thing", [_stream, 3, staticmethod(lambda: None)])
def test_what_cannot_be_guarded_is_refused_where_it_is_declared(serve: Serve, thing: Any) -> None:
    guard, _ = serve()
    with pytest.raises(SetupError):
        guard.tool(thing)


@pytest.mark.parametrize(
    "options",
    [
        {"effect": "maybe"},
        {"lease_seconds": 0.5},
        {"content": "/title"},
        {"content": ["title"]},
        {"normalisers": {"/a": "rot13"}},
        {"attempts": 0},
        {"name": "a/b"},
        {"on_doubt": "guess"},
        {"wait_seconds": -1},
        {"colour": "red"},
    ],
)
def test_options_that_mean_nothing_are_refused_where_they_are_declared(serve: Serve, options: ToolOptions) -> None:
    guard, _ = serve()
    with pytest.raises(SetupError):

        @guard.tool(**options)
        def order() -> None: ...


def test_two_tools_of_one_name_are_refused(serve: Serve) -> None:
    guard, _ = serve()

    @guard.tool
    def order() -> None: ...

    with pytest.raises(SetupError, match="Two tools are called order"):

        @guard.tool(name="order")
        def other() -> None: ...
