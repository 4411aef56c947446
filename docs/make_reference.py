"""Write the reference pages that are printed from the code: `python docs/make_reference.py`. A test holds them."""

from pathlib import Path

from guard.core.picture import diagram, rows
from guard.service.measures import Measures
from twiceshy_contract.problems import PROBLEMS
from twiceshy_contract.variables import VARIABLES

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
- **settled**: the tool's `settle_seconds` (10 where nothing is said) have passed since the end of every unresolved
  attempt, judged at the moment of `as_of` where the resolution names one.
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


def settings() -> str:
    """Return the page of the settings."""
    return f"""# Settings

Printed from `twiceshy_contract/variables.py`. A variable that begins with `TWICESHY_` and is none of these is refused,
with the nearest name: a slip in a setting is never silent.

## The SDK and its commands

{_variables("sdk", "in code, or as an option")}

## `twiceshy serve` and `twiceshy migrate`

{_variables("server", "option")}

What is said in code or as an option comes before the environment. A SQLite file is made and brought up to date by
`serve` and by an [embedded guard](../how-to/embedded.md); PostgreSQL is brought up to date by `twiceshy migrate`.
"""


def observability() -> str:
    """Return the page of the log line and the meters."""
    return f"""# What an operator sees

## One line a request

`twiceshy serve` writes one JSON line to standard error for every request (`--log problems`: only what went wrong on our
side). Its keys:

{_facts()}

Arguments and results never stand in a line. The SDK sends an id with every request and names it where no answer came.

## Meters

`GET /metrics` is Prometheus' text format; with tokens it takes one, as `/v1` does. A tool that nobody declared is
counted under `tool="(undeclared)"`, so that names which callers make up do not become time series.

{_meters()}
"""


def _facts() -> str:
    facts = {
        "`event`": "`request`",
        "`request_id`": "what the client sent as `X-Request-Id`, else drawn here; it comes back in that header and in "
        "`request_id` of a problem, and stands in every other line that the request causes",
        "`method`, `path`, `status`, `milliseconds`": "what was asked, how it was answered, and after how long; "
        "status 499: the client had gone",
        "`said`": "the decision (`execute`, `replay`), the state after a report, or the code of the problem",
        "`tool`, `run`": "of a begin",
        "`batch`, `answers`": "of a batch: how many requests, and how many of each answer",
        "`level`, `timestamp`": "`info`, or `warning` from status 500 on; UTC",
    }
    return "\n".join(["| key | |", "|---|---|", *(f"| {keys} | {meaning} |" for keys, meaning in facts.items())])


def _meters() -> str:
    lines = ["| meter | kind | labels | |", "|---|---|---|---|"]
    for meter in Measures().meters():
        labels = ", ".join(f"`{label}`" for label in meter.labels)
        lines.append(f"| `{meter.name}` | {meter.kind} | {labels} | {meter.meaning} |")
    return "\n".join(lines)


def _variables(reader: str, option: str) -> str:
    lines = [f"| environment | {option} | default | |", "|---|---|---|---|"]
    for variable in VARIABLES:
        if variable.read_by == reader:
            default = f"`{variable.default}`" if variable.default and " " not in variable.default else variable.default
            options = ", ".join(f"`{option}`" for option in variable.option.split(", "))
            lines.append(f"| `{variable.name}` | {options} | {default or 'none'} | {variable.meaning} |")
    return "\n".join(lines)


PAGES = {"lifecycle.md": lifecycle, "problems.md": problems, "settings.md": settings, "observability.md": observability}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (_HERE / name).write_text(page(), encoding="utf-8")
