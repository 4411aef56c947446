"""Files of recordings: of several runs, and as they are opened and written."""

import gzip
import io
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tests.unit.sdk.commands import run
from tests.unit.sdk.logs import LogService, conversation, head, logged, saved
from twiceshy import Recording, RecordingRefused
from twiceshy._recording_files import written
from twiceshy._recording_parts import BlobPart, parts
from twiceshy_contract.events import Intent


def small(name: str) -> Recording:
    events, blobs = logged([({"a": name}, 1)])
    return Recording.from_events(head(name, 2), events, blobs)


def exported(tmp_path: Path, *names: str) -> list[bytes]:
    """Return the runs of one export, each as its text."""
    path = tmp_path / "runs.jsonl"
    result = run(LogService(*map(small, names)), "runs", "export", *names, "-o", str(path))
    assert result.exit_code == 0, result.output
    pieces = path.read_bytes().split(b'{"recording"')[1:]
    return [b'{"recording"' + piece for piece in pieces]


def names_in(text: bytes) -> list[str]:
    loaded = Recording.load_all(io.BytesIO(text))
    for each in loaded:
        each.close()
    return [each.run for each in loaded]


def test_runs_that_are_exported_together_say_so(tmp_path: Path) -> None:
    runs = exported(tmp_path, "a", "b")
    assert [msgspec.json.decode(each.splitlines()[0]).get("part") for each in runs] == [[1, 2], [2, 2]]
    assert names_in(b"".join(runs)) == ["a", "b"]
    (alone,) = exported(tmp_path, "a")
    assert b'"part"' not in alone


def test_exports_may_be_put_behind_each_other(tmp_path: Path) -> None:
    two, (alone,) = b"".join(exported(tmp_path, "a", "b")), exported(tmp_path, "c")
    assert names_in(two + alone + two) == ["a", "b", "c", "a", "b"]


@pytest.mark.parametrize(
    ("kept", "line", "reason"),
    [
        ([0, 1], 8, "the file ends behind run 2 of the 3 that were exported together: it is cut off"),
        ([0], 4, "the file ends behind run 1 of the 3 that were exported together: it is cut off"),
        ([1, 2], 1, "this is run 2 of 3 where run 1 of those exported together belongs: lines are missing"),
        ([0, 2], 5, "this is run 3 of 3 where run 2 of 3 of those exported together belongs: lines are missing"),
        ([0, 0], 5, "this is run 1 of 3 where run 2 of 3 of those exported together belongs: lines are missing"),
    ],
)
def test_a_file_that_lacks_one_of_them_is_refused(tmp_path: Path, kept: list[int], line: int, reason: str) -> None:
    runs = exported(tmp_path, "a", "b", "c")
    with pytest.raises(RecordingRefused) as refusal:
        names_in(b"".join(runs[at] for at in kept))
    assert (refusal.value.line, refusal.value.reason) == (line, reason)


def test_a_run_that_was_exported_alone_is_no_part_of_others(tmp_path: Path) -> None:
    (first, _), (alone,) = exported(tmp_path, "a", "b"), exported(tmp_path, "c")
    with pytest.raises(RecordingRefused, match="this run was exported alone where run 2 of 2 of those exported"):
        names_in(first + alone)


def test_an_export_that_names_an_unknown_run_writes_nothing_onto_standard_output() -> None:
    result = run(LogService(small("a")), "runs", "export", "a", "nope")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "Error: There is no run 'nope'. `twiceshy runs list` shows those there are.\n"


def test_an_export_onto_standard_output_that_breaks_is_refused_wherever_it_broke(tmp_path: Path) -> None:
    service = LogService(small("a"), small("b"))
    service.fails_at = 4
    result = run(service, "runs", "export", "a", "b")
    first = exported(tmp_path, "a", "b")[0]
    assert (result.exit_code, result.stdout_bytes.startswith(first)) == (1, True)
    for came in (first, result.stdout_bytes):
        with pytest.raises(RecordingRefused, match="it is cut off"):
            names_in(came)


class Megabytes:
    """Blobs as a service gives them: as many as fit into some megabytes, but one at least."""

    def __init__(self, blobs: dict[str, bytes]) -> None:
        self._blobs = blobs
        self.given: list[str] = []
        self.requests = 0

    def read(self, digests: Sequence[str]) -> dict[str, bytes]:
        self.requests += 1
        found: dict[str, bytes] = {}
        for digest in digests:
            found[digest] = self._blobs[digest]
            if sum(map(len, found.values())) > 4 * 2**20:
                break
        self.given += found
        return found


def test_no_large_payload_is_read_twice() -> None:
    blobs = {f"{at:064x}": b'"%b"' % (b"x" * 200_000) for at in range(100)}
    events = [
        Intent(seq=at, at=0, kind="custom", name="f", digest="0" * 64, arguments={"a": {"$blob": digest}})
        for at, digest in enumerate(blobs, 1)
    ]
    source = Megabytes(blobs)
    told = parts(head(events=100), map(msgspec.json.encode, events), source)
    assert [part.digest for part in told if isinstance(part, BlobPart)] == list(blobs)
    assert source.given == list(blobs)
    assert source.requests == 5


def test_two_that_write_one_file_do_not_harm_each_other(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    (tmp_path / f".a.jsonl.{os.getpid()}.part").touch()
    with written(path) as first:
        first.write(b"first")
        with written(path) as second:
            second.write(b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert sorted(each.name for each in tmp_path.iterdir()) == [f".a.jsonl.{os.getpid()}.part", "a.jsonl"]


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.gz", "run.jsonl.zst"])
def test_a_file_that_the_caller_opened_stays_open(tmp_path: Path, name: str) -> None:
    with saved(conversation(), tmp_path, name).open("rb") as file:
        with Recording.load(file) as read:
            assert len(read) == 6
        assert not file.closed
        file.seek(0)
        Recording.load(file).close()


def test_a_file_that_only_fills_disks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * 2**22))
    monkeypatch.setattr("twiceshy._recording_files.FREE_BYTES", 2**20)
    with pytest.raises(RecordingRefused, match="more than 200 times as large as the file"):
        Recording.load(path)
    with Recording.load(saved(conversation(), tmp_path, "right.jsonl.gz")) as read:
        assert len(read) == 6
