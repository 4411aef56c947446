"""Which one outcome, had it been another, would have changed what a run came to: each is tried alone."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Unpack

import msgspec

from twiceshy._encode import encode_result
from twiceshy._in_brief import brief
from twiceshy._overrides import Override
from twiceshy._recording import Recording
from twiceshy._replay import replay, replay_async
from twiceshy._replay_options import ReplayOptions
from twiceshy._replayed import Replayed
from twiceshy._said import said
from twiceshy.exceptions import SetupError

Outcome = Callable[[Replayed], Any]
Progress = Callable[[int, int], None]


class BisectOptions(ReplayOptions, total=False):
    """The keyword options of a bisection: those of a replay, and how it is judged.

    `outcome` makes of each replay what is compared (else what the agent returned or raised). `progress` is called with
    how many candidates were tried, and how many there are.
    """

    outcome: Outcome | None
    progress: Progress | None


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """One candidate, what came of it, and whether it makes that another outcome than the baseline's.

    One that is not used was given to no call: nothing is known of what it would change.
    """

    override: Override
    outcome: Any
    flips: bool
    is_used: bool
    replayed: Replayed

    @property
    def verdict(self) -> str:
        """Say it in a word or two."""
        if not self.is_used:
            return "not used"
        return "flips" if self.flips else "same"


class Bisected(msgspec.Struct, frozen=True, kw_only=True):
    """What came of each candidate. `baseline` is the outcome without any override."""

    baseline: Any
    trials: tuple[Trial, ...]

    @property
    def flipping(self) -> tuple[Override, ...]:
        """The candidates that change the outcome, in their order."""
        return tuple(trial.override for trial in self.trials if trial.flips)

    def report(self) -> str:
        """Write a line for each candidate."""
        rows = [("", "without an override", _told(self.baseline))]
        rows += [(trial.verdict, str(trial.override), _told(trial.outcome)) for trial in self.trials]
        first, width = (max(len(row[column]) for row in rows) for column in (0, 1))
        return "\n".join(f"{verdict:<{first}}  {what:<{width}}  {outcome}".rstrip() for verdict, what, outcome in rows)

    def to_json(self) -> dict[str, Any]:
        """Return the same for programs, as it can be written as JSON."""
        return {
            "baseline": _written(self.baseline),
            "trials": [
                {
                    "override": str(trial.override),
                    "seq": trial.override.seq,
                    "name": trial.override.name,
                    "occurrence": trial.override.occurrence,
                    "outcome": _written(trial.outcome),
                    "flips": trial.flips,
                    "used": trial.is_used,
                    "divergences": [msgspec.to_builtins(one) for one in trial.replayed.differences],
                }
                for trial in self.trials
            ],
        }


def bisect(
    recording: Recording,
    agent: Callable[..., Any],
    candidates: Sequence[Override],
    **options: Unpack[BisectOptions],
) -> Bisected:
    """Replay a recording with each candidate alone, and say which of them change the outcome.

    The options are those of BisectOptions.
    """
    steps = _Steps(candidates, options)
    for number, replaying in steps:
        steps.take(number, replay(recording, agent, **replaying))
    return steps.bisected()


async def bisect_async(
    recording: Recording,
    agent: Callable[..., Any],
    candidates: Sequence[Override],
    **options: Unpack[BisectOptions],
) -> Bisected:
    """Do the same on the running event loop."""
    steps = _Steps(candidates, options)
    for number, replaying in steps:
        steps.take(number, await replay_async(recording, agent, **replaying))
    return steps.bisected()


class _Steps:
    """The replays of one bisection, the baseline first."""

    def __init__(self, candidates: Sequence[Override], options: BisectOptions) -> None:
        if not candidates:
            raise SetupError("bisect: there are no candidates; give Override(...) objects to try.")
        self._candidates = candidates
        self._outcome: Outcome = options.get("outcome") or _came_to
        self._progress = options.get("progress")
        self._fixed = tuple(options.get("overrides", ()))
        own = ("outcome", "progress", "overrides")
        self._options: Any = {name: value for name, value in options.items() if name not in own}
        if "llm" not in self._options:
            self._options["llm"] = None
        self._baseline: Any = None
        self._trials: list[Trial] = []

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        yield 0, {**self._options, "overrides": self._fixed}
        for number, candidate in enumerate(self._candidates, 1):
            yield number, {**self._options, "overrides": (*self._fixed, candidate)}

    def take(self, number: int, replayed: Replayed) -> None:
        """Judge what came of a replay."""
        outcome = self._outcome(replayed)
        if number == 0:
            if inspect.isawaitable(outcome):
                raise SetupError("bisect: outcome is async; give a plain function of a replay.")
            self._baseline = outcome
        else:
            override = self._candidates[number - 1]
            is_used = all(unused is not override for unused in replayed.unused_overrides)
            flips = is_used and bool(outcome != self._baseline)
            trial = Trial(override=override, outcome=outcome, flips=flips, is_used=is_used, replayed=replayed)
            self._trials.append(trial)
        if self._progress is not None:
            self._progress(number, len(self._candidates))

    def bisected(self) -> Bisected:
        """Return what all of them came to."""
        return Bisected(baseline=self._baseline, trials=tuple(self._trials))


def _came_to(replayed: Replayed) -> Any:
    return replayed.value if replayed.error is None else said(replayed.error)


def _written(outcome: object) -> object:
    try:
        return encode_result(outcome)
    except Exception:  # noqa: BLE001 - an outcome of the user's own may refuse to be written
        return repr(outcome)


def _told(outcome: object) -> str:
    written = _written(outcome)
    return brief(written)
