"""Wire structs of contention: the effects that agents lately waited for most."""

from typing import Literal

import msgspec

from twiceshy_contract.wire import EffectKey


class ContendedView(msgspec.Struct, frozen=True, kw_only=True):
    """An effect, and how many begins found another attempt's lease on it within the last minutes."""

    key: EffectKey
    tool: str
    begins: int


class ContentionView(msgspec.Struct, frozen=True, kw_only=True):
    """Effects that begins found under another attempt's lease within the last `minutes`, most first.

    They were counted on all `replicas`, through Redis, or in the one `process` that answers, where there is no Redis or
    it is not reached.
    """

    counted_in: Literal["replicas", "process"]
    minutes: int
    items: tuple[ContendedView, ...]
