"""Doubt that stands in the way of a saga: where the doubtful tool has a probe in this process, it is asked in line."""

from typing import Final

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._environment import Environment
from twiceshy._probing import Early, Found, Question, Settled, Unknown, find_out
from twiceshy._steps import Flow
from twiceshy._transports.base import Request
from twiceshy_contract.names import PublicState

_DOUBT: Final = "in_doubt"


class _Step(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a saga, as far as it matters here."""

    key: str
    tool: str
    effect: PublicState | None
    compensation: str | None
    compensation_key: str | None
    compensation_effect: PublicState | None

    @property
    def is_being_taken_back(self) -> bool:
        """Whether what takes it back is in doubt."""
        return self.compensation_effect == _DOUBT

    @property
    def doubtful(self) -> tuple[str | None, str | None]:
        """The tool and the key of its effect that is in doubt: what takes it back, else the step itself."""
        if self.is_being_taken_back:
            return self.compensation, self.compensation_key
        return (self.tool, self.key) if self.effect == _DOUBT else (None, None)


class _Seen(msgspec.Struct, frozen=True):
    """A saga with its steps."""

    steps: tuple[_Step, ...]


class Probed(msgspec.Struct, frozen=True, kw_only=True):
    """The tools whose calls are known now to have taken a step back, and why nobody knows more than before, if so."""

    taken_back: tuple[str, ...] = ()
    unproven: str = ""


_NOBODY_ASKED: Final = Probed()
_SEEN: Final = msgspec.json.Decoder(_Seen)


def find_out_step(environment: Environment, path: str, step: str, *, deadline: float, may_await: bool) -> Flow[Probed]:
    """Ask the probe of what is in doubt of the step, if one can be asked, and settle what it proves.

    `path` is that of the saga, `step` the key of its step. Without an event loop no `async def` probe is asked.
    """
    until = environment.clock() + environment.limits.unavailable_seconds
    answer = yield from ask(environment, Request(method="GET", path=path), _SEEN, until=until)
    if not isinstance(answer, Answered):
        return _NOBODY_ASKED
    for seen in answer.value.steps:
        tool, key = seen.doubtful
        probe = environment.probes.get(tool or "")
        if seen.key == step and tool is not None and key is not None and probe is not None:
            if probe.is_async and not may_await:
                return Probed(unproven="; its probe is an `async def` function, which only an event loop can ask")
            question = Question(spec=environment.tools[tool].spec, key=key)
            found = yield from find_out(environment, question, deadline=deadline)
            return _probed(seen, tool, found)
    return _NOBODY_ASKED


def _probed(seen: _Step, tool: str, found: Found) -> Probed:
    match found:
        case Settled(is_final=is_final):
            return Probed(taken_back=(tool,) if is_final and seen.is_being_taken_back else ())
        case Early(reason=reason) | Unknown(reason=reason):
            return Probed(unproven=f"; {reason}")
