"""The table of the state machine, drawn: what the documents show is printed from here."""

from collections import defaultdict

from guard.core.lifecycle import TABLE, Row


def diagram(table: tuple[Row, ...] = TABLE) -> str:
    """Draw the moves between states as a Mermaid state diagram; events that leave the state are in the table."""
    moves: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in table:
        if row.source != row.target and row.event not in moves[row.source, row.target]:
            moves[row.source, row.target].append(row.event)
    lines = ["stateDiagram-v2"]
    for (source, target), events in moves.items():
        start = "[*]" if source == "absent" else source
        lines.append(f"    {start} --> {target}: {', '.join(events)}")
    lines += ["    succeeded --> [*]", "    failed --> [*]"]
    return "\n".join(lines)


def rows(table: tuple[Row, ...] = TABLE) -> str:
    """Write the table in Markdown, row by row in the order in which they are tried."""
    lines = ["| from | event | when | to | what happens | answer |", "|---|---|---|---|---|---|"]
    for row in table:
        when = " and ".join(row.when) or "always"
        source = "(none)" if row.source == "absent" else row.source
        lines.append(f"| {source} | {row.event} | {when} | {row.target} | {row.act} | {row.verdict} |")
    return "\n".join(lines)
