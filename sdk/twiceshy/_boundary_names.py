"""Names of boundaries, scopes and children: what the service would refuse is refused, or replaced, before it is kept.

One event with a name that the service does not take would hold back all the log behind it.
"""

import re
from typing import Final

import msgspec

from twiceshy._wording import in_words
from twiceshy.exceptions import SetupError
from twiceshy_contract.events import BoundaryName

_LONGEST: Final = 200
_NO_NAME: Final = re.compile(r"[\x00-\x1f\x7f/\ud800-\udfff]|^\.{1,2}$|^$")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


def required_name(what: str, name: object) -> str:
    """Return a name that the code chose. Raises SetupError for what is none."""
    try:
        taken: str = msgspec.convert(name, BoundaryName)
    except msgspec.ValidationError as error:
        raise SetupError(f"{what} {name!r} cannot be taken: {in_words(error)}. Choose another name.") from error
    if _SURROGATE.search(taken):
        raise SetupError(f"{what} {name!r} cannot be taken: it has half of a surrogate pair. Choose another name.")
    return taken


def required_boundary_name(name: object) -> str:
    """Return the name of a boundary of the code's own, which may be long, and may be a path. Raises SetupError."""
    return required_name("The boundary", name[:_LONGEST].replace("/", "|") if isinstance(name, str) else name)


def told_name(name: str) -> str:
    """Return a name that others chose, such as a model's, with `|` in the place of what no name has."""
    return _NO_NAME.sub("|", name[:_LONGEST])
