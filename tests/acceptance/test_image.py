"""The image: its install steps, run as plain commands in an empty virtual environment, make a service that serves."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
DOCKERFILE: Final = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text())


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", DOCKERFILE, re.MULTILINE)


def pip_steps() -> list[str]:
    steps = [re.sub(r"--mount=\S+ ", "", step).strip() for step in instructions("RUN")]
    return [step for step in steps if step.startswith("pip ")]


def copied(folder: Path) -> None:
    for instruction in instructions("COPY"):
        *sources, target = instruction.split()
        for source in sources:
            name = source if target == "./" else target
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, folder / name)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a virtual environment in which the image's steps have been run."""
    folder = tmp_path_factory.mktemp("image")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    build = folder / "build"
    build.mkdir()
    copied(build)
    wheel, install = pip_steps()
    path = f"{folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    for step in (wheel, install.replace("/wheels", str(build / "wheels"))):
        subprocess.run(step, shell=True, check=True, cwd=build, env=os.environ | {"PATH": path})  # noqa: S602
    return folder


def test_what_the_steps_install_serves_from_another_folder(image: Path) -> None:
    settings = dict(line.split("=", 1) for line in instructions("ENV"))
    assert settings == {"TWICESHY_HOST": "0.0.0.0"}  # noqa: S104 - what a container must bind to
    command = [str(image / "venv" / "bin" / json.loads(instructions("ENTRYPOINT")[0])[0])]
    command += [*json.loads(instructions("CMD")[0]), "--port", "0"]
    data = image / "data"
    data.mkdir()
    refused = subprocess.run(command, cwd=data, env=settings, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "TWICESHY_TOKENS" in refused.stderr
    tokens = {"TWICESHY_TOKENS": "secret", "TWICESHY_HOST": "127.0.0.1"}
    with subprocess.Popen(command, cwd=data, env=tokens, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        try:
            url = said.split()[2]
            with urllib.request.urlopen(f"{url}/health/ready", timeout=10) as answer:  # noqa: S310
                assert answer.status == 200
        finally:
            process.terminate()
    assert process.returncode in (0, -signal.SIGTERM)
    assert (data / "twiceshy.db").exists()


def test_it_runs_as_nobody_in_particular_and_asks_for_its_health() -> None:
    assert instructions("USER") == ["10001"]
    check = json.loads(instructions("HEALTHCHECK")[0].removeprefix("CMD "))
    compile(check[2], "healthcheck", "exec")
    assert "/health/live" in check[2]


def test_what_it_copies_is_there_and_nothing_else_is_sent() -> None:
    sources = [source for line in instructions("COPY") for source in line.split()[:-1]]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    assert kept == set(sources)
