"""The extent of a fork's record: what it repeats, and what it may be served of afterwards."""

from uuid import UUID

from guard.core.effects import RunId
from guard.core.forks import Fork, Lineage, LiveTool, Span, child_of, counterpart, is_within, lineage

MAIN, CHILD, GRANDCHILD = (RunId(UUID(int=number)) for number in (1, 2, 3))


def fork(parent: RunId, at: int) -> Fork:
    """Return a fork of a run."""
    return Fork(parent=f"run-{parent.int}", parent_id=parent, at=at)


def span(run: RunId, after: int, until: int | None = None) -> Span:
    """Return the effects of a run after a step and up to another."""
    return Span(run=run, after=after, until=until)


def test_the_record_of_a_fork_is_cut_in_two() -> None:
    assert lineage(fork(MAIN, 3), []) == Lineage(head=(span(MAIN, 0, 3),), tail=(span(MAIN, 3),))


def test_a_fork_at_the_start_repeats_nothing() -> None:
    assert lineage(fork(MAIN, 0), []) == Lineage(head=(), tail=(span(MAIN, 0),))


def test_a_fork_behind_its_parents_cut_repeats_both() -> None:
    found = lineage(fork(CHILD, 5), [fork(MAIN, 3)])
    assert found.head == (span(MAIN, 0, 3), span(CHILD, 3, 5))
    assert found.tail == (span(CHILD, 5), span(MAIN, 3))


def test_a_fork_before_its_parents_cut_repeats_the_grandparent_only() -> None:
    found = lineage(fork(CHILD, 2), [fork(MAIN, 3)])
    assert found.head == (span(MAIN, 0, 2),)
    assert found.tail == (span(MAIN, 2, 3), span(CHILD, 3), span(MAIN, 3))


def test_each_ancestor_adds_what_it_did_itself() -> None:
    found = lineage(fork(GRANDCHILD, 9), [fork(CHILD, 6), fork(MAIN, 4)])
    assert found.head == (span(MAIN, 0, 4), span(CHILD, 4, 6), span(GRANDCHILD, 6, 9))
    assert found.tail == (span(GRANDCHILD, 9), span(CHILD, 6), span(MAIN, 4))


def test_what_an_ancestor_did_behind_an_earlier_cut_is_nobodys_past() -> None:
    found = lineage(fork(GRANDCHILD, 9), [fork(CHILD, 2), fork(MAIN, 4)])
    assert found.head == (span(MAIN, 0, 2), span(GRANDCHILD, 2, 9))
    assert found.tail == (span(GRANDCHILD, 9), span(CHILD, 4), span(MAIN, 2))


def test_a_record_says_which_effects_are_repeated() -> None:
    record = lineage(fork(CHILD, 5), [fork(MAIN, 3)])
    repeated = [record.repeats(MAIN, 1), record.repeats(MAIN, 3), record.repeats(CHILD, 4), record.repeats(CHILD, 5)]
    others = [record.repeats(MAIN, 4), record.repeats(CHILD, 3), record.repeats(CHILD, 6), record.repeats(MAIN, None)]
    strangers = [record.repeats(None, 1), record.repeats(GRANDCHILD, 1)]
    assert (repeated, others, strangers) == ([True] * 4, [False] * 4, [False] * 2)


def test_the_terms_of_a_tool_are_found_by_its_name() -> None:
    assert fork(MAIN, 1).terms_of("pay") is None
    terms = LiveTool(tool="pay", calls=1)
    named = Fork(parent="run-1", parent_id=MAIN, at=1, live=(LiveTool(tool="mail"), terms))
    assert named.terms_of("pay") is terms


TERMS = Fork(parent="main", parent_id=MAIN, at=3, reads="recorded", live=(LiveTool(tool="pay", calls=2),))
FORK = RunId(UUID(int=9))
INNER = RunId(UUID(int=10))


def test_a_child_of_a_fork_may_do_what_the_fork_may_and_has_the_record_of_its_counterpart() -> None:
    child = child_of(FORK, TERMS, ("main.mail", CHILD))
    assert (child.parent, child.parent_id, child.at) == ("main.mail", CHILD, 0)
    assert (child.reads, child.live, child.within, child.is_empty) == ("recorded", TERMS.live, (FORK,), False)
    assert lineage(child, []) == Lineage(head=(), tail=(span(CHILD, 0),))
    grandchild = child_of(INNER, child, None)
    assert (grandchild.within, grandchild.is_empty, grandchild.live) == ((FORK, INNER), True, TERMS.live)


def test_a_child_without_a_counterpart_has_no_record_and_nor_has_what_goes_on_from_it() -> None:
    child = child_of(FORK, TERMS, None)
    assert lineage(child, [fork(MAIN, 3)]) == Lineage(head=(), tail=())
    assert lineage(fork(INNER, 2), [child, fork(GRANDCHILD, 7)]) == lineage(fork(INNER, 2), [])


def test_live_calls_count_in_the_run_that_was_forked() -> None:
    child = child_of(FORK, TERMS, None)
    assert (TERMS.counted_in(FORK), child.counted_in(INNER)) == (FORK, FORK)
    assert child_of(INNER, child, None).counted_in(GRANDCHILD) == FORK


def test_a_run_is_within_a_fork_where_it_is_the_fork_or_lies_below_it() -> None:
    child = child_of(FORK, TERMS, None)
    assert [is_within(FORK, TERMS, FORK), is_within(INNER, child, FORK)] == [True, True]
    others = [is_within(MAIN, None, FORK), is_within(CHILD, TERMS, FORK), is_within(FORK, TERMS, INNER)]
    assert others == [False, False, False]


def test_a_childs_counterpart_has_the_name_under_the_recorded_parent() -> None:
    assert counterpart("why.mail", "why", "main") == "main.mail"
    assert counterpart("why.mail.2", "why.mail", "main.mail") == "main.mail.2"
    assert counterpart("other.mail", "why", "main") is None
    assert counterpart("why", "why", "main") is None
