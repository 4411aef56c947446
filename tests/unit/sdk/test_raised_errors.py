"""Errors go into the record and come out of it with their type and attributes, as far as these can be kept."""

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import msgspec
import openai
import pydantic
import pytest
import requests
from pydantic_core import PydanticCustomError

from twiceshy import RecordedError
from twiceshy._raised import read_error, written_error
from twiceshy._raised_answers import RecordedAnswer
from twiceshy_contract.outcomes import ErrorOutcome

DECODER = msgspec.json.Decoder(ErrorOutcome)


def again(error: BaseException, **changed: Any) -> Any:
    """Return an error as it comes out of a record's text."""
    written = DECODER.decode(msgspec.json.encode(written_error(error)))
    return read_error(msgspec.structs.replace(written, **changed))


def raised(call: Callable[[], Any]) -> Any:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever is raised is looked at
        return error
    raise AssertionError("nothing was raised")


class Own(Exception):
    """Builds its message itself, and takes more than its arguments tell."""

    def __init__(self, order: int, *, reason: str) -> None:
        super().__init__(f"order {order}: {reason}")
        self.order, self.reason = order, reason


class Slotted(Exception):
    """Keeps what it knows in a slot."""

    __slots__ = ("place",)

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(message)
        self.place = place


class TestPlainErrors:
    """Errors of the standard library, and of a program's own."""

    def test_an_error_of_a_file_keeps_the_files_name(self, tmp_path: Path) -> None:
        missing = again(FileNotFoundError(2, "no", "/x"))
        assert (type(missing), str(missing)) == (FileNotFoundError, "[Errno 2] no: '/x'")
        assert (missing.errno, missing.strerror, missing.filename, missing.args) == (2, "no", "/x", (2, "no"))
        renamed = again(raised(lambda: os.rename(tmp_path / "a", tmp_path / "b")))  # noqa: PTH104 - names both files
        assert (type(renamed), renamed.filename2) == (FileNotFoundError, str(tmp_path / "b"))

    def test_an_error_of_an_encoding_says_the_same(self) -> None:
        error = again(UnicodeDecodeError("utf8", b"\xff", 0, 1, "bad"))
        assert (type(error), error.object, error.start, error.reason) == (UnicodeDecodeError, b"\xff", 0, "bad")

    def test_what_stands_in_slots_is_kept(self) -> None:
        assert (again(Slotted("gone", "GB")).place, again(ImportError("m", name="n", path="p")).name) == ("GB", "n")

    def test_an_attribute_that_is_missing_does_not_take_its_object_along(self) -> None:
        held: Any = {"secret": 1}
        error = raised(lambda: held.nothing)
        assert "secret" not in msgspec.json.encode(written_error(error)).decode()

    def test_a_constructor_that_takes_something_else_is_left_out(self) -> None:
        error = again(Own(7, reason="late"))
        assert (type(error), str(error), error.order, error.reason) == (Own, "order 7: late", 7, "late")
        broken = again(raised(lambda: json.loads("{")))
        assert (type(broken), broken.pos, broken.doc) == (json.JSONDecodeError, 1, "{")

    def test_a_class_in_a_function_is_a_recorded_error_with_its_attributes(self) -> None:
        class Local(Exception):
            pass

        local = Local("gone")
        local.__dict__["order"] = 7
        error = again(local)
        assert (type(error), str(error), vars(error)["order"]) == (RecordedError, "gone", 7)
        assert error.type.endswith("<locals>.Local")


class TestGroups:
    """Several errors in one."""

    def test_a_group_keeps_its_members_and_those_of_the_groups_in_it(self) -> None:
        inner = ExceptionGroup("inner", [KeyError("k"), Own(7, reason="late")])
        group = again(ExceptionGroup("outer", [FileNotFoundError(2, "no", "/x"), inner]))
        assert (type(group), group.message) == (ExceptionGroup, "outer")
        assert [type(each) for each in group.exceptions] == [FileNotFoundError, ExceptionGroup]
        assert [repr(each) for each in group.exceptions[1].exceptions] == ["KeyError('k')", "Own('order 7: late')"]
        assert group.exceptions[1].exceptions[1].order == 7

    def test_except_star_takes_it_as_it_took_the_first(self) -> None:
        async def failing(error: Exception) -> None:
            raise error

        async def several() -> None:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(failing(ValueError("v")))
                tasks.create_task(failing(KeyError("k")))

        group = again(raised(lambda: asyncio.run(several())))
        matching, rest = group.split(ValueError)
        assert ([repr(each) for each in matching.exceptions], len(rest.exceptions)) == (["ValueError('v')"], 1)

    def test_a_group_that_is_deep_or_large_is_kept_within_bounds(self) -> None:
        deep: Exception = ValueError("v")
        for _ in range(40):
            deep = ExceptionGroup("g", [deep])
        assert type(again(deep)) is ExceptionGroup
        large = ExceptionGroup("g", [ValueError("x" * 5000) for _ in range(60)])
        assert len(msgspec.json.encode(written_error(large))) < 32768
        assert (type(again(large)), str(again(large))) == (RecordedError, "g (60 sub-exceptions)")


class Order(pydantic.BaseModel):
    """What a tool is given."""

    amount: int = pydantic.Field(gt=3)
    place: str = "GB"

    @pydantic.field_validator("place")
    @classmethod
    def known(cls, place: str) -> str:
        if place == "XX":
            raise ValueError("no such place")
        if place == "YY":
            raise PydanticCustomError("sold_out", "sold out in {place}", {"place": place})
        return place


class TestPydantic:
    """What a model refused."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda: Order.model_validate({"amount": "q"}),
            lambda: Order.model_validate({"amount": 1, "place": "XX"}),
            lambda: Order.model_validate({"amount": 7, "place": "YY"}),
            lambda: Order.model_validate({}),
            lambda: Order.model_validate_json('{"amount": [1]}'),
        ],
        ids=["type", "value", "custom", "missing", "json"],
    )
    def test_a_refusal_is_the_same_error_by_error(self, call: Callable[[], Any]) -> None:
        first = raised(call)
        error = again(first)
        assert (type(error), str(error), error.title) == (pydantic.ValidationError, str(first), "Order")
        kept = [(each["type"], each["loc"], each["msg"], each["input"]) for each in error.errors()]
        assert kept == [(each["type"], each["loc"], each["msg"], each["input"]) for each in first.errors()]

    def test_a_refusal_of_what_cannot_be_written_keeps_its_errors_as_data(self) -> None:
        error = again(raised(lambda: Order.model_validate({"amount": object()})))
        assert (type(error), error.type) == (RecordedError, "pydantic_core._pydantic_core.ValidationError")
        assert [(each["type"], each["loc"]) for each in error.errors] == [("int_type", ["amount"])]


def of_httpx() -> Any:
    request = httpx.Request("POST", "http://shop/a")
    headers = {"retry-after": "3", "set-cookie": "session=1"}
    return raised(httpx.Response(503, request=request, headers=headers, json={"code": "busy"}).raise_for_status)


def of_httpx2() -> Any:
    request = httpx2.Request("POST", "http://shop/a")
    headers = {"retry-after": "3", "set-cookie": "session=1"}
    return raised(httpx2.Response(503, request=request, headers=headers, json={"code": "busy"}).raise_for_status)


def of_requests() -> Any:
    answer = requests.Response()
    answer.status_code, answer.reason, answer.url = 503, "Service Unavailable", "http://shop/a"
    answer.headers.update({"retry-after": "3", "set-cookie": "session=1"})
    vars(answer)["_content"] = b'{"code": "busy"}'
    answer.request = requests.Request("POST", answer.url).prepare()
    return raised(answer.raise_for_status)


def answer_of_a_model() -> httpx2.Response:
    request = httpx2.Request("POST", "http://shop/a")
    headers = {"retry-after": "3", "set-cookie": "session=1", "x-request-id": "r1"}
    return httpx2.Response(503, request=request, headers=headers, json={"code": "busy"})


def of_openai() -> Any:
    return openai.InternalServerError("busy", response=answer_of_a_model(), body={"code": "busy"})


def of_anthropic() -> Any:
    return anthropic.InternalServerError("busy", response=answer_of_a_model(), body={"code": "busy"})


class TestAnswers:
    """Errors that carry the answer of a server."""

    @pytest.mark.parametrize("error_of", [of_httpx, of_httpx2, of_requests, of_openai, of_anthropic])
    def test_the_answer_can_be_asked_as_before(self, error_of: Callable[[], Any]) -> None:
        first = error_of()
        error = again(first)
        assert (type(error), str(error)) == (type(first), str(first))
        response = error.response
        assert (type(response), response.status_code, response.json()) == (
            type(first.response),
            503,
            {"code": "busy"},
        )
        assert (response.headers["Retry-After"], "set-cookie" in response.headers) == ("3", False)
        assert (error.request.method, str(error.request.url)) == ("POST", "http://shop/a")
        assert getattr(error, "status_code", 503) == 503

    @pytest.mark.parametrize("error_of", [of_openai, of_anthropic])
    def test_an_error_of_a_model_keeps_what_it_says_itself(self, error_of: Callable[[], Any]) -> None:
        error = again(error_of())
        assert (error.body, error.message, error.response.headers["x-request-id"]) == ({"code": "busy"}, "busy", "r1")

    def test_an_error_without_an_answer_keeps_its_request(self) -> None:
        slow = again(httpx.ReadTimeout("slow", request=httpx.Request("GET", "http://shop/a?token=s3cret")))
        assert (type(slow), str(slow.request.url)) == (httpx.ReadTimeout, "http://shop/a?token=[redacted]")
        model = again(openai.APITimeoutError(request=httpx2.Request("POST", "http://shop/a")))
        assert (type(model), model.request.method) == (openai.APITimeoutError, "POST")

    def test_an_error_of_an_unknown_type_has_the_answer_all_the_same(self) -> None:
        error = again(of_httpx(), type="shop.Refused")
        assert (type(error), error.response.status_code) == (RecordedError, 503)

    def test_an_answer_of_an_unknown_type_is_read_alike(self) -> None:
        class Answer:
            def __init__(self) -> None:
                self.status_code, self.headers, self._content = 503, {"Retry-After": "3"}, b'{"code": "busy"}'

        error = Own(7, reason="late")
        error.__dict__["response"] = Answer()
        response = again(error).response
        assert isinstance(response, RecordedAnswer)
        assert (response.status_code, response.headers, response.json()) == (
            503,
            {"retry-after": "3"},
            {"code": "busy"},
        )

    def test_of_a_body_its_beginning_is_kept_and_no_secret(self) -> None:
        request = httpx.Request("GET", "http://shop/a")
        long = raised(httpx.Response(500, request=request, text="é" * 9000).raise_for_status)
        assert again(long).response.text == "é" * 4096
        told = raised(httpx.Response(500, request=request, json={"access_token": "s3cret"}).raise_for_status)
        assert again(told).response.json() == {"access_token": "[redacted]"}
        bytes_only = raised(httpx.Response(500, request=request, content=b"\xff\xfe").raise_for_status)
        assert again(bytes_only).response.content == b""

    def test_a_body_that_was_not_read_is_not_read_for_the_record(self) -> None:
        def body() -> Any:
            raise AssertionError("it was read")
            yield b""

        request = httpx.Request("GET", "http://shop/a")
        error = raised(httpx.Response(500, request=request, content=body()).raise_for_status)
        assert again(error).response.status_code == 500
