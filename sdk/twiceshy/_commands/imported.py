"""What an import finds in somebody else's document: tools with declarations, what is wrong, what is worth saying."""

import msgspec

from twiceshy_contract.names import ToolName
from twiceshy_contract.refusals import JsonValue, Step

Place = tuple[Step, ...]


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the document calls it, where it stands, and what is declared of it."""

    name: str
    place: Place
    declaration: dict[str, JsonValue]


class Imported:
    """Gathers what a document holds."""

    def __init__(self) -> None:
        self.tools: list[Named] = []
        self.flaws: list[tuple[Place, str]] = []
        self.remarks: list[tuple[Place, str]] = []

    def add(self, tool: Named) -> None:
        """Take a tool."""
        self.tools.append(tool)

    def flaw(self, place: Place, reason: str) -> None:
        """Note what is wrong: nothing will be imported."""
        self.flaws.append((place, reason))

    def remark(self, place: Place, what: str) -> None:
        """Note what is worth saying."""
        self.remarks.append((place, what))

    def named(self, prefix: str) -> dict[str, Named]:
        """Return the tools by the names that they have here: with the prefix, and each slash as a dot."""
        named: dict[str, Named] = {}
        for tool in self.tools:
            name = legal(prefix + tool.name)
            if not _is_legal(name):
                self.flaw(tool.place, f"{name!r} cannot be a tool's name: that has 1 to 200 characters, no controls")
            elif name in named:
                self.flaw(tool.place, f"two tools would be called {name!r}")
            named[name] = tool
        return named


def legal(name: str) -> str:
    """Return a name without slashes, which no tool's name may have: each becomes a dot."""
    return name.replace("/", ".")


def _is_legal(name: str) -> bool:
    try:
        msgspec.convert(name, ToolName)
    except msgspec.ValidationError:
        return False
    return True
