"""Flink SQL, to measure beside: the jars of the `apache-flink` packages in one JVM, and its connector to Kafka.

    with FlinkSql(Path(".venv-flink"), Path("work")) as flink:
        seconds = flink.run(["CREATE TABLE bids (…) WITH (…)", "CREATE TABLE out (…) WITH (…)"], "INSERT INTO out …")

The JVM stays from one run to the next, as Spark's does, so both are measured warm; each job has a cluster of its own
inside it, with as many slots as the machine has cores. A source must come to an end (`scan.bounded.mode`), or a run
never does. `make bench-kafka` makes the environment; nothing of Flink is part of Penstock.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from penstock.spark.jar_cache import run_ivy
from penstock.spark.jar_pins import Jar
from penstock.spark.java import require_java
from penstock.spark.session import cores

ENVIRONMENT: Final = "PENSTOCK_FLINK"  # the virtual environment with Flink in it
CONNECTOR: Final = Jar(
    "org.apache.flink",
    "flink-sql-connector-kafka",
    "5.0.0-2.2",
    "5605c691d11a501382c383fecba37a7a552467da5ab7ba904ef5d6f3d62c5616",
)
# What Flink's own start scripts open to it on Java 17.
_OPENED: Final = (
    "lang", "lang.invoke", "lang.reflect", "io", "net", "nio", "text", "time", "util", "util.concurrent",
    "util.concurrent.atomic", "util.concurrent.locks",
)  # fmt: skip


class FlinkSql:
    """Flink in a JVM of its own; `home` is the virtual environment, `work` a directory for checkpoints and its log."""

    def __init__(self, home: Path, work: Path, *, memory: str = "2g", state: str = "rocksdb") -> None:
        self._work = work
        self._state = state
        work.mkdir(parents=True, exist_ok=True)
        jars = [*_distribution(home), connector_jar(home)]
        self._gateway, self._log = _launched(jars, work, memory)

    @property
    def version(self) -> str:
        """The version that runs."""
        return str(self._gateway.jvm.org.apache.flink.runtime.util.EnvironmentInformation.getVersion())

    def run(
        self,
        tables: Sequence[str],
        insert: str,
        *,
        settings: Mapping[str, str] | None = None,
        parallelism: int | None = None,
    ) -> float:
        """Seconds from an INSERT to the end of its job. The tables are made before, in a catalog of their own.

        `settings` go over those that every run has: checkpoints every five seconds, RocksDB, objects used again.
        """
        place = Path(tempfile.mkdtemp(prefix="checkpoints-", dir=self._work))
        try:
            environment = self._environment({**self._settings(place, parallelism or cores()), **(settings or {})})
            for statement in tables:
                environment.executeSql(statement)
            begun = time.perf_counter()
            started = environment.executeSql(insert)
            getattr(started, "await")()
            return time.perf_counter() - begun
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def close(self) -> None:
        """End the JVM."""
        process = self._gateway.java_process
        self._gateway.shutdown()
        process.stdin.close()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _environment(self, settings: Mapping[str, str]) -> Any:
        jvm = self._gateway.jvm
        configuration = jvm.org.apache.flink.configuration.Configuration()
        for key, value in settings.items():
            configuration.setString(key, value)
        table = jvm.org.apache.flink.table.api
        made = table.EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(configuration).build()
        return table.TableEnvironment.create(made)

    def _settings(self, place: Path, parallelism: int) -> dict[str, str]:
        return {
            "execution.target": "local",
            "execution.attached": "true",
            "rest.bind-address": "127.0.0.1",
            "rest.address": "127.0.0.1",
            "rest.port": "0",
            "parallelism.default": str(parallelism),
            "pipeline.object-reuse": "true",
            "table.local-time-zone": "UTC",
            "state.backend.type": self._state,
            "taskmanager.memory.managed.size": "512m",
            "execution.checkpointing.interval": "5 s",
            "execution.checkpointing.incremental": "true",
            "execution.checkpointing.dir": place.absolute().as_uri(),
            # A job that has read everything would wait for the next checkpoint, which has nothing new in it.
            "execution.checkpointing.checkpoints-after-tasks-finish": "false",
        }


def flink_home() -> Path | None:
    """The environment that `make bench-kafka` has made; None where there is none."""
    found = os.environ.get(ENVIRONMENT)
    return Path(found).absolute() if found else None


def connector_jar(home: Path) -> Path:
    """Flink's connector to Kafka, fetched once into its environment."""
    kept = home / "jars" / CONNECTOR.file
    if not kept.is_file():
        with tempfile.TemporaryDirectory() as made:
            run_ivy([CONNECTOR], Path(made))
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(made) / "jars" / CONNECTOR.file, kept)
    with kept.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != CONNECTOR.sha256:
        raise SystemExit(f"{kept} is not the file that is pinned: its SHA-256 is {found}")
    return kept


def _distribution(home: Path) -> list[Path]:
    found = sorted(home.glob("lib/python3*/site-packages/pyflink/lib/*.jar"))
    if not found:
        raise SystemExit(f"there is no Flink in {home}: run make bench-kafka")
    return found


def _launched(jars: Sequence[Path], work: Path, memory: str) -> tuple[Any, Any]:
    """A JVM with these jars that does what it is told, and the file that it logs to. It ends when we do."""
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    ours = next((Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar"))
    settings = work / "log4j2.properties"
    settings.write_text(
        "appender.out.type = Console\nappender.out.name = out\nappender.out.target = SYSTEM_ERR\n"
        "appender.out.layout.type = PatternLayout\nappender.out.layout.pattern = %d %p %c{1}: %m%n%ex\n"
        "rootLogger.level = warn\nrootLogger.appenderRef.out.ref = out\n",
        "utf-8",
    )
    log = (work / "flink.log").open("ab")
    options = [
        f"-Xmx{memory}",
        f"-Dlog4j2.configurationFile={settings.as_uri()}",
        *(f"--add-opens=java.base/java.{package}=ALL-UNNAMED" for package in _OPENED),
    ]
    port, token, process = launch_gateway(
        jarpath=str(ours),
        classpath=os.pathsep.join(map(str, jars)),
        javaopts=options,
        die_on_exit=True,
        redirect_stderr=log,
        java_path=str(require_java().home / "bin" / "java"),
        create_new_process_group=True,
        enable_auth=True,
        return_proc=True,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token), java_process=process)
    return gateway, log
