"""The one Spark session of a process: how it is started, and how nothing of it is left behind.

The JVM is started in a session of its own: Ctrl-C in the terminal reaches only us, and we stop the jobs at a batch
boundary before Spark goes. Everything it and its Python workers print goes to files in the log directory. It ends when
our end of its standard input is closed, so also when this process is killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
import sysconfig
import threading
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.connectors.pulse import PULSE_CALLS
from penstock.errors import RuntimeFailure
from penstock.frozen import frozen
from penstock.spark.gateway import NotStartedError, start_gateway
from penstock.spark.java import require_java
from penstock.spark.logs import open_output, write_logging
from penstock.spark.own_jar import own_jar
from penstock.spark.watermark_calls import check_calls

if TYPE_CHECKING:
    from pyspark import SparkConf
    from pyspark.sql import SparkSession

_MIB: Final = 1024**2
_SECONDS_TO_STOP: Final = 20


@frozen
class SparkSettings:
    """What a session is started with; `parallelism` is the number of cores where none is given.

    With `named_sources` every stream must have a name, and its offsets are kept under it: sources can then be added to
    a query, or change places in it, without losing their positions. `jars` are those of connectors.
    """

    log_directory: Path
    driver_memory_bytes: int = 2 * 1024**3
    parallelism: int | None = None
    master: str = "local[*]"
    named_sources: bool = False
    jars: tuple[Path, ...] = ()


@frozen
class _Running:
    session: SparkSession
    gateway: Any
    settings: SparkSettings


_lock = threading.RLock()
_held: list[_Running] = []  # one at most


def shared_session(settings: SparkSettings) -> SparkSession:
    """The session of this process, started by the first call; the settings of later calls are not looked at."""
    with _lock:
        if not _held:
            _held.append(_start(settings))
        return _held[0].session


def session_running() -> bool:
    """Whether this process has a session."""
    return bool(_held)


def session_jars() -> tuple[Path, ...]:
    """The jars of connectors that the running session was started with."""
    return _held[0].settings.jars if _held else ()


def jvm_pid() -> int | None:
    """The process id of Spark's JVM, while there is one."""
    return int(_held[0].gateway.proc.pid) if _held else None


def log_file() -> Path | None:
    """Where Spark writes its log, while a session runs."""
    return _held[0].settings.log_directory / "spark.log" if _held else None


def stop_session() -> None:
    """Stop the session and wait until its JVM has ended; a later `shared_session` starts a new one."""
    with _lock:
        if not _held:
            return
        running = _held.pop()
        # Spark may have died before us: then there is nothing to tell it, only something to clear away.
        with contextlib.suppress(Exception):
            running.session.stop()
        _end(running.gateway)


def cores() -> int:
    """The cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# Spark copies arrays with NULLs in them value by value, and marks the NULLs afterwards.
_JVM: Final = (
    "-Djava.awt.headless=true",
    "-Duser.timezone=UTC",
    "-Darrow.enable_null_check_for_get=false",
    # A broken Avro record may claim to be gigabytes long: it is refused before memory is taken for it.
    *(f"-Dorg.apache.avro.limits.{kind}.maxLength={64 << 20}" for kind in ("bytes", "string", "collectionItems")),
)


def spark_options(settings: SparkSettings) -> dict[str, str]:
    """Every Spark option that differs from Spark's default, and why."""
    parallelism = settings.parallelism or cores()
    master = f"local[{max(parallelism, cores())}]" if settings.master == "local[*]" else settings.master
    streaming = "org.apache.spark.sql.execution.streaming"
    return {
        **(_executor_options() if not master.startswith("local[") else {}),
        "spark.master": master,
        "spark.app.name": "penstock",
        **({"spark.jars": ",".join(jar.as_uri() for jar in settings.jars)} if settings.jars else {}),
        # A worker that is slow to come up on a busy machine is no error yet.
        "spark.python.authenticate.socketTimeout": "120s",
        "spark.driver.memory": f"{max(settings.driver_memory_bytes // _MIB, 512)}m",
        "spark.driver.extraJavaOptions": " ".join((f"-Dlog4j2.configurationFile={_log4j(settings).as_uri()}", *_JVM)),
        # Nothing listens on the network.
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # A session that lives for weeks keeps only what it needs of jobs that have ended.
        "spark.ui.retainedJobs": "100",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "1000",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.sql.streaming.ui.enabled": "false",
        # PySpark tells the JVM of every call on a column which line made it: half of what the start of a job took.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Our results reach the driver as Arrow batches that we bound ourselves.
        "spark.driver.maxResultSize": "0",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Each job has a pool of its own, so that a slow one does not hold the others up.
        "spark.scheduler.mode": "FAIR",
        # Takes 40 ms off every small batch that runs Python.
        "spark.python.unix.domain.socket.enabled": "true",
        # No table of Spark's own, and no directory for them where the user happens to stand.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (settings.log_directory / "warehouse").absolute().as_uri(),
        "spark.sql.session.timeZone": "UTC",
        # `${…}` in a query is text of the user's, not a variable of Spark's.
        "spark.sql.variable.substitute": "false",
        "spark.sql.shuffle.partitions": str(parallelism),
        # The default manager starts ten processes for each file of a checkpoint, this one two.
        "spark.sql.streaming.checkpointFileManagerClass": (
            f"{streaming}.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.streaming.stateStore.providerClass": f"{streaming}.state.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
        # Each job has some ten pieces of generated code, and each batch looks for them: with Spark's hundred, a dozen
        # jobs would compile their code, and warm it up, again and again.
        "spark.sql.codegen.cache.maxEntries": "1000",
        # Recovery goes back to any of these batches.
        "spark.sql.streaming.minBatchesToRetain": "100",
        "spark.sql.streaming.queryEvolution.enableSourceEvolution": str(settings.named_sources).lower(),
        # Names are written by the second format only.
        "spark.sql.streaming.offsetLog.formatVersion": "2" if settings.named_sources else "1",
        # A query that waits for a broker which is gone ends when its question has: nobody has to wait for that.
        "spark.sql.streaming.stopTimeout": "5s",
        # An idle job asks its sources this often; each question costs a millisecond or two of a core.
        "spark.sql.streaming.pollingDelay": "20",
    }


def _executor_options() -> dict[str, str]:
    """What tasks need that run in processes beside the driver: the same clock, and this package."""
    path = os.pathsep.join([*_source_tree(), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {
        "spark.executor.extraJavaOptions": " ".join(_JVM),
        **({"spark.executorEnv.PYTHONPATH": path} if path else {}),
        # A worker that is lost takes the rows of a running stage with it, and Spark has to notice before it goes on.
        "spark.network.timeout": "60s",
        "spark.executor.heartbeatInterval": "5s",
    }


def _quiet() -> None:
    """What PySpark and py4j write for every error is raised as well; on the terminal it would stand there twice."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _start(settings: SparkSettings) -> _Running:
    _quiet()
    java = require_java()
    settings.log_directory.mkdir(parents=True, exist_ok=True)
    write_logging(_log4j(settings), settings.log_directory)
    with warnings.catch_warnings():
        # PySpark and py4j warn of versions and of sockets they leave to the garbage collector; neither is for our user.
        warnings.simplefilter("ignore")
        try:
            from pyspark import SparkConf
        except ImportError as error:
            raise RuntimeFailure(
                "INSTALLATION_UNUSABLE",
                "the package pyspark is not installed, or not all of it",
                hint=f"{sys.executable} -m pip install 'pyspark>=4.2,<4.4'",
            ) from error
        jars = (*settings.jars, own_jar(settings.log_directory))
        conf = SparkConf(loadDefaults=False).setAll(list(spark_options(replace(settings, jars=jars)).items()))
        with _environment(java.home):
            return _launch(conf, settings)


def _launch(conf: SparkConf, settings: SparkSettings) -> _Running:
    from pyspark import SparkContext
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    active = SparkContext._active_spark_context  # noqa: SLF001 - no public way to ask
    if active is not None:
        raise RuntimeFailure(
            "SPARK_FAILED",
            "this process has a Spark session that Penstock has not started",
            hint="stop it first, or use Penstock from a process of its own",
        )
    output = open_output(settings.log_directory)
    try:
        gateway = start_gateway(conf.getAll(), output)
    except (OSError, NotStartedError, PySparkException) as error:
        raise _not_started(settings, error) from error
    finally:
        os.close(output)
    try:
        context = SparkContext(gateway=gateway, conf=conf)
        session = SparkSession(context)
        check_calls(session, PULSE_CALLS)
    except BaseException as error:
        _end(gateway)
        if isinstance(error, RuntimeFailure) or not isinstance(error, Exception):
            raise
        raise _not_started(settings, error) from error
    return _Running(session, gateway, settings)


def _not_started(settings: SparkSettings, error: Exception) -> RuntimeFailure:
    return RuntimeFailure(
        "SPARK_FAILED",
        "Spark could not start",
        hint=f"look into {settings.log_directory / 'spark.out'} and spark.log beside it",
        detail=str(error).strip() or None,
    )


def _end(gateway: Any) -> None:
    """End the JVM: close its standard input, which is what it waits for; kill it where that is not enough."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with contextlib.suppress(Exception):
        gateway.shutdown()
    process: subprocess.Popen[bytes] = gateway.proc
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    try:
        process.wait(_SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # PySpark keeps these for the life of the process and would talk to the JVM that has gone.
    for holder, names in (
        (SparkContext, ("_gateway", "_jvm", "_active_spark_context")),
        (SparkSession, ("_instantiatedSession", "_activeSession")),
    ):
        for name in names:
            setattr(holder, name, None)


@contextlib.contextmanager
def _environment(java_home: Path) -> Iterator[None]:
    """The environment while the JVM starts, which hands it on to its Python workers; ours stays as it was."""
    import pyspark

    wanted = {
        "JAVA_HOME": str(java_home),
        # A Spark that the user has elsewhere is of another version than the package we were tested with.
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([*_source_tree(), *filter(None, [os.environ.get("PYTHONPATH")])]),
        # What Python workers print must reach the log when it happens, also when they die.
        "PYTHONUNBUFFERED": "1",
    }
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "C")
    if "utf" not in locale.lower():
        wanted["LC_ALL"] = "C.UTF-8"  # by which the JVM names files
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _source_tree() -> list[str]:
    """Where the workers find this package, when it is not installed but run from its sources."""
    import penstock

    parent = Path(penstock.__file__).resolve().parent.parent
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in ("purelib", "platlib")}
    return [] if parent in installed else [str(parent)]


def _log4j(settings: SparkSettings) -> Path:
    return (settings.log_directory / "log4j2.properties").absolute()
