"""A name that the service would not take is refused before anything is called, or gets a mark for what is no name."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.sdk.recording import LogService, recorded
from twiceshy import SetupError

BAD = ["", "a\tb", "a\nb", "..", "half \ud800"]


def refuses_to_be_called() -> None:
    raise AssertionError("it was called")


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "not recorded"])
def test_a_boundary_of_ones_own_with_a_bad_name_is_refused_before_it_is_called(name: str, record: bool) -> None:  # noqa: FBT001
    service = LogService()
    with recorded(service) as guard, guard.run("r1", record=record) as run:
        with pytest.raises(SetupError, match=r"^The boundary '.*' cannot be taken: .* Choose another name\.$"):
            run.custom(name, refuses_to_be_called)
        assert run.custom("after it", lambda: 1) == 1
    if record:
        assert service.kinds("r1") == ["1 custom after it", "2 result of 1"]


@pytest.mark.parametrize("name", BAD)
def test_so_are_a_child_and_a_scope(name: str) -> None:
    with recorded(LogService()) as guard, guard.run("r1") as run:
        with pytest.raises(SetupError, match="The child '"):
            run.child(name, refuses_to_be_called)
        with pytest.raises(SetupError, match="The scope '"), run.scope(name):
            refuses_to_be_called()


def test_a_long_name_and_one_with_slashes_are_taken() -> None:
    service = LogService()
    with recorded(service) as guard, guard.run("r1") as run:
        run.custom("a/b", lambda: 1)
        run.custom("n" * 300, lambda: 1)
    assert service.kinds("r1")[::2] == ["1 custom a|b", f"3 custom {'n' * 200}"]


def named(name: str) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> int:
        return 1

    call.__qualname__ = name
    return call


@pytest.mark.parametrize(
    ("name", "kept"),
    [("a\tb", "a|b"), ("..", "|"), (".", "|"), ("half \ud800", "half |"), ("m" * 300, "m" * 200), ("a/b\x00", "a|b|")],
)
def test_a_model_and_a_function_whose_name_is_none_are_recorded_with_a_mark(name: str, kept: str) -> None:
    service = LogService()
    with recorded(service) as guard, guard.run("r1") as run:
        if "\ud800" not in name:  # an argument of half a pair is refused
            run.llm(named("f"), model=name)
        run.llm(named(name))
        run.human("may I?", named(name))
    names = [kind.split(" ", 2)[2] for kind in service.kinds("r1")[::2]]
    assert set(names) == {kept}
