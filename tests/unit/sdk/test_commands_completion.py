"""`twiceshy completion`: scripts for the shells, and what they get to complete."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping

import pytest
from click.testing import CliRunner

from tests.unit.sdk.real_server import serving
from tests.unit.sdk.scripted import answered
from twiceshy._commands import main


def completed(line: str, **environment: str) -> list[str]:
    """Ask as bash does, through the environment, what may stand at the end of a line."""
    words = line.split(" ")
    clean: Mapping[str, str] = {name: value for name, value in os.environ.items() if not name.startswith("TWICESHY_")}
    asked = {"_TWICESHY_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-c", "import sys; from twiceshy._commands import main; main(prog_name='twiceshy')"]
    done = subprocess.run(
        command, env={**clean, **asked, **environment}, capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stderr == ""
    return [item.removeprefix("plain,") for item in done.stdout.split()]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("twiceshy eff", ["effects"]),
        ("twiceshy mig", ["migrate"]),
        (
            "twiceshy runs ",
            [
                "answer",
                "diff",
                "export",
                "facts",
                "finish",
                "fork",
                "import",
                "list",
                "pauses",
                "promote",
                "replay",
                "show",
            ],
        ),
        ("twiceshy effects list --state ", ["pending", "executing", "succeeded", "failed", "in_doubt"]),
        ("twiceshy effects list --state in", ["in_doubt"]),
        ("twiceshy effects list --cl", ["--closed"]),
        ("twiceshy serve --po", ["--port"]),
        ("twiceshy completion f", ["fish"]),
    ],
)
def test_commands_options_and_their_values_are_completed(line: str, words: list[str]) -> None:
    assert completed(line) == words


def test_names_of_tools_are_completed_from_the_service_and_silently_not_without_it() -> None:
    with serving(lambda *_: answered(200, {"items": [{"name": "pay"}, {"name": "send_mail"}]})) as url:
        assert completed("twiceshy tools show p", TWICESHY_URL=url) == ["pay"]
        assert completed("twiceshy effects list --tool ", TWICESHY_URL=url) == ["pay", "send_mail"]
    assert completed("twiceshy tools show p", TWICESHY_URL=url) == []


def test_completing_a_command_loads_none() -> None:
    code = (
        "import sys\nfrom click.shell_completion import BashComplete\nfrom twiceshy._commands import main\n"
        "found = BashComplete(main, {}, 'twiceshy', 'X').get_completions([], '')\n"
        "print([item.value for item in found], [name for name in sys.modules if name.startswith('guard')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert "'serve'" in done.stdout
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_gets_a_script_that_asks_twiceshy(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0, result.output
    assert f"_TWICESHY_COMPLETE={shell}_complete" in result.stdout
    assert "_twiceshy_completion" in result.stdout


def test_bash_takes_its_script() -> None:
    bash = shutil.which("bash")
    assert bash is not None
    script = CliRunner().invoke(main, ["completion", "bash"]).stdout
    done = subprocess.run([bash, "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
