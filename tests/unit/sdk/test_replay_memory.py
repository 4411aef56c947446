"""A replay reads its recording where it lies, and keeps nothing of what it has served."""

import tracemalloc
from pathlib import Path

from tests.unit.sdk.call_logs import Writing
from tests.unit.sdk.replays import RUN
from tests.unit.sdk.shop_agents import guard, look_up
from twiceshy import Recording, replay
from twiceshy._payloads import Kept, write_value
from twiceshy_contract.events import Delivery

_CALLS = 1000
_BYTES = 50_000


def kept_in(folder: Path) -> Path:
    """Write a recording of 50 MB."""
    kept, log = Kept(), Writing(RUN)
    for number in range(_CALLS):
        value = write_value({"price": number, "text": f"{number} {'x' * _BYTES}"}, kept)
        log.tool("look_up", {"order": str(number)}, value)
    log.blobs = kept.pending
    path = folder / "run.jsonl"
    log.recording().save(path)
    return path


def test_fifty_megabytes_of_payload_are_replayed_in_little_memory(tmp_path: Path) -> None:
    def long() -> int:
        with guard.run(RUN):
            return sum(look_up(str(number))["price"] for number in range(_CALLS))

    path = kept_in(tmp_path)
    assert path.stat().st_size > _CALLS * _BYTES
    tracemalloc.start()
    try:
        with Recording.load(path) as recording:
            tracemalloc.reset_peak()
            again = replay(recording, long)
            assert (again.value, again.is_same) == (sum(range(_CALLS)), True)
            first = again.log.events[1]
            assert isinstance(first, Delivery)
            assert again.log.value(first) == {"price": 0, "text": f"0 {'x' * _BYTES}"}
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 12 * 2**20
