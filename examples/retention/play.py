"""Tell the story of the call that nobody can reproduce: recorded once, replayed as often as one likes.

All of it after the call is done from the recording in a file, without a service.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from examples.retention import agent
from examples.retention.model import reply
from guard.demo.processes import ChildFailed, interruptible
from twiceshy import Override, Recording, Replayed, bisect, replay
from twiceshy_contract.events import Intent

_ROOT: Final = Path(__file__).parent.parent.parent
_SECONDS: Final = 60.0


def tell(folder: Path) -> None:
    """Tell the story. Raises ChildFailed where it goes otherwise."""
    said = _called(folder, "-m", "examples.retention.agent", RETENTION_COVERAGE="degraded service")
    _say(f'A customer moves away from coverage and wants to cancel. The agent: "{said}" She leaves.')
    said = _called(folder, "-m", "examples.retention.agent", "call-again", RETENTION_COVERAGE="none")
    _say(f'An hour later, the same words to the same agent: "{said}" Nobody can reproduce it. But it was recorded.\n')

    case = folder / "call.jsonl"
    _called(folder, "-m", "twiceshy", "runs", "export", "call-abc123", "-o", str(case))
    with Recording.load(case) as recording:
        _say("1. The replay sees what the agent saw, and does what it did:")
        replayed = replay(recording, agent.talk)
        _expect("the replay is the same", (replayed.is_same, _tools(replayed)[-1]), (True, "offer_loyalty_discount"))
        _say(f'   {" > ".join(_tools(replayed))}\n   "{replayed.value}"\n')

        _say("2. Which of its inputs decides? One is changed at a time, all else stays as recorded:")
        candidates = [
            Override(name="account", result={"customer": "c-17", "since": 2026, "plan": "basic"}),
            Override(name="check_coverage", result={"place": "Glen Etive", "state": "none"}),
        ]
        found = bisect(recording, agent.talk, candidates, llm=reply, answers=_STANDING_IN, mode="retest")
        for line in found.report().splitlines():
            _say(f"   {line}")
        _expect("what flips the outcome", [override.name for override in found.flipping], ["check_coverage"])
        _say(
            "   So the agent's logic is sound, and too trusting: it takes degraded service for an outage that passes.\n"
        )

        _say("3. The prompt is mended, and tested against the call as it was, with the model asked anew:")
        os.environ["RETENTION_PROMPT"] = "v2"
        mended = replay(recording, agent.talk, mode="retest", llm=reply, answers=_STANDING_IN)
        _expect("the mended agent flags", _tools(mended)[-1], "flag_coverage_review")
        _say(f'   {" > ".join(_tools(mended))}\n   "{mended.value}"\n')

    _say("4. The recording and this story's end are a test from now on:")
    (folder / "test_call.py").write_text(_TEST)
    for version, outcome in (("v2", "passes"), ("v1", "fails")):
        ran = _run(folder, ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_call.py"],
                   RETENTION_PROMPT=version)  # fmt: skip
        _expect(f"with prompt {version} the test {outcome}", ran.returncode, 0 if version == "v2" else 1)
        _say(f"   prompt {version}: the test {outcome}")


_STANDING_IN: Final = {
    "flag_coverage_review": {"review": "review of Glen Etive"},
    "offer_loyalty_discount": {"offered": 20},
}
"""What tools that the call never reached are taken to answer."""

_TEST: Final = '''"""Coverage goes to review before anything is offered: the call of 2026-06-15."""

import pytest

from examples.retention import agent
from examples.retention.model import reply


@pytest.mark.twiceshy(
    recording="call.jsonl",
    mode="retest",
    llm=reply,
    answers={"flag_coverage_review": {"review": "review of Glen Etive"}},
)
def test_a_coverage_issue_is_flagged_and_no_discount_offered(replayed):
    call = replayed(agent.talk)
    call.called("flag_coverage_review")
    call.not_called("offer_loyalty_discount")
'''


def main() -> None:
    """Set the stage and tell the story."""
    try:
        with interruptible(), tempfile.TemporaryDirectory(prefix="twiceshy-retention-") as name:
            tell(Path(name).resolve())
    except ChildFailed as error:
        sys.exit(f"The example cannot go on. {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _tools(replayed: Replayed) -> list[str]:
    return [event.name for event in replayed.log.events if isinstance(event, Intent) and event.kind == "tool_call"]


def _called(folder: Path, *command: str, **settings: str) -> str:
    called = _run(folder, list(command), **settings)
    if called.returncode != 0:
        raise ChildFailed(f"`{' '.join(command)}` failed: {called.stderr.strip()}")
    return called.stdout.strip()


def _run(folder: Path, command: list[str], **settings: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TWICESHY_", "PYTEST_"))}
    return subprocess.run(  # noqa: S603 - our own commands
        [sys.executable, *command],
        env=kept | {"PYTHONPATH": str(_ROOT)} | settings,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )


def _expect(what: str, seen: object, wanted: object) -> None:
    if seen != wanted:
        raise ChildFailed(f"This should hold: {what}. It is {seen!r}, and should be {wanted!r}.")


def _say(line: str) -> None:
    print(line, flush=True)
