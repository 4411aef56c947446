"""The newest instance of an intent answers, also once the rules by which it was made hold no more."""

import pytest

from tests.integration.test_generations import ERROR, declare
from tests.service import Reply, ServiceProcess

SHORT = {"scope": "tenant", "window_seconds": 1}


def paged(service: ServiceProcess, run: str, tool: str, result: str | None) -> Reply:
    """Begin as soon as the window lets; commit, or leave it in doubt."""
    grant = service.begin(run, tool)
    while grant.status == 200:
        grant = service.begin(run, tool)
    assert grant.status == 201, grant.body
    if result is None:
        service.report("fail", grant, kind="unknown", error=ERROR)
    else:
        service.report("commit", grant, result=result)
    return grant


def test_a_longer_window_or_none_is_answered_by_the_newest_instance(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"page-{run}", key=SHORT)
    paged(service, f"{run}-1", tool, "first")
    newest = paged(service, f"{run}-2", tool, "second")
    for number, key in enumerate(({"scope": "tenant", "window_seconds": 3600}, {"scope": "tenant"})):
        declare(service, tool, key=key)
        answer = service.begin(f"{run}-later-{number}", tool)
        assert (answer.body["generation"], answer.body["outcome"]) == (2, {"result": "second"}), key
    assert newest.body["generation"] == 2


def test_doubt_about_the_newest_instance_is_not_hidden_by_an_older_answer(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"page-{run}", key=SHORT)
    paged(service, f"{run}-1", tool, "first")
    doubtful = paged(service, f"{run}-2", tool, None)
    for number, key in enumerate(({"scope": "tenant", "window_seconds": 3600}, {"scope": "tenant"})):
        declare(service, tool, key=key)
        later = service.begin(f"{run}-later-{number}", tool)
        assert (later.code, later.body["key"]) == ("outcome-in-doubt", doubtful.body["key"]), key


def test_repeats_that_are_allowed_no_more_are_answered_by_the_newest(service: ServiceProcess, run: str) -> None:
    tool = declare(service, f"mail-{run}", repeat="allow")
    key = f"invoice-{run}"
    for number in range(3):
        grant = service.begin(f"{run}-{number}", tool, business_key=key)
        service.report("commit", grant, result=number)
    declare(service, tool, repeat="replay")
    later = service.begin(f"{run}-later", tool, business_key=key)
    assert (later.status, later.body["generation"], later.body["outcome"]) == (200, 3, {"result": 2})


def test_instances_from_before_there_was_a_window_are_no_older_answers_either(
    service: ServiceProcess, run: str
) -> None:
    tool = declare(service, f"page-{run}", key={"scope": "tenant"})
    paged(service, f"{run}-1", tool, "first")
    declare(service, tool, key=SHORT)
    paged(service, f"{run}-2", tool, "second")
    declare(service, tool, key={"scope": "tenant"})
    later = service.begin(f"{run}-later", tool)
    assert (later.status, later.body["outcome"]) == (200, {"result": "second"})


@pytest.mark.parametrize(
    "terms",
    [
        {"class_": "idempotent"},
        {"repeat": "allow"},
        {"key": {"scope": "tenant", "window_seconds": 3600}, "arguments": {"content": ["/card"]}},
    ],
)
def test_what_was_refused_stays_the_answer_for_its_arguments_whatever_came_after_it(
    service: ServiceProcess, run: str, terms: dict[str, object]
) -> None:
    tool = declare(service, f"pay-{run}", **terms)
    name = {} if "key" in terms else {"business_key": f"invoice-{run}"}
    said = {}
    for number, card in enumerate(("stolen", "empty", "lost", "good"), start=1):
        grant = service.begin(run, tool, {"to": "bob", "card": card}, **name)
        assert (grant.status, grant.body["generation"]) == (201, number), grant.body
        if card == "good":
            service.report("commit", grant, result="paid")
        else:
            said[card] = {"type": "Declined", "message": card}
            service.report("fail", grant, kind="rejected", error=said[card])
    for card, error in said.items():
        again = service.begin(run, tool, {"to": "bob", "card": card}, **name)
        assert (again.status, again.body.get("outcome")) == (200, {"error": error}), card
