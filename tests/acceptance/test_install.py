"""What `pip install ./sdk` alone gives, in a virtual environment that holds nothing else."""

import os
import subprocess
import sys
import venv
from pathlib import Path

SDK = Path(__file__).parents[2] / "sdk"
PROGRAM = """
from twiceshy import Guard, SetupError
try:
    Guard()
except SetupError as error:
    print(error)
print(Guard("http://127.0.0.1:8700", spool=None).url)
"""


def run(folder: Path, *command: str) -> str:
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TWICESHY_", "PYTHON"))}
    done = subprocess.run(
        [str(folder / "bin" / "python"), *command], cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_sdk_alone_speaks_to_a_service_and_names_what_an_embedded_guard_lacks(tmp_path: Path) -> None:
    folder = tmp_path / "empty"
    venv.create(folder, with_pip=True, symlinks=sys.platform != "win32")
    run(folder, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(SDK))
    said, url = run(folder, "-c", PROGRAM).splitlines()
    assert said.startswith("An embedded guard needs the server, which is not installed here")
    assert "pip install 'twiceshy[server]'" in said
    assert "pip install ./sdk ." in said
    assert url == "http://127.0.0.1:8700"
