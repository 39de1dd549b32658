"""A real Kafka broker of one node on the loopback interface, for development, examples and tests.

It is Apache Kafka itself, in a process of its own that goes on when ours ends. Everything about it lies in one
directory: `server.properties`, `data`, `broker.log`, and `broker.json` with the process id and the port while it runs.
A file of ours says that these names are ours there: what somebody else calls so is neither written over nor deleted.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.spark.jar_cache import JarCache
from penstock.spark.java import require_java

HOST: Final = "127.0.0.1"
PORT: Final = 9092
_SECONDS_TO_START: Final = 120.0
_SECONDS_TO_STOP: Final = 30.0
_FORMATTED: Final = "meta.properties"
_OURS: Final = ".penstock-broker"
_FILES: Final = ("server.properties", "log4j2.properties", "broker.log")
_MAIN: Final = "kafka.Kafka"
# Children of this process that nobody has waited for. They are meant to outlive it.
_started: Final[dict[int, subprocess.Popen[bytes]]] = {}

_LOGGING: Final = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: %m%n%ex
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


@frozen
class BrokerState:
    """A broker's directory as it is now; `pid` None: it does not run."""

    directory: Path
    pid: int | None
    port: int | None

    @property
    def address(self) -> str | None:
        """What clients connect to."""
        return None if self.port is None or self.pid is None else f"{HOST}:{self.port}"


class KafkaBroker:
    """The broker of one directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()

    @property
    def log(self) -> Path:
        """What the broker prints."""
        return self.directory / "broker.log"

    def state(self) -> BrokerState:
        """Whether it runs, and where."""
        try:
            kept = json.loads((self.directory / "broker.json").read_text("utf-8"))
            pid, port = int(kept["pid"]), int(kept["port"])
        except (OSError, ValueError, KeyError, TypeError):
            return BrokerState(self.directory, None, None)
        return BrokerState(self.directory, pid if self._is_ours(pid) else None, port)

    def start(self, port: int = PORT, tell: Callable[[str], None] = lambda _: None) -> BrokerState:
        """Start it and wait until it answers; one that runs already stays as it is. Port 0: any that is free."""
        running = self.state()
        if running.pid is not None:
            if port not in (0, running.port):
                raise _failed(
                    f"the broker of {self.directory} runs already, on port {running.port}",
                    hint="stop it first, or give another --dir",
                )
            return running
        java = require_java()
        cache = JarCache()
        cache.install(["kafka-broker"], tell)
        jars = os.pathsep.join(str(path) for path in cache.paths("kafka-broker"))
        port = port or free_port()
        if not _is_free(port):
            raise _failed(f"port {port} of {HOST} is in use", hint="stop what listens there, or give another --port")
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _failed(
                f"directory {self.directory} of the broker cannot be made: {error.strerror}", hint="give another --dir"
            ) from None
        self._take_directory()
        properties = self.directory / "server.properties"
        properties.write_text(self._properties(port), "utf-8")
        logging = self.directory / "log4j2.properties"
        logging.write_text(_LOGGING, "utf-8")
        program = [str(java.home / "bin" / "java"), f"-Dlog4j2.configurationFile={logging.as_uri()}", "-cp", jars]
        if not (self.directory / "data" / _FORMATTED).exists():
            self._format(program, properties)
        with self.log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - our own arguments
                [*program[:1], "-Xmx512m", *program[1:], _MAIN, str(properties)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        _started[process.pid] = process
        kept = self.directory / "broker.json"
        kept.write_text(json.dumps({"pid": process.pid, "port": port}), "utf-8")
        self._wait_for_answer(process, port)
        return self.state()

    def stop(self, *, delete: bool = False) -> bool:
        """End the broker and wait for it; with `delete` its directory goes as well. Whether one ran."""
        pid = self.state().pid
        if pid is not None:
            _signal(pid, signal.SIGTERM)
            if not self._gone(pid, _SECONDS_TO_STOP):
                _signal(pid, signal.SIGKILL)
                self._gone(pid, _SECONDS_TO_STOP)
        if self.is_there:
            (self.directory / "broker.json").unlink(missing_ok=True)
        if delete and self.is_there:
            # Only what is ours: the directory may be one that the user keeps other things in.
            shutil.rmtree(self.directory / "data", ignore_errors=True)
            for name in (*_FILES, _OURS):
                (self.directory / name).unlink(missing_ok=True)
            if not any(self.directory.iterdir()):
                self.directory.rmdir()
        return pid is not None

    @property
    def is_there(self) -> bool:
        """Whether a broker of ours has been started in the directory, and its data not been thrown away."""
        return (self.directory / _OURS).exists()

    def _take_directory(self) -> None:
        """Mark the directory as a broker's; refused where what it needs is there and is somebody else's."""
        taken = [name for name in ("data", *_FILES) if (self.directory / name).exists()]
        if taken and not self.is_there:
            raise _failed(
                f"the directory {self.directory} has a {taken[0]} that is no broker's of ours",
                hint="give another --dir, one that is new or empty",
            )
        (self.directory / _OURS).write_text("Of `penstock kafka`: the broker's files beside this one are its own.\n")

    def _gone(self, pid: int, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._is_ours(pid):
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def _is_ours(self, pid: int) -> bool:
        """Whether a process is this broker: a number may belong to another one by now."""
        try:
            with Path(f"/proc/{pid}/cmdline").open("rb") as file:
                told = file.read().replace(b"\0", b" ").decode("utf-8", "replace")
            if not told:  # it has ended, and nobody has asked for its exit code yet
                _reap(pid)
                return False
        except FileNotFoundError:
            if Path("/proc/self").exists():
                return False
            asked = subprocess.run(  # noqa: S603
                ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False
            )
            told = asked.stdout
        except OSError:
            return False
        return _MAIN in told and str(self.directory / "server.properties") in told

    def _format(self, program: list[str], properties: Path) -> None:
        """Make the directory of an empty cluster."""
        shutil.rmtree(self.directory / "data", ignore_errors=True)
        cluster = base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")
        # The tool takes an id that begins with a dash for an option.
        cluster = f"A{cluster[1:]}"
        done = subprocess.run(  # noqa: S603 - our own arguments
            [*program, "kafka.tools.StorageTool", "format", "--standalone", "-t", cluster, "-c", str(properties)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise _failed(
                f"the directory {self.directory} could not be made ready",
                hint="look at the free space there, or give another --dir",
                detail=(done.stdout + done.stderr).strip() or None,
            )

    def _wait_for_answer(self, process: subprocess.Popen[bytes], port: int) -> None:
        end = time.monotonic() + _SECONDS_TO_START
        while not _answers(port):
            code = process.poll()
            if code is not None or time.monotonic() > end:
                why = "ended at once" if code is not None else "does not answer"
                self.stop()
                raise _failed(f"the broker {why}", hint=f"look into {self.log}", detail=self._last_words())

    def _last_words(self) -> str | None:
        try:
            return self.log.read_text("utf-8", "replace")[-2_000:] or None
        except OSError:
            return None

    def _properties(self, port: int) -> str:
        """One node that is broker and controller, everything kept once, nothing outside the loopback interface."""
        controller = free_port()
        values = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.bootstrap.servers": f"{HOST}:{controller}",
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": str(self.directory / "data").replace("\\", "\\\\"),
            # Examples are dated as they like: a broker that removes what is old would remove them.
            "log.retention.ms": -1,
            "num.partitions": 1,
            "default.replication.factor": 1,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 4,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 4,
            "share.coordinator.state.topic.replication.factor": 1,
            "share.coordinator.state.topic.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        return "".join(f"{key}={value}\n" for key, value in values.items())


def free_port() -> int:
    """A port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the broker will: a port that was in use a moment ago is free again.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _answers(port: int) -> bool:
    """Whether a broker answers; waits a second at most."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    client = AdminClient({"bootstrap.servers": f"{HOST}:{port}", "log_level": 0})
    try:
        return bool(client.list_topics(timeout=1.0).brokers)
    except KafkaException:
        return False


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        raise _failed(f"process {pid} belongs to another user", hint="stop the broker as that user") from None


def _reap(pid: int) -> None:
    """Ask for the exit code of a child of ours, so that nothing of it is left."""
    process = _started.get(pid)
    if process is not None and process.poll() is not None:
        del _started[pid]


def _failed(what: str, *, hint: str, detail: str | None = None) -> RuntimeFailure:
    return RuntimeFailure("BROKER_FAILED", what, hint=hint, detail=detail)
