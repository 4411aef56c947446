"""What no wheel brings comes from Debian's packages: fetched once, unpacked into a cache, never installed.

The cache is `~/.cache/twiceshy` (or below `XDG_CACHE_HOME`), with a folder for each package.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def fetched(package: str) -> Path:
    """Return the folder under which a package's `usr` is, with all that it needs beyond what is installed.

    It is fetched where it is missing. Raises RuntimeError where that cannot be done.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "twiceshy"
    unpacked = cache / package
    cache.mkdir(parents=True, exist_ok=True)
    with _alone(cache / f"{package}.lock"):
        if not unpacked.exists():
            _fetch(package, unpacked)
    return unpacked


def _fetch(package: str, unpacked: Path) -> None:
    """Download a package and all that it needs, and unpack it."""
    for tool in ("apt-get", "dpkg"):
        if shutil.which(tool) is None:
            raise RuntimeError(f"{package} comes from Debian and {tool} is missing: install {package}.")
    with tempfile.TemporaryDirectory(dir=unpacked.parent) as folder:
        downloads, parts = Path(folder) / "downloads", Path(folder) / "parts"
        downloads.mkdir()
        parts.mkdir()
        _ran(["apt-get", "download", *_needed(package)], downloads)
        for archive in sorted(downloads.glob("*.deb")):
            _ran(["dpkg", "-x", str(archive), str(parts)], downloads)
        parts.rename(unpacked)


def _needed(package: str) -> list[str]:
    """Return the packages to fetch, once apt knows them; where its lists are empty, only root can fill them."""
    plan = ["apt-get", "install", "--simulate", "--no-install-recommends", package]
    planned = subprocess.run(plan, capture_output=True, text=True, check=False)
    if planned.returncode != 0:
        _ran(["apt-get", "update"], Path("/"))
        planned = subprocess.run(plan, capture_output=True, text=True, check=False)
    names = [line.split()[1] for line in planned.stdout.splitlines() if line.startswith("Inst ")]
    if not names:
        raise RuntimeError(f"apt cannot plan to install {package}: {planned.stderr.strip()}")
    return names


def _ran(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command[:3])} failed: {done.stderr.strip()}")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock between processes: tests run in several."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
