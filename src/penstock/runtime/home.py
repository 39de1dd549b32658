"""The state directory while it is open: the lock, the catalog, topics, dimensions, views, Spark."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING
from urllib.parse import quote

from penstock.connectors.exchange import clear_exchanges
from penstock.connectors.memory import clear_memory
from penstock.errors import RuntimeFailure
from penstock.spark.jar_cache import JarCache
from penstock.spark.session import SparkSettings, session_jars, session_running, shared_session
from penstock.stores.catalog_store import CatalogStore
from penstock.stores.dimensions import DimensionStore
from penstock.stores.owner_lock import OwnerLock
from penstock.stores.topics import TopicStore
from penstock.stores.views import ViewStore

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import SparkSession

_DEFAULT_MEMORY = 2 * 1024**3


def _tell(text: str) -> None:
    """A line about something that takes time, for whoever sits in front of the program."""
    if sys.stderr is not None:
        sys.stderr.write(f"penstock: {text}\n")
        sys.stderr.flush()


class Home:
    """Everything that lives under one state path. Opening it takes the lock before anything is read or written."""

    def __init__(self, state_path: Path, settings: Mapping[str, object]) -> None:
        self.path = state_path.absolute()
        self._settings = settings
        self._spark_lock = RLock()
        self._spark: SparkSession | None = None
        self.lock = OwnerLock(self.path)
        try:
            self.catalog = CatalogStore.open(self.path)
            self.topics = TopicStore(self.path / "topics")
            self.dimensions = DimensionStore(self.path / "dimensions")
            self.views = ViewStore.open(self.path)
        except BaseException:
            self.lock.close()
            raise
        shutil.rmtree(self.ephemeral, ignore_errors=True)  # what a killed process left behind
        clear_memory(self.path)
        clear_exchanges(self.path)

    @property
    def ephemeral(self) -> Path:
        """Where queries that nobody keeps put their checkpoints."""
        return self.path / "ephemeral"

    @property
    def roots(self) -> tuple[str, ...] | None:
        """The directories that files may lie in; None: anywhere."""
        allowed = self._settings.get("allowed_paths")
        return tuple(filter(None, allowed.split(os.pathsep))) if isinstance(allowed, str) else None

    @property
    def jobs(self) -> Path:
        """Where the jobs have their files, a directory each."""
        return self.path / "jobs"

    def checkpoint(self, job: str) -> Path:
        """Where Spark keeps the progress and the state of a job."""
        return self.jobs / quote(job, safe="") / "checkpoint"

    def spark(self, connectors: Collection[str] = ()) -> SparkSession:
        """Spark's session, started when it is first needed.

        The jars of these connectors are on its class path: fetched before it starts, CONNECTOR_MISSING where it runs
        without them.
        """
        with self._spark_lock:
            cache = JarCache()
            if not session_running():
                cache.install(connectors, _tell)
            elif missing := [name for name in connectors if not set(cache.paths(name)) <= set(session_jars())]:
                raise RuntimeFailure(
                    "CONNECTOR_MISSING",
                    f"Spark was started before connector {missing[0]} was installed",
                    hint="start the program again",
                )
            if self._spark is None:
                memory = self._settings.get("driver_memory")
                parallelism = self._settings.get("parallelism")
                master = self._settings.get("spark_master")
                self._spark = shared_session(
                    SparkSettings(
                        log_directory=self.path / "logs",
                        driver_memory_bytes=memory if isinstance(memory, int) else _DEFAULT_MEMORY,
                        parallelism=parallelism if isinstance(parallelism, int) else None,
                        master=master if isinstance(master, str) else "local[*]",
                        jars=tuple(cache.for_spark()),
                    )
                )
            return self._spark

    @property
    def spark_started(self) -> bool:
        return self._spark is not None

    def close(self) -> None:
        """Let go of everything; the Spark session stays, it belongs to the process."""
        for part in (self.views, self.topics, self.catalog):
            with suppress(Exception):
                part.close()
        shutil.rmtree(self.ephemeral, ignore_errors=True)
        clear_memory(self.path)
        clear_exchanges(self.path)
        self.lock.close()
