"""Which destinations may have something to send: found along the indexes of a queue, from destination to destination.

The work grows with how many destinations have messages, not with how many there are. What was delivered behind an old
snapshot is read too: ask for this where there is little to do, not between two turns.
"""

from typing import Final

_FREE: Final = "state = 1 AND lane IS NULL"


def _walk(name: str, where: str, order: str) -> str:
    """Return the walk along an index that selects each destination once."""
    one = f"SELECT o.destination_id FROM outbox o WHERE {where} AND o.destination_id"  # noqa: S608
    ordered = f"ORDER BY o.destination_id, {order} LIMIT 1"
    following = f"SELECT ({one} > {name}.id {ordered}) FROM {name} WHERE {name}.id IS NOT NULL"  # noqa: S608
    return f"{name}(id) AS (SELECT ({one} > 0 {ordered}) UNION ALL {following})"


def due_statement(at: str) -> str:
    """Return the statement that selects destinations with a free message that is due, or with any in a lane."""
    walks = ", ".join((_walk("free", _FREE, "o.due_at, o.id"), _walk("laned", "in_lane", "o.lane, o.id")))
    is_due = f"SELECT 1 FROM outbox o WHERE {_FREE} AND o.destination_id = free.id AND o.due_at <= {at}"  # noqa: S608
    return f"""
    WITH RECURSIVE {walks}
    SELECT id FROM free WHERE id IS NOT NULL AND EXISTS ({is_due})
    UNION SELECT id FROM laned WHERE id IS NOT NULL"""  # noqa: S608
