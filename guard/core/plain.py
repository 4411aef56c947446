"""Tagged JSON as plain JSON, for receivers who know no tags.

A decimal, a date-time, bytes and a UUID become the text that stands in their tag, and so does a whole number beyond
what a double holds: a reader in any language then sees all digits.
"""

from twiceshy_contract.canonical import is_tag
from twiceshy_contract.refusals import JsonValue


def plain(value: JsonValue) -> JsonValue:
    """Return tagged JSON without its tags."""
    match value:
        case dict() if is_tag(value):
            return next(iter(value.values()))
        case dict():
            return {name[1:] if name.startswith("$$") else name: plain(member) for name, member in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
