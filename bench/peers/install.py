"""Put the peers, at pinned versions, into `bench/.peers`, each into an environment of its own."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.failure import BenchFailure

RESTATE_SERVER: Final = "@restatedev/restate-server@1.7.12"
_HERE: Final = Path(__file__).parent
PEERS: Final = _HERE.parent / ".peers"
_INSTALL_SECONDS: Final = 600

Say = Callable[[str], None]
"""Tells the person at the terminal what takes long."""


def dbos_python(say: Say) -> Path:
    """Return the Python that has DBOS; install it first where it is missing."""
    return _environment("dbos", say)


def restate_python(say: Say) -> Path:
    """Return the Python that has Restate's SDK; install it first where it is missing."""
    return _environment("restate", say)


def powertools_python(say: Say) -> Path:
    """Return the Python that has Powertools for AWS Lambda; install it first where it is missing."""
    return _environment("powertools", say)


def outbox_python(say: Say) -> Path:
    """Return the Python that has the peers of the relay; install them first where they are missing."""
    return _environment("outbox", say)


def restate_server(say: Say, peers: Path = PEERS) -> Path:
    """Return Restate's server; install it with npm first where it is missing. Raises BenchFailure."""
    folder = peers / "restate-server"
    stamp = folder / "installed.txt"
    if not _is_installed(stamp, RESTATE_SERVER):
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise BenchFailure(
                "Restate's server comes from npm, and there is no npm here. Install Node.js 20 or newer, "
                "or leave Restate out: name the other rows with --only."
            )
        say(f"Installing {RESTATE_SERVER} into bench/.peers (once, 220 MB)")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        quiet = ("--no-audit", "--no-fund", "--ignore-scripts", "--no-package-lock", "--loglevel=error")
        _run([npm, "install", *quiet, "--prefix", str(folder), RESTATE_SERVER])
        stamp.write_text(RESTATE_SERVER, encoding="utf-8")
    found = sorted(folder.glob("node_modules/@restatedev/restate-server-*/bin/restate-server"))
    if not found:
        raise BenchFailure(
            f"{RESTATE_SERVER} has no program for this machine. Leave Restate out: name the other rows with --only."
        )
    return found[0]


def _environment(peer: str, say: Say) -> Path:
    pins = _HERE / f"{peer}.txt"
    folder = PEERS / peer
    python = folder / "bin" / "python"
    stamp = folder / "installed.txt"
    wanted = pins.read_text(encoding="utf-8")
    if not (python.exists() and _is_installed(stamp, wanted)):
        say(f"Installing {peer} as bench/peers/{pins.name} says into bench/.peers (once)")
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", str(pins)])
        stamp.write_text(wanted, encoding="utf-8")
    return python


def _is_installed(stamp: Path, wanted: str) -> bool:
    return stamp.exists() and stamp.read_text(encoding="utf-8") == wanted


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_SECONDS, check=False)
    except subprocess.TimeoutExpired as error:
        raise BenchFailure(f"`{' '.join(command[1:4])} …` did not end within {_INSTALL_SECONDS} s.") from error
    if done.returncode != 0:
        raise BenchFailure(f"A peer could not be installed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
