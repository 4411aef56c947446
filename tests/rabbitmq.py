"""A real RabbitMQ from Debian's packages, which no wheel brings: fetched once, unpacked into a cache, never installed.

Where the package is installed, that is used. `python -m tests.rabbitmq` fetches it ahead of time.
"""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Final

from tests.brokers import Broker, free_port
from tests.debian import fetched

_PACKAGE: Final = "rabbitmq-server"
_GREETING: Final = b"AMQP\x00\x00\x09\x01"
_CONNECTION_START: Final = b"\x01\x00\x00"


class RabbitServer(Broker):
    """One node, with a port mapper of its own, for the user guest with the password guest."""

    def __init__(self) -> None:
        """Fetch the server where it is missing, and choose the ports."""
        super().__init__("rabbitmq")
        self._root = fetched_server()
        self._mapper_port = free_port()
        self._distribution_port = free_port()
        self._mapper: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"amqp://guest:guest@127.0.0.1:{self.port}/"

    def start(self) -> None:
        """Start the port mapper and the server, and wait until it answers."""
        environment = self._environment()
        if self._mapper is None:
            mapper = [str(next(self._root.glob("usr/lib/erlang/erts-*/bin/epmd")))]
            with (self.folder / "mapper-log").open("ab") as log:
                self._mapper = subprocess.Popen(
                    mapper, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            self._wait_for_mapper()
        server = next(self._root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["/bin/sh", str(server)],
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._wait_for(_GREETING, _CONNECTION_START)

    def kill(self) -> None:
        """Kill the server and what it started, as a power cut would; its data and port are kept."""
        process, self.process = self.process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def sync(self) -> None:
        """Bring to the disk what was declared: RabbitMQ confirms a declaration before, and a kill may undo it."""
        control = next(self._root.glob("usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmqctl"))
        command = ["/bin/sh", str(control), "eval", "mnesia:sync_log()."]
        subprocess.run(command, env=self._environment(), check=True, capture_output=True, timeout=60)

    def remove(self) -> None:
        """Kill the server and its port mapper, and remove its folder."""
        super().remove()
        mapper, self._mapper = self._mapper, None
        if mapper is not None:
            mapper.kill()
            mapper.wait()

    def _signal(self, number: signal.Signals) -> None:
        if self.process is None:
            raise RuntimeError("RabbitMQ is not running: start it first.")
        os.killpg(self.process.pid, number)

    def _environment(self) -> dict[str, str]:
        settings = self.folder / "rabbitmq.conf"
        settings.write_text(f"listeners.tcp.local = 127.0.0.1:{self.port}\n", encoding="ascii")
        plugins = self.folder / "plugins"
        plugins.write_text("[].\n", encoding="ascii")
        return {
            "PATH": f"{_erlang(self._root, self.folder)}:{os.environ.get('PATH', os.defpath)}",
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "LD_LIBRARY_PATH": ":".join(str(path) for path in self._root.glob("usr/lib/*-linux-gnu")),
            "ERL_EPMD_PORT": str(self._mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODENAME": f"twiceshy{self.port}@localhost",
            "RABBITMQ_DIST_PORT": str(self._distribution_port),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-start_epmd false -kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_CONF_ENV_FILE": str(self.folder / "none"),
            "RABBITMQ_CONFIG_FILE": str(settings),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(self.folder / "advanced.config"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(plugins),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "data"),
            "RABBITMQ_LOG_BASE": str(self.folder / "logs"),
            "RABBITMQ_LOGS": "-",
        }

    def _wait_for_mapper(self) -> None:
        for _ in range(1000):
            try:
                socket.create_connection(("127.0.0.1", self._mapper_port), timeout=1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        raise RuntimeError("Erlang's port mapper does not answer.")


def fetched_server() -> Path:
    """Return the folder under which the server's `usr` is, after fetching it where it is missing."""
    if next(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"), None) is not None:
        return Path("/")
    return fetched(_PACKAGE)


def _erlang(root: Path, folder: Path) -> Path:
    """Return a folder with an `erl` that runs from where it was unpacked; Debian's own knows one place only."""
    if root == Path("/"):
        return Path("/usr/bin")
    runtime = next(root.glob("usr/lib/erlang/erts-*/bin"))
    binaries = folder / "bin"
    binaries.mkdir(exist_ok=True)
    script = f"""#!/bin/sh
export ROOTDIR={root}/usr/lib/erlang BINDIR={runtime} EMU=beam PROGNAME=erl
exec {runtime}/erlexec "$@"
"""
    (binaries / "erl").write_text(script, encoding="utf-8")
    (binaries / "erl").chmod(0o755)
    return binaries


if __name__ == "__main__":
    print(fetched_server())
