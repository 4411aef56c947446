"""Wire structs of how something ended, wherever that is told: of an effect, or of an event."""

from typing import Annotated

import msgspec

TypeName = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
"""The qualified name of a Python type as the agent knows it, such as `shop.Hold` or `list[shop.Hold]`."""


class ErrorOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recorded error: the exception's type name, its message, and data that the tool gave."""

    type: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    message: str
    data: object = None
