"""The JVM that Spark runs in: starting it, and talking to it.

PySpark would start it too, but hands its process out only when it is up. One that is told to stop before that must take
the JVM with it: a JVM whose Python is gone before it has told its port waits for ever.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

_PORT: Final = "PYSPARK_GATEWAY_PORT"
_SECRET: Final = "PYSPARK_GATEWAY_SECRET"  # noqa: S105 - the name of a variable
_POLL_SECONDS: Final = 0.02


class NotStartedError(Exception):
    """The JVM ended before it was up."""


def start_gateway(options: Sequence[tuple[str, str]], output: int) -> Any:
    """py4j's gateway to a new JVM, whose process is its `proc`; what the JVM prints goes to a file descriptor."""
    from pyspark.java_gateway import launch_gateway

    process, port, secret = _start(options, output)
    before = {name: os.environ.get(name) for name in (_PORT, _SECRET)}
    os.environ |= {_PORT: str(port), _SECRET: secret}  # PySpark connects to a JVM that is there
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    except BaseException:
        _kill(process)
        raise
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    gateway.proc = process
    return gateway


def _start(options: Sequence[tuple[str, str]], output: int) -> tuple[subprocess.Popen[bytes], int, str]:
    """The process, the port that it listens at, and the secret that it wants to hear."""
    submit = Path(os.environ["SPARK_HOME"]) / "bin" / "spark-submit"
    given = [part for name, value in options for part in ("--conf", f"{name}={value}")]
    with tempfile.TemporaryDirectory(prefix="penstock-jvm-") as directory:
        told = Path(directory) / "connection"
        environment = {**os.environ, "SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
        process = _run([str(submit), *given, "pyspark-shell"], environment, output)
        try:
            while not told.is_file():
                if process.poll() is not None:
                    raise NotStartedError(f"the JVM ended with exit code {process.returncode}")
                time.sleep(_POLL_SECONDS)
            return process, *_connection(told)
        except BaseException:
            _kill(process)
            raise


def _run(command: list[str], environment: dict[str, str], output: int) -> subprocess.Popen[bytes]:
    """Started in a thread, as an interrupt is for the main one: it cannot come between the process and its name."""
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(
            subprocess.Popen,
            command,
            stdin=subprocess.PIPE,  # the JVM ends when this is closed
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,  # Ctrl-C is for us alone
        )
        try:
            return made.result()
        except BaseException:
            if made.exception() is None:
                _kill(made.result())
            raise


def _connection(told: Path) -> tuple[int, str]:
    """What the JVM has written: the port, the length of the secret, the secret."""
    written = told.read_bytes()
    length = int.from_bytes(written[4:8])
    return int.from_bytes(written[:4]), written[8 : 8 + length].decode()


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # also the scripts that lead to it
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
