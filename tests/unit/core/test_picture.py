"""The picture in the documents is drawn from the table."""

from guard.core.lifecycle import TABLE, Row
from guard.core.picture import diagram, rows

SMALL = (
    Row("absent", "begin", (), "executing", "grant", "granted"),
    Row("executing", "begin", (), "executing", "nothing", "in_progress"),
    Row("executing", "deadline", (), "in_doubt", "doubt", "done"),
    Row("executing", "unknown", ("by the latest", "unreported"), "in_doubt", "doubt", "done"),
    Row("executing", "unknown", ("by an attempt",), "in_doubt", "doubt", "done"),
)


def test_the_diagram_shows_each_move_once_and_no_event_that_stays() -> None:
    assert diagram(SMALL).splitlines() == [
        "stateDiagram-v2",
        "    [*] --> executing: begin",
        "    executing --> in_doubt: deadline, unknown",
        "    succeeded --> [*]",
        "    failed --> [*]",
    ]


def test_the_table_is_written_row_by_row_in_its_order() -> None:
    assert rows(SMALL[:1] + SMALL[3:4]).splitlines() == [
        "| from | event | when | to | what happens | answer |",
        "|---|---|---|---|---|---|",
        "| (none) | begin | always | executing | grant | granted |",
        "| executing | unknown | by the latest and unreported | in_doubt | doubt | done |",
    ]
    assert len(rows().splitlines()) == len(TABLE) + 2
    assert "    pending --> executing: begin, renew" in diagram().splitlines()
