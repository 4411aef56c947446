"""What is said of a run when it is named: whether it is recorded, and what it is about."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec

from twiceshy._encode import encode
from twiceshy._fork import ForkOptions
from twiceshy._wording import in_words
from twiceshy.exceptions import SetupError
from twiceshy_contract.names import RunName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import RunAbout
from twiceshy_contract.variables import did_you_mean

RECORD_VARIABLE: Final = "TWICESHY_RECORD"
MAX_INPUT_BYTES: Final = 256 * 2**10
_SAID: Final = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}
_TEXTS: Final = ("workflow", "agent", "agent_version", "prompt_version", "model", "reference")
_ABOUT: Final = (*_TEXTS, "temperature", "tags", "input")
_OF_RUN: Final = ("finish", "requester", "record", "parent")


class RunOptions(ForkOptions, total=False):
    """The keyword options of `guard.run` beside its first ones: what the run is about, and those of a fork.

    `workflow` is the type of task, `agent` who does it; `agent_version`, `prompt_version`, `model` and `temperature`
    say in which form; `tags` are free. `reference` is the business's own name of what it is about, such as a contract.
    `input` is what the agent is given, and `run.input` gives it back. `parent` is the run that started it.

    With `resume` a recorded run goes on where it was stopped: what its log has is served as it was delivered, and what
    it has no outcome for is asked for again.
    """

    workflow: str
    agent: str
    agent_version: str
    prompt_version: str
    model: str
    temperature: float
    tags: Sequence[str]
    reference: str
    input: object
    parent: str
    resume: bool


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a run, taken apart; `input` is UNSET where none was given."""

    about: RunAbout | None = None
    parent: str | None = None
    input: object = msgspec.UNSET
    fork: ForkOptions = {}
    resume: bool = False


NOTHING: Final = Said()


def taken(name: str, options: Mapping[str, Any]) -> Said:
    """Check the options of a run. Raises SetupError with the place, TypeError for an unknown one."""
    known = (*_OF_RUN, *RunOptions.__annotations__, *ForkOptions.__annotations__)
    for option in options:
        if option not in known:
            raise TypeError(f"Guard.run takes no argument {option!r}{did_you_mean(option, known)}")
    fork = {option: value for option, value in options.items() if option not in (*_ABOUT, "parent", "resume")}
    parent = options.get("parent")
    return Said(
        about=_about(name, {option: value for option, value in options.items() if option in _ABOUT}),
        parent=None if parent is None else _parent(name, parent),
        input=options.get("input", msgspec.UNSET),
        resume=_resumes(name, options),
        fork=cast("ForkOptions", fork),
    )


def _resumes(name: str, options: Mapping[str, Any]) -> bool:
    resume = options.get("resume", False)
    if not isinstance(resume, bool):
        raise SetupError(f"The run {name!r}: resume is {resume!r}; it is True or False.")
    if resume and "at" in options:
        raise SetupError(f"The run {name!r}: a fork by its step is not recorded, so that it cannot be resumed.")
    return resume


def records(said: object, *, otherwise: bool | None = None) -> bool:
    """Say whether runs are recorded: as it is said, else as it holds otherwise, else by the environment.

    Raises SetupError.
    """
    if isinstance(said, bool):
        return said
    if said is not None:
        raise SetupError(f"record is {said!r}; it is True, False, or None for what holds otherwise.")
    if otherwise is not None:
        return otherwise
    text = os.environ.get(RECORD_VARIABLE, "").strip().lower()
    if text and text not in _SAID:
        raise SetupError(f"{RECORD_VARIABLE} is {text!r}{did_you_mean(text, _SAID)} Set it to 1 or 0.")
    return bool(text) and _SAID[text]


def _about(name: str, said: Mapping[str, Any]) -> RunAbout | None:
    given = {option: value for option, value in said.items() if value is not None or option == "input"}
    if not given:
        return None
    tags = given.get("tags")
    if tags is not None:
        if not isinstance(tags, (list, tuple)):
            raise SetupError(f"The run {name!r}: tags is {tags!r}; it is a list of texts.")
        given["tags"] = list(tags)
    if "input" in given:
        given["input"] = _written(name, given["input"])
    try:
        return msgspec.convert(given, RunAbout)
    except msgspec.ValidationError as error:
        raise SetupError(f"The run {name!r}: {in_words(error)}. Correct what is said of it.") from error


def _written(name: str, value: object) -> object:
    try:
        written = encode(value, depth=1)
    except Refusal as refusal:
        place = refusal.under("input")
        raise SetupError(f"The run {name!r}: its input cannot be recorded {place}. Correct it.") from refusal
    size = len(msgspec.json.encode(written))
    if size > MAX_INPUT_BYTES:
        raise SetupError(
            f"The run {name!r}: its input takes {size} bytes as JSON, and {MAX_INPUT_BYTES} are the most. Keep large "
            "contents elsewhere and give a reference."
        )
    return written


def _parent(name: str, parent: object) -> str:
    try:
        said: str = msgspec.convert(parent, RunName)
    except msgspec.ValidationError as error:
        raise SetupError(f"The run {name!r}: {in_words(error, 'parent')}. Name the run that started it.") from error
    return said
