"""A fork whose override does not fit ends at the call that it is of, before anything runs."""

from typing import Any

import pytest

from tests.service import ServiceProcess
from twiceshy import Guard, Override, SetupError


@pytest.mark.parametrize("kind", [Exception, BaseException])
def test_an_override_that_does_not_fit_is_raised_where_the_block_of_the_fork_is_left(
    service: ServiceProcess, run: str, kind: type[BaseException]
) -> None:
    guard = Guard(service.url, spool=None)
    ran: list[str] = []

    @guard.tool(effect="read", name=f"look-{run}")
    def look(place: str) -> list[str]:
        ran.append(place)
        return [place]

    def agent(name: str, **options: Any) -> list[Any]:
        seen: list[Any] = []
        with guard.run(name, **{"record": True, **options}) as entered:
            for place in ("a", "b"):
                try:
                    seen.append(look(place))
                except kind as error:
                    seen.append(error)
            seen.append(entered.llm(str, len(seen)))
        return seen

    assert agent(run) == [["a"], ["b"], "2"]
    ran.clear()
    fork: dict[str, Any] = {"fork_of": run, "at_event": 3}
    with pytest.raises(SetupError, match=r"The override of event 3: 5 does not fit what look.* returns: it is an int"):
        agent(f"{run}-fork", overrides=[Override(seq=3, result=5)], **fork)
    assert ran == []
    assert agent(f"{run}-right", overrides=[Override(seq=3, result=["c"])], **fork) == [["a"], ["c"], "2"]
    assert ran == []
