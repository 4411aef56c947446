"""Problems: every code has one meaning, and every meaning says what to do next."""

from typing import get_args

import pytest

from twiceshy_contract.problems import PROBLEMS, Problem, ProblemCode, problem_type

STATUSES = {
    "approval-expired": 409,
    "arguments-changed": 422,
    "blobs-missing": 409,
    "attempts-exhausted": 409,
    "changed-since": 409,
    "decided-already": 409,
    "edit-refused": 409,
    "expired": 410,
    "forbidden": 403,
    "hold-differs": 422,
    "hold-lost": 409,
    "in-progress": 409,
    "invalid-request": 400,
    "key-used-by-another-tool": 422,
    "lease-lost": 409,
    "loop-limit": 409,
    "message-state": 409,
    "method-not-allowed": 405,
    "name-taken": 409,
    "no-relay": 503,
    "not-found": 404,
    "not-possible": 409,
    "outcome-in-doubt": 409,
    "overloaded": 503,
    "recording-diverged": 409,
    "recording-gap": 409,
    "registry-changed": 409,
    "resource-held": 409,
    "retry-later": 409,
    "run-finished": 409,
    "run-suspended": 409,
    "run-taken-over": 409,
    "saga-over": 409,
    "sibling-in-doubt": 409,
    "store-unavailable": 503,
    "superseded": 409,
    "too-large": 413,
    "unauthorized": 401,
    "unsupported-media-type": 415,
    "internal": 500,
}


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    assert set(PROBLEMS) == set(get_args(ProblemCode))


def test_every_code_has_the_status_that_the_design_gives_it() -> None:
    assert {code: kind.status for code, kind in PROBLEMS.items()} == STATUSES


@pytest.mark.parametrize("code", get_args(ProblemCode))
def test_every_problem_says_what_happened_and_what_to_do_next(code: ProblemCode) -> None:
    kind = PROBLEMS[code]
    assert kind.title
    assert not kind.title.endswith(".")
    assert kind.remedy.endswith(".")


@pytest.mark.parametrize("code", get_args(ProblemCode))
def test_a_problems_type_ends_in_its_code(code: ProblemCode) -> None:
    assert problem_type(code) == f"/problems/{code}"
    assert Problem(type=problem_type(code), title="t", status=409, detail="d").code == code
