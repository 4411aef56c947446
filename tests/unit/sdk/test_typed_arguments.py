"""A tool that runs again with recorded arguments gets them in the types of its parameters."""

import functools
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.unit.sdk.scripted import Answer, ScriptedService, committed, executes
from tests.unit.sdk.typed_values import ADDRESS, NOON, SOME_UUID, Address, Charge, Colour, Guest, Refund
from twiceshy import Guard, RecordMismatch
from twiceshy._arguments import Signature

Serve = Callable[..., tuple[Guard, ScriptedService]]


def given_back(request: Any) -> Any:
    """Answer a begin with its own arguments, as the record has them."""
    grant: Any = executes(msgspec.json.decode(request.body)["arguments"])
    return grant(request)


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (datetime, NOON),
        (Refund, Refund(7)),
        (list[Refund], [Refund(7)]),
        (Address, ADDRESS),
        (dict[str, Address | None], {"home": ADDRESS, "work": None}),
        (Guest, Guest("Ada", b"s")),
        (tuple[UUID, Decimal, Colour], (SOME_UUID, Decimal("1.50"), Colour.RED)),
        (datetime | None, None),
    ],
)
def test_a_recorded_argument_is_run_with_in_the_type_of_its_parameter(
    serve: Serve, annotation: object, value: object
) -> None:
    answer: Answer = given_back
    guard, _ = serve(answer, committed())
    taken: list[object] = []

    def order(what: Any) -> None:
        taken.append(what)

    order.__annotations__["what"] = annotation
    with guard.run("booking-42"):
        guard.tool(order)(value)
    assert taken == [value]
    assert type(taken[0]) is type(value)
    assert taken[0] is not value or value is None


def test_a_recorded_argument_that_no_longer_fits_names_both_types_and_runs_nothing(serve: Serve) -> None:
    guard, service = serve(executes({"when": {"total": 7}}))

    @guard.tool
    def order(when: datetime) -> None: ...

    with guard.run("booking-42"), pytest.raises(RecordMismatch, match="a dict, the annotation says datetime: Expected"):
        order(datetime(2026, 10, 12, tzinfo=UTC))
    assert service.paths == ["effects", "release"]


def test_an_argument_of_pydantic_is_written_by_the_names_of_its_fields(serve: Serve) -> None:
    guard, service = serve(executes(), committed())

    @guard.tool
    def order(where: Address) -> None: ...

    with guard.run("booking-42"):
        order(ADDRESS)
    assert service.bodies("/v1/effects")[0]["arguments"] == {"where": {"street_name": "Main", "zip_code": "10115"}}


def test_one_annotation_that_cannot_be_read_leaves_the_others() -> None:
    def order(what: "Refund", when: str) -> "list[Charge]":
        raise AssertionError((what, when))

    order.__annotations__["when"] = "Nowhere"
    signature = Signature("order", order)
    assert signature.hints == {"what": Refund, "return": list[Charge]}
    assert signature.recorded({"what": {"total": 1}, "when": "soon"}).args == (Refund(1), "soon")


def test_the_annotations_of_a_partial_and_of_an_object_that_is_called_are_read() -> None:
    def order(count: int, what: Refund) -> Charge:
        raise AssertionError((count, what))

    class Shop:
        """What is called."""

        def __call__(self, what: Refund) -> Charge:
            raise AssertionError(what)

    for tool in (functools.partial(order, 1), Shop()):
        signature = Signature("order", tool)
        assert signature.returns is Charge
        assert signature.recorded({"what": {"total": 1}}).arguments["what"] == Refund(1)
