"""Write the reference pages that are printed from the code: `python docs/make_reference.py`. A test holds them."""

from pathlib import Path

from guard.core.picture import diagram, rows
from twiceshy_contract.problems import PROBLEMS

_HERE = Path(__file__).parent / "reference"


def lifecycle() -> str:
    """Return the page of the state machine."""
    return f"""# The life of an effect

Printed from `guard/core/lifecycle.py`, which is what the service runs.

```mermaid
{diagram()}
```

Doubt belongs to attempts: an attempt is *unresolved* when it was granted a lease and has neither said what became
of it nor been settled by someone who knows. The first row whose state, event and conditions hold decides. An event
without a row is answered `not-possible` and touches nothing; a token or fence that no attempt has is `lease-lost`.

{rows()}

What the conditions mean:

- **own lease**: the token is the latest attempt's, which has not ended.
- **token ended**: any other token of this effect.
- **another unresolved**: another attempt of the effect is unresolved.
- **harmless anyway**: the tool is `idempotent` and another attempt is unresolved.
- **settled**: the settle time (10 s) has passed since the end of every unresolved attempt,
  judged at the moment of `as_of` where the resolution names one.
- **re-run harmless**: the tool is `idempotent`, or a lease and the settle time still fit into its provider's window.
- **fence moved**: the effect has another fence than the one that was looked at.
"""


def problems() -> str:
    """Return the page of the problems."""
    lines = [
        "# Problems",
        "",
        "Every refusal is `application/problem+json` (RFC 9457) with one of these types. `errors` and `paths` name",
        "places in the request, never values.",
        "",
        "| type | status | what happened | what to do |",
        "|---|---|---|---|",
    ]
    for code, kind in sorted(PROBLEMS.items()):
        lines.append(f"| `/problems/{code}` | {kind.status} | {kind.title}. | {kind.remedy} |")
    return "\n".join(lines) + "\n"


PAGES = {"lifecycle.md": lifecycle, "problems.md": problems}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (_HERE / name).write_text(page(), encoding="utf-8")
