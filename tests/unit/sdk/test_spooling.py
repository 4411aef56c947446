"""An outcome that the service does not hear: when it goes to the spool, and what its caller sees."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.sdk.scripted import (
    KEY,
    FakeClock,
    ScriptedService,
    answered,
    committed,
    executes,
    problem,
    replays,
)
from tests.unit.sdk.spooled import files, undelivered
from twiceshy import Guard, NotApplied, OutcomeNotDelivered, Rejected, RunSuspended
from twiceshy._spool_file import SpoolFile
from twiceshy._spool_list import Entry, look
from twiceshy._transports.base import NoReply, Reply, Request

Serve = Callable[..., tuple[Guard, ScriptedService]]
SILENCE = NoReply(reason="connection refused")


def waiting(folder: Path) -> list[tuple[str, str]]:
    """What waits: the tool and the kind of outcome."""
    return [(entry.tool, entry.kind) for entry in look(folder)]


def test_an_outcome_that_is_heard_at_once_touches_no_disk(serve: Serve, tmp_path: Path) -> None:
    guard, _ = serve(executes(), committed(), spool=tmp_path / "spool")

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"):
        assert pay() == 14
    assert not (tmp_path / "spool").exists()


def test_it_waits_on_disk_from_the_first_silence_until_it_is_heard(serve: Serve, tmp_path: Path) -> None:
    seen: list[list[Entry]] = []

    def looks(_: Request) -> Reply | NoReply:
        seen.append(look(tmp_path))
        return SILENCE if len(seen) < 3 else committed()

    guard, service = serve(executes(), looks, looks, looks, spool=tmp_path)

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"):
        assert pay() == 14
    assert [len(entries) for entries in seen] == [0, 1, 1]
    entry = seen[1][0]
    assert bytes(entry.report) == service.requests[-1].body
    assert (entry.key, entry.tool, entry.kind, entry.url, entry.run) == (
        KEY, "pay", "succeeded", "http://guard.test", "booking-42",
    )  # fmt: skip
    assert files(tmp_path) == []


def test_the_token_is_not_kept(tmp_path: Path) -> None:
    service = ScriptedService(executes(), problem("unauthorized", 401))
    guard = Guard("http://guard.test", token="a-secret", transport=service, spool=tmp_path)  # noqa: S106

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"):
        pay()
    (entry,) = look(tmp_path)
    assert b"a-secret" not in Path(entry.file).read_bytes()
    service.always = SILENCE
    guard.close()


def test_a_value_reaches_its_caller_although_nobody_heard_of_it(
    serve: Serve, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    guard, service = serve(executes(seconds=45.0), spool=tmp_path)

    @guard.tool
    def pay() -> int:
        service.always = SILENCE
        return 14

    with guard.run("booking-42"):
        assert pay() == 14
    assert 40 < clock.now - 1000 <= 45
    assert waiting(tmp_path) == [("pay", "succeeded")]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert KEY in warning
    assert str(tmp_path) in warning


def test_what_waits_is_sent_before_the_next_call_begins(serve: Serve, tmp_path: Path) -> None:
    guard, service = serve(executes(), spool=tmp_path)

    @guard.tool
    def pay() -> int:
        service.always = SILENCE
        return 14

    with guard.run("booking-42"):
        pay()
        service.always, service.answers = None, [committed(), replays(14)]
        sent = len(service.requests)
        assert pay() == 14
    assert service.paths[-2:] == ["commit", "effects"]
    assert len(service.requests) == sent + 2
    assert files(tmp_path) == []


def test_the_first_call_sends_what_a_dead_process_left_behind(serve: Serve, tmp_path: Path) -> None:
    file = SpoolFile.create(tmp_path)
    file.keep(undelivered(7))
    file.let_go()
    guard, service = serve(committed(), replays(14), spool=tmp_path)

    @guard.tool
    def pay() -> int:
        raise AssertionError

    with guard.run("booking-42"):
        assert pay() == 14
    assert service.paths == ["commit", "effects"]


@pytest.mark.parametrize(("raised", "kind"), [(NotApplied("busy"), "not_applied"), (Rejected("no money"), "rejected")])
def test_the_tools_own_error_reaches_its_caller_with_a_note_where_the_report_waits(
    serve: Serve, tmp_path: Path, raised: Exception, kind: str
) -> None:
    guard, service = serve(executes(), spool=tmp_path)

    @guard.tool
    def pay() -> None:
        service.always = SILENCE
        raise raised

    with guard.run("booking-42"), pytest.raises(type(raised)) as caught:
        pay()
    assert caught.value is raised
    assert f"The report waits in {tmp_path}" in caught.value.__notes__[0]
    assert waiting(tmp_path) == [("pay", kind)]


def test_a_doubt_that_nobody_heard_of_suspends_and_waits(serve: Serve, tmp_path: Path) -> None:
    guard, service = serve(executes(), spool=tmp_path)

    @guard.tool
    def pay() -> None:
        service.always = SILENCE
        raise TimeoutError

    with guard.run("booking-42"), pytest.raises(RunSuspended) as caught:
        pay()
    assert "The report waits in" in caught.value.__notes__[1]
    assert waiting(tmp_path) == [("pay", "unknown")]


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_of_the_sender_keeps_the_outcome(serve: Serve, tmp_path: Path, status: int) -> None:
    guard, service = serve(executes(), problem("unauthorized", status), spool=tmp_path)

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"):
        assert pay() == 14
    assert service.paths.count("commit") == 1
    assert waiting(tmp_path) == [("pay", "succeeded")]


def test_a_final_refusal_after_a_silence_leaves_nothing_behind(serve: Serve, tmp_path: Path) -> None:
    guard, _ = serve(executes(), SILENCE, problem("not-possible"), spool=tmp_path)

    @guard.tool
    def pay() -> int:
        return 14

    with guard.run("booking-42"), pytest.raises(OutcomeNotDelivered) as caught:
        pay()
    assert caught.value.result == 14
    assert files(tmp_path) == []


def test_an_outcome_that_can_be_neither_told_nor_kept_is_its_callers_to_save(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    guard, service = serve(executes(), spool=tmp_path / "file" / "spool")

    @guard.tool
    def pay() -> int:
        service.always = SILENCE
        return 14

    with guard.run("booking-42"), pytest.raises(OutcomeNotDelivered) as caught:
        pay()
    message = str(caught.value)
    assert "connection refused; and the spool could not keep it: [Errno 20] Not a directory" in message
    assert "Save this error's `result`" in message
    assert (caught.value.has_result, caught.value.result) == (True, 14)


def test_without_a_spool_an_outcome_that_nobody_hears_is_its_callers(serve: Serve) -> None:
    guard, service = serve(executes())

    @guard.tool
    def pay() -> int:
        service.always = SILENCE
        return 14

    with guard.run("booking-42"), pytest.raises(OutcomeNotDelivered, match="Save this error's `result`"):
        pay()


def test_what_is_not_applied_and_not_heard_is_not_tried_again(serve: Serve, tmp_path: Path) -> None:
    guard, service = serve(executes(), SILENCE, answered(503, {}), spool=tmp_path)

    @guard.tool
    def pay() -> None:
        service.always = SILENCE
        raise NotApplied

    with guard.run("booking-42"), pytest.raises(NotApplied):
        pay()
    assert service.paths.count("effects") == 1
