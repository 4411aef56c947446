"""The matrix: what a second begin hears, by the tool's class, how the first ended, and what the tool says of repeats.

Every cell of the table is played over HTTP, in a run of its own. The first begin's lease is ended as its row says; then
comes the second begin:

- same: the same arguments, by another attempt
- known: as same, after the outcome was delivered
- words: other content, by another attempt
- other: another identity under the same step, by another attempt; all else is named by its arguments
- token: the same arguments, by the attempt of the first

What it may hear:

- next: execute, the next generation
- again: execute, the same generation, the arguments that come, a new downstream key
- anew: as again, under the same downstream key, which nobody has used
- rerun: execute, the same generation, the recorded arguments, the same downstream key
- mine: execute, the lease of the first again
- replay: the recorded result; drift: the same, with the content that differs; error: the recorded error
- ask: a person must approve the next generation
- doubt, changed, lost: outcome-in-doubt, arguments-changed, lease-lost
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import product
from pathlib import Path
from uuid import uuid4

from tests.acceptance.machine.clock import Clock, PostgresClock, SqliteClock
from tests.service import Reply, ServiceProcess

TABLE = """
class        failure      repeat |  same    known   words   other    token
side_effect  commit       replay |  replay  replay  drift   changed  replay
side_effect  commit       allow  |  next    next    next    changed  replay
side_effect  commit       ask    |  ask     ask     ask     changed  replay
windowed     commit       replay |  replay  replay  drift   changed  replay
windowed     commit       allow  |  next    next    next    changed  replay
windowed     commit       ask    |  ask     ask     ask     changed  replay
idempotent   commit       replay |  replay  next    drift   changed  replay
idempotent   commit       allow  |  next    next    next    changed  replay
idempotent   commit       ask    |  ask     ask     ask     changed  replay

*            not_applied  *      |  again   again   again   changed  lost

side_effect  rejected     *      |  error   error   next    next     error
windowed     rejected     *      |  error   error   next    next     error
idempotent   rejected     *      |  error   next    next    next     error

side_effect  unknown      *      |  doubt   doubt   doubt   changed  lost
windowed     unknown      *      |  rerun   rerun   rerun   changed  lost
idempotent   unknown      *      |  rerun   rerun   rerun   changed  lost

side_effect  lapse        *      |  doubt   doubt   doubt   changed  mine
windowed     lapse        *      |  rerun   rerun   rerun   changed  mine
idempotent   lapse        *      |  rerun   rerun   rerun   changed  mine

*            release      *      |  anew    anew    anew    changed  lost
"""
CLASSES: dict[str, dict[str, object]] = {
    "side_effect": {"class": "side_effect"},
    "windowed": {"class": "side_effect", "provider_window_seconds": 3600},
    "idempotent": {"class": "idempotent"},
}
FAILURES = ("commit", "not_applied", "rejected", "unknown", "lapse", "release")
REPEATS = ("replay", "allow", "ask")
BEGINS = ("same", "known", "words", "other", "token")
Cell = tuple[str, str, str, str]


def test_every_cell_of_the_matrix_is_as_the_table_says(
    service: ServiceProcess, database_url: str, tmp_path: Path
) -> None:
    for kind, repeat in product(CLASSES, REPEATS):
        roles = {"identity": ["/to"], "content": ["/note"]}
        declared = {"arguments": roles, "repeat": repeat, "backoff_seconds": 0, "settle_seconds": 0} | CLASSES[kind]
        assert service.ask("PUT", f"/v1/tools/{kind}-{repeat}", declared).status == 200
    cells = list(product(CLASSES, FAILURES, REPEATS, BEGINS))
    clock = SqliteClock(tmp_path / "guard.db") if database_url.startswith("sqlite") else PostgresClock(database_url)
    with ThreadPoolExecutor(6) as pool:
        first = dict(zip(cells, pool.map(lambda cell: _first(service, cell), cells), strict=True))
        _let_lapse(clock, [grant for cell, grant in first.items() if cell[1] == "lapse"])
        heard = dict(zip(cells, pool.map(lambda cell: _second(service, cell, first[cell]), cells), strict=True))
    clock.close()
    wrong = [(cell, word) for cell, word in heard.items() if word != _expected(cell)]
    differing = [f"{' '.join(cell)}: {word}, not {_expected(cell)}" for cell, word in wrong]
    assert not differing, "\n".join(differing)
    assert len(cells) == 270


def _first(service: ServiceProcess, cell: Cell) -> Reply:
    """Begin, and end the lease as the cell says; return the grant."""
    kind, failure, repeat, begin = cell
    tool, asked, named = f"{kind}-{repeat}", {"to": "bob", "note": "thanks"}, _name(begin)
    grant = service.begin("-".join(cell), tool, asked, **named)
    assert grant.status == 201, grant.body
    match failure:
        case "commit":
            ended = service.report("commit", grant, result={"id": 7})
        case "release":
            body = {"tool": tool, "arguments": asked, "run": "-".join(cell), "attempt": grant.body["attempt"]}
            ended = service.ask("POST", "/v1/effects/release", body | named)
        case "lapse":
            return grant
        case _:
            ended = service.report("fail", grant, kind=failure, error={"type": "Declined", "message": "no"})
    assert ended.status == 200, ended.body
    return grant


def _name(begin: str) -> dict[str, object]:
    """Return what names the call besides its arguments."""
    return {"step": "s"} if begin == "other" else {}


def _let_lapse(clock: Clock, grants: list[Reply]) -> None:
    """Let the lease of each run out."""
    clock.move([grant.body["key"] for grant in grants], timedelta(seconds=31))


def _second(service: ServiceProcess, cell: Cell, first: Reply) -> str:
    """Begin once more, and say what was heard."""
    kind, _, repeat, begin = cell
    to, note = "eve" if begin == "other" else "bob", "many thanks" if begin == "words" else "thanks"
    delivered = [first.body["key"]] if begin == "known" else []
    attempt = first.body["attempt"] if begin == "token" else str(uuid4())
    asked = {"to": to, "note": note}
    said = service.begin(
        "-".join(cell), f"{kind}-{repeat}", asked, delivered=delivered, attempt=attempt, **_name(begin)
    )
    return _word(first.body, said)


def _word(first: dict[str, object], said: Reply) -> str:
    """Return the table's word for an answer; one that the table has no word for is shown."""
    body = said.body
    if said.status >= 400:
        words = {"outcome-in-doubt": "doubt", "arguments-changed": "changed", "lease-lost": "lost"}
        return words.get(said.code, said.code)
    is_first = body["key"] == first["key"]
    match body["decision"], body["generation"]:
        case "replay", 1 if is_first:
            return "error" if "error" in body["outcome"] else "replay" if body["drift"] is None else "drift"
        case "await_approval", 2 if not is_first:
            return "ask"
        case "execute", 2 if not is_first and body["arguments"] is None:
            return "next"
        case "execute", 1 if is_first:
            return _word_of_grant(first, body)
        case _:
            return str(body)


def _word_of_grant(first: dict[str, object], body: dict[str, object]) -> str:
    """Return the table's word for a lease of the first instance: its fence, its arguments, whose downstream key."""
    recorded = {"to": "bob", "note": "thanks"}
    match body["fence"], body["arguments"], body["downstream_key"] == first["downstream_key"]:
        case 1, None, True:
            return "mine"
        case 2, None, False:
            return "again"
        case 2, None, True:
            return "anew"
        case 2, arguments, True if arguments == recorded:
            return "rerun"
        case _:
            return str(body)


def _expected(cell: Cell) -> str:
    """Look the cell up; exactly one row speaks of it."""
    *named, begin = cell
    head, *rows = (line.replace("|", " ").split() for line in TABLE.strip().splitlines() if line)
    fitting = [row for row in rows if all(said in ("*", name) for said, name in zip(row, named, strict=False))]
    assert len(fitting) == 1, (cell, fitting)
    return fitting[0][head.index(begin)]


def test_the_table_has_no_row_that_speaks_of_nothing() -> None:
    rows = [line.replace("|", " ").split()[:3] for line in TABLE.strip().splitlines()[1:] if line]
    known = ({*CLASSES, "*"}, {*FAILURES}, {*REPEATS, "*"})
    assert all(said in names for row in rows for said, names in zip(row, known, strict=True))
