"""What is said of a run when it is named: whether it is recorded, and what it is about."""

from typing import Any

import msgspec
import pytest

from tests.unit.sdk.recording import LogService, recorded
from twiceshy import Guard, SetupError


@pytest.fixture
def service() -> LogService:
    return LogService()


def test_a_run_says_what_it_is_about_and_gives_its_input_back(service: LogService) -> None:
    given: dict[str, Any] = {"contract": "C-1", "$odd": [1, 2]}
    about: dict[str, Any] = {
        "workflow": "contracts", "agent": "clerk", "agent_version": "3", "prompt_version": "p7", "model": "m-1",
    }  # fmt: skip
    with recorded(service) as guard:
        run = guard.run("r1", **about, temperature=0.2, tags=("a", "b"), reference="C-1", input=given, parent="p")
        with run:
            assert run.input is given
    (asked,) = service.opened
    assert asked.parent == "p"
    assert msgspec.to_builtins(asked.about) == {
        **about, "temperature": 0.2, "tags": ("a", "b"), "reference": "C-1",
        "input": {"contract": "C-1", "$$odd": [1, 2]},
    }  # fmt: skip


def test_a_run_that_goes_on_knows_the_input_that_it_was_begun_with(service: LogService) -> None:
    service.about = {"input": {"contract": "C-1", "$$odd": 1}}
    with recorded(service) as guard:
        run = guard.run("r1")
        assert run.input is None
        with run:
            assert run.input == {"contract": "C-1", "$odd": 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workflow": ""}, "The run 'r1': workflow must be a text of 1 character or more."),
        ({"model": "a\nb"}, "model"),
        ({"temperature": -1.0}, "temperature"),
        ({"tags": "fast"}, "The run 'r1': tags is 'fast'; it is a list of texts."),
        ({"input": {"a": [object()]}}, "its input cannot be recorded at /input/a/0"),
        ({"input": "x" * 300_000}, "its input takes 300002 bytes as JSON, and 262144 are the most"),
        ({"parent": "a/b"}, "parent"),
        ({"record": "yes"}, "record is 'yes'; it is True, False, or None"),
    ],
)
def test_what_cannot_be_said_of_a_run_is_refused_where_it_is_said(options: dict[str, Any], said: str) -> None:
    with pytest.raises(SetupError) as raised:
        Guard("http://guard.test").run("r1", **options)
    assert said in str(raised.value)


def test_an_option_that_is_none_is_refused_with_the_nearest() -> None:
    options: dict[str, Any] = {"workflo": "x"}
    with pytest.raises(TypeError, match=r"Guard\.run takes no argument 'workflo'; did you mean workflow"):
        Guard("http://guard.test").run("r1", **options)


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of recording, from afar to near, and what holds."""

    holds: bool
    variable: str | None = None
    guard: bool | None = None
    run: bool | None = None


@pytest.mark.parametrize(
    "said",
    [
        Said(holds=False),
        Said(variable="1", holds=True),
        Said(variable="TRUE", holds=True),
        Said(variable="0", run=True, holds=True),
        Said(variable="1", guard=False, holds=False),
        Said(variable="1", run=False, holds=False),
        Said(guard=True, holds=True),
        Said(guard=True, run=False, holds=False),
    ],
)
def test_whether_a_run_is_recorded_falls_back_to_the_guard_and_the_environment(
    monkeypatch: pytest.MonkeyPatch, said: Said
) -> None:
    if said.variable is None:
        monkeypatch.delenv("TWICESHY_RECORD", raising=False)
    else:
        monkeypatch.setenv("TWICESHY_RECORD", said.variable)
    assert Guard("http://guard.test", record=said.guard).run("r1", record=said.run).is_recorded is said.holds


def test_a_variable_that_says_neither_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TWICESHY_RECORD", "tru")
    with pytest.raises(SetupError, match=r"TWICESHY_RECORD is 'tru'; did you mean true\? Set it to 1 or 0."):
        Guard("http://guard.test")


def test_a_run_without_a_recording_still_says_what_it_is_about(service: LogService) -> None:
    guard = Guard("http://guard.test", transport=service)
    with guard.run("r1", workflow="contracts") as run:
        assert run.random() < 1
    (asked,) = service.opened
    assert (asked.record, asked.about is not None) == (False, True)


def test_a_run_without_anything_to_say_asks_nothing_when_it_is_entered(service: LogService) -> None:
    with Guard("http://guard.test", transport=service).run("r1") as run:
        run.now()
    assert service.requests == []
