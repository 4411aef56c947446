"""What a process has lately looked up, so many and no more."""

from guard.service.recent import Recent


def test_the_least_lately_used_goes_first() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.keep("a", 1)
    recent.keep("b", 2)
    assert recent.get("a") == 1
    recent.keep("c", 3)
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (1, None, 3)


def test_what_is_taken_is_kept_no_longer() -> None:
    recent: Recent[str, int] = Recent(2)
    recent.keep("a", 1)
    assert recent.take("a") == 1
    assert recent.take("a") is None
    assert recent.get("a") is None
