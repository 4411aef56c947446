"""What was measured, as one row of the results: medians, their ratio, and the target where there is one."""

from pathlib import Path
from statistics import median

import msgspec


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison. `target` and `met` are null where no target is set yet."""

    name: str
    ours: float
    peer: float
    ratio: float
    target: float | None
    met: bool | None
    unit: str


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """The repeats of one comparison, ours and the peer's in turn."""

    name: str
    unit: str
    ours: tuple[float, ...]
    peer: tuple[float, ...]
    target: float | None = None

    @property
    def row(self) -> Row:
        """The medians and what they mean."""
        ours, peer = median(self.ours), median(self.peer)
        ratio = ours / peer
        return Row(
            name=self.name,
            ours=round(ours, 1),
            peer=round(peer, 1),
            ratio=round(ratio, 4),
            target=self.target,
            met=None if self.target is None else ratio >= self.target,
            unit=self.unit,
        )


def spread(repeats: tuple[float, ...]) -> float:
    """Return how far apart the repeats are, as a part of their median."""
    return (max(repeats) - min(repeats)) / median(repeats)


def write(rows: list[Row], file: Path) -> None:
    """Write the rows as JSON, in place of the last ones."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2) + b"\n")
