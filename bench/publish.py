"""`python -m bench.publish`: write the page and the charts of the documents from the last results."""

import sys
from pathlib import Path
from typing import Final

from bench.charts import latency, throughput
from bench.curve_chart import curves
from bench.curves import read as read_curves
from bench.failure import BenchFailure
from bench.load import SETTLED_KEYS
from bench.page import page
from bench.percentile_chart import distributions
from bench.results import read, read_machine

_DOCUMENTS: Final = Path(__file__).parent.parent / "docs"


def publish(documents: Path = _DOCUMENTS) -> None:
    """Write them. Raises BenchFailure where there are no results."""
    rows = read()
    if not rows:
        raise BenchFailure("The results are of an older form, or empty. Run `make bench` first.")
    assets = documents / "assets"
    assets.mkdir(exist_ok=True)
    lines = read_curves()
    written = {
        assets / "bench-throughput.svg": throughput(rows),
        assets / "bench-latency.svg": latency(rows),
        assets / "bench-distributions.svg": distributions(rows),
        documents / "reference" / "benchmarks.md": page(rows, lines, read_machine(), SETTLED_KEYS),
    }
    if lines:
        written[assets / "bench-curves.svg"] = curves(lines)
    for file, text in written.items():
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        publish()
    except BenchFailure as failure:
        sys.exit(str(failure))
