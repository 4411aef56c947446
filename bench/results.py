"""The results as they are kept: `latest.json`, and beside it what they were measured on."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.failure import BenchFailure
from bench.rows import Row

FOLDER: Final = Path(__file__).parent / "results"
_LATEST: Final = "latest.json"
_MACHINE: Final = "machine.json"


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine is, as far as it matters and names nobody. `load` is its load average before the bench."""

    cores: int
    processor: str
    system: str
    python: str
    load: float

    @property
    def is_busy(self) -> bool:
        """Whether somebody else's work will show in the figures."""
        return self.load > self.cores / 4


def this_machine() -> Machine:
    """Describe this machine."""
    return Machine(
        cores=os.cpu_count() or 1,
        processor=_processor(Path("/proc/cpuinfo")),
        system=platform.system(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        load=round(os.getloadavg()[0], 2),
    )


def write(rows: Sequence[Row], machine: Machine, order: Sequence[str], folder: Path = FOLDER) -> None:
    """Put rows in place of the last ones of their names; those that were not measured stay. Sorted by `order`."""
    kept = {row.name: row for row in read(folder)} if (folder / _LATEST).exists() else {}
    merged = kept | {row.name: row for row in rows}
    sorted_rows = [merged[name] for name in order if name in merged]
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / _LATEST, sorted_rows)
    _write(folder / _MACHINE, machine)


def read(folder: Path = FOLDER) -> list[Row]:
    """Return the rows of the last run; none where they are of an older form. Raises BenchFailure without any."""
    try:
        return msgspec.json.decode((folder / _LATEST).read_bytes(), type=list[Row])
    except FileNotFoundError as error:
        raise BenchFailure("There are no results yet. Run `make bench` first.") from error
    except msgspec.ValidationError:
        return []


def read_machine(folder: Path = FOLDER) -> Machine:
    """Return what the last run was measured on. Raises BenchFailure."""
    try:
        return msgspec.json.decode((folder / _MACHINE).read_bytes(), type=Machine)
    except (FileNotFoundError, msgspec.ValidationError) as error:
        raise BenchFailure("What the results were measured on is not known. Run `make bench` again.") from error


def _processor(file: Path) -> str:
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.machine()


def _write(file: Path, what: object) -> None:
    file.write_bytes(msgspec.json.format(msgspec.json.encode(what), indent=2) + b"\n")
