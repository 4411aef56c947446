"""What is said of a guard or a tool in a way that cannot work is refused where it is said, in words for people."""

import asyncio
import copy
import functools
import math
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from twiceshy import Guard, SetupError, ToolOptions

guard = Guard("http://127.0.0.1:1", spool=None)


@guard.tool
def pay(to: str, amount: int = 1) -> str:
    return f"{amount} to {to}"


@guard.tool
async def pay_soon(to: str) -> str:
    return to


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"content": ["/titel"]}, ("'/titel' leads to no argument; did you mean /title?", "to, title")),
        ({"identity": ["/zzz"]}, ("'/zzz' leads to no argument.", "to, title")),
        ({"ignored": ["title"]}, ("'title' is no JSON Pointer", "'/title'")),
        ({"normalisers": {"/when": "utc"}}, ("'/when' leads to no argument",)),
        ({"redacted": ["/titel/x"]}, ("'/titel/x' leads to no argument; did you mean /title?",)),
        ({"content": "/title"}, ("content is a list",)),
        ({"content": None}, ("content is a list",)),
        ({"effect": "idem"}, ("effect is 'idem'", "'idempotent'")),
        ({"key": "business"}, ("key is 'business'; did you mean business_key?",)),
        ({"on_doubt": "ask"}, ("on_doubt is 'ask'", "'suspend', 'tell'")),
        ({"one_request": "no"}, ("one_request is 'no'; say True or False.",)),
        ({"classify": "x"}, ("classify is 'x'",)),
        ({"wait_seconds": None}, ("wait_seconds is None", "a number of seconds")),
        ({"deadline_seconds": timedelta(seconds=1)}, ("deadline_seconds is", "a number of seconds")),
        ({"deadline_seconds": math.nan}, ("deadline_seconds is nan",)),
    ],
)
def test_an_option_that_means_nothing_is_refused_with_what_was_meant(
    options: ToolOptions, words: tuple[str, ...]
) -> None:
    with pytest.raises(SetupError) as caught:

        @Guard("http://127.0.0.1:1", spool=None).tool(**options)
        def send(to: str, title: str) -> None: ...

    for word in words:
        assert word in str(caught.value)


def test_paths_into_arguments_are_taken_also_where_any_argument_is() -> None:
    @Guard("http://127.0.0.1:1", spool=None).tool(content=["/mail/title", "/items/*/note"], ignored=["/more/thought"])
    def send(mail: dict[str, str], items: list[dict[str, str]], **more: str) -> None: ...


@pytest.mark.parametrize("option", ["identity", "content", "ignored", "redacted", "normalisers"])
def test_what_keywords_take_lies_below_their_name(option: str) -> None:
    said: Any = {option: {"/pin": "utc"} if option == "normalisers" else ["/pin"]}
    options: ToolOptions = said
    with pytest.raises(SetupError, match=r"'/pin' leads to no argument; .* did you mean '/more/pin'\?"):

        @Guard("http://127.0.0.1:1", spool=None).tool(**options)
        def pay(to: str, **more: str) -> None: ...


def test_a_function_without_a_name_is_told_to_have_one() -> None:
    with pytest.raises(SetupError, match=r"name='\.\.\.'"):
        guard.tool(functools.partial(print, "x"))


@pytest.mark.parametrize("seconds", [None, "30", -1, math.nan, math.inf, True])
@pytest.mark.parametrize("argument", ["unavailable_seconds", "deliver_seconds"])
def test_a_patience_that_is_no_duration_is_refused_before_any_tool_runs(argument: str, seconds: object) -> None:
    arguments: dict[str, Any] = {argument: seconds}
    with pytest.raises(SetupError, match=argument):
        Guard("http://127.0.0.1:1", **arguments)


@pytest.mark.parametrize("said", [{"url": Path("x.db")}, {"url": b"x"}, {"token": 5}])
def test_a_url_or_token_that_is_no_text_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(SetupError, match="it is a text"):
        Guard(**said)


def test_a_token_for_a_database_in_this_process_is_refused() -> None:
    with pytest.raises(SetupError, match="takes none"):
        Guard("sqlite:///x.db", token="secret")  # noqa: S106


def test_a_tool_travels_to_another_process_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(pay)) is pay  # noqa: S301 - what was just written
    assert copy.deepcopy([pay])[0] is pay


def test_an_async_tool_is_a_coroutine_function_to_asyncio() -> None:
    assert asyncio.iscoroutinefunction(pay_soon)
    assert not asyncio.iscoroutinefunction(pay)
