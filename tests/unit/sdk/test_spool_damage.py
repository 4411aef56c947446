"""Spool files that are damaged, newer or not ours: nothing that is not proven torn is passed over or removed."""

import zlib
from pathlib import Path
from uuid import UUID

import pytest

from tests.unit.sdk.spooled import files, keys, of_the_dead, undelivered
from twiceshy._spool import Spool
from twiceshy._spool_list import look
from twiceshy._spool_record import Head, Kept, write


@pytest.mark.parametrize("cut", [1, 9, 40])
def test_a_torn_last_line_is_passed_over_and_written_over(tmp_path: Path, cut: int) -> None:
    path = of_the_dead(tmp_path, 1, 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    spool = Spool(tmp_path, "http://guard.test")
    spool.adopt()
    assert keys(spool) == [[1]]
    spool.note(UUID(int=1), "connection refused")
    spool.let_go()
    (entry,) = look(tmp_path)
    assert (entry.attempt, entry.tries, entry.reason) == (UUID(int=1), 1, "connection refused")


def test_a_damaged_line_is_never_passed_over_in_silence(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = of_the_dead(tmp_path, 1, 2, 3)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"14", b"15")
    path.write_bytes(b"".join(lines))
    spool = Spool(tmp_path, "http://guard.test")
    spool.adopt()
    assert keys(spool) == [[1, 3]]
    assert "holds 1 damaged line" in caplog.text
    for number in (1, 3):
        spool.settle(UUID(int=number))
    assert files(tmp_path) == [f"{path.stem}.damaged"]
    assert lines[2] in (tmp_path / f"{path.stem}.damaged").read_bytes()


HEAD = write(Head(version="9.1"))
ONE, TWO, THREE = (write(Kept(outcome=undelivered(number))) for number in (1, 2, 3))


def rotten(line: bytes) -> bytes:
    """The line with one character flipped."""
    return line.replace(b"14", b"15")


def proven(text: bytes) -> bytes:
    """A line of a kind that this version does not know."""
    return b"%08x %s\n" % (zlib.crc32(text), text)


UNKNOWN = proven(b'{"line":"kept2","outcome":{"new":"kind"}}')


def deliver_all(folder: Path) -> list[int]:
    """Adopt all and settle all; return what was sent."""
    spool = Spool(folder, "http://guard.test")
    spool.adopt()
    sent = [outcome.attempt for queue in spool.queues() for outcome in queue]
    for attempt in sent:
        spool.settle(attempt)
    spool.let_go()
    return [attempt.int for attempt in sent]


@pytest.mark.parametrize(
    ("content", "sent"),
    [
        (HEAD + rotten(ONE), []),
        (ONE + rotten(TWO), [1]),
        (ONE + rotten(TWO) + rotten(THREE), [1]),
        (HEAD + ONE + rotten(TWO) + THREE[:30], [1]),
    ],
)
def test_a_rotten_line_is_kept_wherever_it_stands(
    tmp_path: Path, content: bytes, sent: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "host_1_0000abcd.jsonl").write_bytes(content)
    assert deliver_all(tmp_path) == sent
    assert files(tmp_path) == ["host_1_0000abcd.damaged"]
    kept = (tmp_path / "host_1_0000abcd.damaged").read_bytes()
    assert all(line in kept for line in content.splitlines(keepends=True) if line.endswith(b"\n"))
    assert "damaged line" in caplog.text


@pytest.mark.parametrize(
    ("content", "sent"), [(HEAD + UNKNOWN, []), (HEAD + ONE + UNKNOWN, [1]), (HEAD + UNKNOWN + rotten(TWO), [])]
)
def test_lines_of_a_newer_version_keep_the_file_for_it_and_its_version_is_said_once(
    tmp_path: Path, content: bytes, sent: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "host_1_0000abcd.jsonl"
    path.write_bytes(content)
    assert deliver_all(tmp_path) == sent
    assert path.read_bytes().startswith(content)
    spool = Spool(tmp_path, "http://guard.test")
    caplog.clear()
    for _ in range(2):
        spool.adopt()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.endswith("it holds 1 unknown line of a newer version; use the one that wrote them: 9.1.")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("data.jsonl", b'{"my":"own"}\n'),
        ("data_2024_01.jsonl", b'{"my":"own"}\n'),
        ("data_2024_00000001.jsonl", b'{"my":"own"}\n' * 3),
        ("data_2024_00000001.jsonl", b'{"my":"own"}'),
        ("data_2024_01.jsonl", b""),
        ("host_1_0000abcd.jsonl", rotten(ONE)),
        ("data_2024_01.refused", b'{"my":"own"}\n'),
    ],
)
def test_a_file_that_is_not_proven_ours_is_left_as_it_is(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    spool = Spool(tmp_path, "http://guard.test")
    spool.adopt()
    assert (spool.has_strangers(), files(tmp_path)) == (False, [name])
    assert (tmp_path / name).read_bytes() == content
    assert look(tmp_path) == []


def test_a_file_that_a_power_cut_left_empty_is_removed(tmp_path: Path) -> None:
    (tmp_path / "host_1_0000abcd.jsonl").touch()
    assert (deliver_all(tmp_path), files(tmp_path)) == ([], [])
