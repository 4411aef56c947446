"""What the registry redacts of a tool is asked for before the first call of it is written into a run's log.

Where the registry gives no answer, what the code redacts is left out, and the service leaves out the rest when it is
sent. Nobody overtakes a call that asks on an event loop: calls of one tool enter the log in their order.
"""

import asyncio
import weakref
from typing import Final

from twiceshy._answers import DeclaredTool
from twiceshy._calls import ToolCall
from twiceshy._declare import known, obeying, told
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._steps import Flow, Raised, Returned

_PATIENCE_SECONDS: Final = 2.0
_asking: Final[weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = weakref.WeakKeyDictionary()


def informed(environment: Environment, call: ToolCall) -> ToolCall:
    """Return a recorded call under the rules that hold, as far as the registry can be asked now."""
    heard = _heard(environment, call)
    if heard is None:
        heard = drive(_asked(environment, call), environment.transport)
    return heard


async def informed_async(environment: Environment, call: ToolCall) -> ToolCall:
    """Do the same on an event loop."""
    heard = _heard(environment, call)
    if heard is None:
        async with _asking.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            heard = _heard(environment, call) or await drive_async(_asked(environment, call), environment.transport)
    return heard


def _heard(environment: Environment, call: ToolCall) -> ToolCall | None:
    """Return the call where nobody need be asked: in a replay nobody is, nor while the registry gives no answer."""
    if call.writer is None:
        return call
    held = known(environment, call.spec, environment.credential_of(call.run))
    if held is not None:
        return obeying(call, held)
    return call if environment.clock() < environment.reads_unasked_until else None


def _asked(environment: Environment, call: ToolCall) -> Flow[Returned | Raised]:
    until = environment.clock() + min(_PATIENCE_SECONDS, environment.limits.unavailable_seconds)
    credential = environment.credential_of(call.run)
    answer = yield from told(environment, call.spec, until=until, credential=credential)
    return Returned(obeying(call, answer.declaration) if isinstance(answer, DeclaredTool) else call)
