"""Kafka's stand-in: the mock cluster of librdkafka, which speaks Kafka's protocol over TCP, in a process of its own.

It does as it is told over its standard input: break all connections, answer with errors, take nothing. What it holds
is in memory: killed, it has lost everything.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
from importlib import util
from pathlib import Path
from typing import IO

PRODUCE = 0
"""The number of a produce request in Kafka's protocol."""
UNKNOWN_TOPIC = 3


class KafkaMock:
    """One cluster with one broker."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self.url = ""
        self.process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start the cluster; its port is its own choice, and is kept until it ends."""
        with tempfile.TemporaryFile() as errors:
            self.process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            )
            self.url = self._answer()

    def create_topic(self, topic: str, partitions: int = 1) -> None:
        """Create a topic."""
        self._tell("create", topic, partitions)

    def lose_topic(self, topic: str) -> None:
        """Know a topic no more, and create it for nobody."""
        self._tell("lose", topic)

    def cut(self) -> None:
        """Break all connections and take no new ones."""
        self._tell("cut")

    def mend(self) -> None:
        """Take connections again."""
        self._tell("mend")

    def refuse(self, *codes: int) -> None:
        """Answer the next produce requests with these error codes."""
        self._tell("refuse", *codes)

    def kill(self) -> None:
        """End the process."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.communicate()

    def remove(self) -> None:
        """End the process; it leaves nothing."""
        self.kill()

    def _tell(self, *words: object) -> None:
        process = self._running()
        _pipe(process.stdin).write(json.dumps(words) + "\n")
        _pipe(process.stdin).flush()
        self._answer()

    def _answer(self) -> str:
        answer = _pipe(self._running().stdout).readline().strip()
        if not answer:
            raise RuntimeError("Kafka's mock cluster has ended.")
        return answer

    def _running(self) -> subprocess.Popen[str]:
        if self.process is None:
            raise RuntimeError("Kafka's mock cluster is not running: start it first.")
        return self.process


def _pipe(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise RuntimeError("Kafka's mock cluster was started without pipes.")
    return stream


def _library() -> ctypes.CDLL:
    spec = util.find_spec("confluent_kafka")
    if spec is None or spec.origin is None:
        raise RuntimeError("The wheel confluent-kafka is missing: run `make install`.")
    bundled = Path(spec.origin).parent.parent / "confluent_kafka.libs"
    for path in sorted(bundled.iterdir()):
        if path.name.startswith("librdkafka"):
            return ctypes.CDLL(str(path))
    raise RuntimeError("The wheel confluent-kafka brings no librdkafka.")


def _serve() -> None:
    """Run a cluster and obey, one JSON list a line, until the input ends."""
    import confluent_kafka  # noqa: F401  its import loads the libraries that librdkafka needs

    library = _library()
    library.rd_kafka_new.restype = ctypes.c_void_p
    library.rd_kafka_conf_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_new.restype = ctypes.c_void_p
    library.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    reason = ctypes.create_string_buffer(512)
    client = library.rd_kafka_new(0, ctypes.c_void_p(library.rd_kafka_conf_new()), reason, len(reason))
    cluster = ctypes.c_void_p(library.rd_kafka_mock_cluster_new(ctypes.c_void_p(client), 1))
    print(library.rd_kafka_mock_cluster_bootstraps(cluster).decode(), flush=True)
    for line in sys.stdin:
        match json.loads(line):
            case ["create", str(topic), int(partitions)]:
                library.rd_kafka_mock_topic_create(cluster, topic.encode(), partitions, 1)
            case ["lose", str(topic)]:
                library.rd_kafka_mock_topic_set_error(cluster, topic.encode(), UNKNOWN_TOPIC)
            case ["cut"]:
                library.rd_kafka_mock_broker_set_down(cluster, 1)
            case ["mend"]:
                library.rd_kafka_mock_broker_set_up(cluster, 1)
            case ["refuse", *codes]:
                pushed = (ctypes.c_int * len(codes))(*codes)
                library.rd_kafka_mock_push_request_errors_array(cluster, PRODUCE, ctypes.c_size_t(len(codes)), pushed)
            case unheard:
                raise ValueError(f"nobody taught the mock cluster this: {unheard}")
        print("done", flush=True)


if __name__ == "__main__":
    _serve()
