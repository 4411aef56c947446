"""A run that is a fork: what may be said of it, and how it is made before its first call."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, get_args
from urllib.parse import quote

import msgspec
from msgspec.structs import replace

from twiceshy._ask import Answered, ask
from twiceshy._environment import Environment
from twiceshy._override_digest import digest_of
from twiceshy._overrides import Override
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow, Raised, Returned
from twiceshy._transports.base import Request
from twiceshy._wording import in_words
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused, SetupError
from twiceshy_contract.forks import ForkRequest, LiveTerms, Reads
from twiceshy_contract.names import RunName
from twiceshy_contract.problems import Problem
from twiceshy_contract.variables import did_you_mean


class _Made(msgspec.Struct, frozen=True):
    """What the service says of a fork that matters here."""

    credential: str | None = None


_MADE: Final = msgspec.json.Decoder(_Made)


class ForkOptions(TypedDict, total=False):
    """The keyword options that make a run a fork.

    It goes on from step `at` of the run `fork_of`: up to there all is from that run's record, and after it what the
    record still holds. `live` names the tools that may really run where the record has no answer, by name or with a
    condition and a number of calls; a side effect needs an approval as well. With `reads="recorded"` not even a call
    that only reads runs.

    With `at_event` instead of `at`, the fork is of a recorded run and is recorded too: the code is served what the
    parent's log has before that event, and from there on models, time and chance are asked again. `overrides` put
    other outcomes in the place of recorded ones.
    """

    fork_of: str
    at: int
    at_event: int
    overrides: Sequence[Override]
    live: Sequence[str | LiveTerms]
    reads: Reads


_OPTIONS: Final = ("finish", "requester", *ForkOptions.__annotations__)


class Forking(msgspec.Struct, frozen=True):
    """The wish that a run is a fork of another."""

    parent: str
    request: ForkRequest
    at_event: int | None = None
    overrides: tuple[Override, ...] = ()

    def at(self, step: int) -> "Forking":
        """Return the same wish, cut at this step."""
        return replace(self, request=replace(self.request, at=step))


def forking(name: str, options: ForkOptions) -> Forking | None:
    """Return what the options ask for. Raises SetupError."""
    for option in options:
        if option not in _OPTIONS:
            raise TypeError(f"Guard.run takes no argument {option!r}{did_you_mean(option, _OPTIONS)}")
    if not options:
        return None
    if "fork_of" not in options or ("at" in options) == ("at_event" in options):
        raise SetupError(
            f"The run {name!r} is a fork where both are said: fork_of, the run that it goes on from, and where: at (a "
            "step) or at_event (an event of its log)."
        )
    cut, overrides = _cut(name, options)
    reads = options.get("reads", "live")
    if reads not in get_args(Reads):
        hint = did_you_mean(str(reads), get_args(Reads))
        raise SetupError(f"The fork {name!r}: reads is {reads!r}{hint} The choice is 'live', 'recorded'.")
    live = [_live(name, tool) for tool in _listed(name, options.get("live", ()))]
    said: dict[str, object] = {"fork": name, "at": options.get("at", 0), "reads": reads, "live": live}
    said |= {"event": cut if cut and cut > 0 else None, "overrides": digest_of(overrides)}
    try:
        parent: str = msgspec.convert(options["fork_of"], RunName)
    except msgspec.ValidationError as error:
        raise SetupError(f"The fork {name!r}: {in_words(error, 'fork_of')}. Correct its terms.") from error
    try:
        return Forking(parent, msgspec.convert(msgspec.to_builtins(said), ForkRequest), cut, overrides)
    except msgspec.ValidationError as error:
        raise SetupError(f"The fork {name!r}: {in_words(error, 'live')}. Correct its terms.") from error
    except TypeError as error:
        raise SetupError(f"The fork {name!r}: its terms are no JSON: {error}. Correct them.") from error


def _cut(name: str, options: ForkOptions) -> tuple[int | None, tuple[Override, ...]]:
    """Return the event at which a log is cut, and the overrides. Raises SetupError."""
    cut: Any = options.get("at_event")
    overrides = tuple(options.get("overrides", ()))
    if "at_event" in options and (isinstance(cut, bool) or not isinstance(cut, int)):
        raise SetupError(f"The fork {name!r}: at_event is {cut!r}; it is the number of an event.")
    if overrides and cut is None:
        raise SetupError(f"The fork {name!r}: overrides are of a fork with at_event=..., whose parent was recorded.")
    for override in overrides:
        if not isinstance(override, Override):
            raise SetupError(f"The fork {name!r}: overrides holds {override!r}; give Override(result=..., seq=...).")
    return cut, overrides


def _listed(name: str, live: object) -> Iterable[object]:
    """Return the tools that may run live. Raises SetupError for a text, whose letters would be taken as tools."""
    if isinstance(live, (list, tuple, set, frozenset)):
        return live
    meant = f", such as [{live!r}]" if isinstance(live, str) else ""
    raise SetupError(f"The fork {name!r}: live is {live!r}; it is a list of tools{meant}.")


def _live(name: str, tool: object) -> object:
    if isinstance(tool, str):
        return {"tool": tool}
    if isinstance(tool, (LiveTerms, Mapping)):
        return tool
    tools_name = getattr(tool, "name", None)  # a guarded tool itself
    meant = f"; say its name, {tools_name!r}" if isinstance(tools_name, str) else ""
    raise SetupError(f"The fork {name!r}: live holds {tool!r}, and not the name of a tool or LiveTerms(...){meant}.")


def forked(environment: Environment, wish: Forking) -> Flow[Returned | Raised]:
    """Make the fork, or find it; whose guard has nothing but a fork's credential is in that fork already."""
    if environment.credential is not None:
        return Returned(None)
    path = f"/v1/runs/{quote(wish.parent, safe='')}/forks"
    request = Request(method="POST", path=path, body=msgspec.json.encode(wish.request))
    until = environment.clock() + environment.limits.unavailable_seconds
    answer: Answered[_Made] | Problem | Unanswered = yield from ask(environment, request, _MADE, until=until)
    what = f"The run {wish.parent} is not forked as {wish.request.fork}"
    reference = EffectRef(tool="fork", run=wish.request.fork)
    match answer:
        case Unanswered(reason):
            raise GuardUnavailable(
                f"{what}: the guard's service at {environment.url} gives no answer ({reason}). Enter "
                "the run again later.",
                effect=reference,
            )
        case Problem():
            raise RequestRefused(f"{what}: {answer.detail}", effect=reference, code=answer.code)
        case Answered(value=made):
            environment.drive_by(wish.request.fork, made.credential)
            return Returned(None)
