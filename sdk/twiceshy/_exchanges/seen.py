"""How many requests a guarded tool sends, as our own adapters see them.

Where one passes through two of them, the outer one counts. An error of a tool is that of its one request only where
it is what that request met: the same error, or the same status.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from twiceshy._effect import SeenRequest, surrounding_effect

_within: ContextVar[bool] = ContextVar("twiceshy_request", default=False)


@contextmanager
def one_request(method: str, *, may_be_several: bool = False) -> Iterator[SeenRequest]:
    """Count what is sent in this block as one request of the effect around it, if there is one."""
    seen = SeenRequest(method.upper())
    effect = surrounding_effect()
    if effect is None or _within.get():
        yield seen
        return
    effect.requests.append(seen)
    if may_be_several:
        effect.requests.append(seen)
    token = _within.set(True)
    try:
        yield seen
    except BaseException as error:
        seen.error = error
        raise
    finally:
        _within.reset(token)
