"""`StreamingSQLExecutor`: the calls of the streaming guides, thin over a database.

executor = StreamingSQLExecutor(state_backend="tonbo", timer_backend="rocksdb", state_path="./state",
                                checkpoint_interval_seconds=60, max_parallelism=16)
executor.execute_ddl("CREATE TABLE trades (…) WITH (…)")
executor.register_dimension_table("securities", securities, broadcast=True)
async for batch in executor.execute_streaming_sql("SELECT …"):
    …
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Any, Final, Self

from penstock.errors import InvalidArgument, OptionError
from penstock.interfaces.argument_types import check_type
from penstock.interfaces.database import Database, option_value
from penstock.interfaces.owned_database import OwnedDatabase
from penstock.interfaces.result import Result
from penstock.interfaces.result_stream import ResultStream
from penstock.options import resolve_setting
from penstock.options.settings import default_settings
from penstock.runtime.checkpoints import CheckpointCoordinator

# What each name means. The guides contradict each other about where state is; all of it is Spark's state store here.
STATE_BACKENDS: Final[Mapping[str, str]] = {
    "rocksdb": "rocksdb",
    "tonbo": "rocksdb",
    "marbledb": "rocksdb",
    "memory": "memory",
}
_LONGEST: Final = 10.0**9
TIMER_BACKENDS: Final[Mapping[str, str]] = {"rocksdb": "rocksdb"}


class StreamingSQLExecutor:
    """Runs streaming SQL in a state directory of its own. Close it, or use it in a `with` block.

    state_backend: where the state of jobs is kept: `rocksdb` (the default; `tonbo` and `marbledb` mean it) or `memory`.
    timer_backend: `rocksdb`; timers are kept with the state.
    state_path: the state directory, opened at once; a second executor on it is refused. Without one, a directory that
        is made when it is needed and removed at the end.
    checkpoint_interval_seconds: how often state is written out whole, 60 when not given; every batch is durable anyway.
    max_parallelism: the most readers of a source, 16 when not given; `max-parallelism` of a table goes before it.
    """

    def __init__(
        self,
        state_backend: str | None = None,
        timer_backend: str | None = None,
        state_path: str | Path | None = None,
        checkpoint_interval_seconds: float | timedelta | None = None,
        max_parallelism: int | None = None,
    ) -> None:
        if state_path is not None:
            check_type("StreamingSQLExecutor", "state_path", state_path, (str, os.PathLike), "a path")
            if not str(state_path).strip():
                hint = "name a directory, or leave it out"
                raise InvalidArgument("INVALID_ARGUMENT", "StreamingSQLExecutor(): state_path is empty", hint=hint)
        backends = {
            "state_backend": _backend("state_backend", state_backend, STATE_BACKENDS),
            "timer_backend": _backend("timer_backend", timer_backend, TIMER_BACKENDS),
        }
        numbers = {
            "checkpoint_interval": _interval(checkpoint_interval_seconds),
            "max_parallelism": max_parallelism,
        }
        given = {key: value for key, value in {**backends, **numbers}.items() if value is not None}
        self._settings = dict(_setting(key, value) for key, value in given.items())
        self._asked = {"state_backend": state_backend, "timer_backend": timer_backend}
        self._owner = OwnedDatabase(None if state_path is None else Path(state_path), self._settings)
        if state_path is not None:
            self._owner.get()

    @property
    def database(self) -> Database:
        """The database underneath: everything else that Penstock can do."""
        return self._owner.get()

    @property
    def state_path(self) -> Path | None:
        """The state directory; None while none is named and none was needed."""
        return self._owner.path

    # the calls of the guides

    def execute_ddl(self, text: str) -> Result | None:
        """Run CREATE TABLE, CREATE STREAM, CREATE MATERIALIZED VIEW … or a script of them, as `Database.execute`."""
        return self.database.execute(text)

    def register_dimension_table(
        self, name: str, table: object, broadcast: bool | None = None, *, is_raft_replicated: bool | None = None
    ) -> None:
        """Keep a table to join streams with; `broadcast`, the default, hands it to every task instead of a shuffle.

        `is_raft_replicated` is another word for `broadcast`.
        """
        if broadcast is not None and is_raft_replicated is not None and broadcast != is_raft_replicated:
            raise InvalidArgument(
                "INVALID_ARGUMENT",
                f"dimension table {name}: broadcast is {broadcast} and is_raft_replicated is {is_raft_replicated}",
                hint="they mean the same; give one of them",
            )
        wanted = next((each for each in (broadcast, is_raft_replicated) if each is not None), True)
        self.database.register_dimension(name, table, broadcast=wanted)

    def update_dimension_table(self, name: str, table: object) -> int:
        """Give a dimension table new rows, from a batch boundary on; the number of its new version."""
        return self.database.update_dimension(name, table)

    def execute_streaming_sql(self, sql: str) -> ResultStream:
        """The rows of a query over streams as they come: `async for batch in …`, Arrow record batches.

        Windows come when they close. A batch has at most `batch-size` rows, of the table or else 10,000. Batches of an
        updating query have a leading column `_op`. Leaving the loop ends the query and removes its files.
        """
        return ResultStream(self._owner, sql)

    def tail_query(
        self,
        sql: str,
        every: float | timedelta | None = None,
        *,
        event: Event | None = None,
        iterations: int | None = None,
    ) -> Iterator[Result]:
        """Ask a query that ends again and again, as `Database.tail_query`."""
        return self.database.tail_query(sql, every, event=event, iterations=iterations)

    def checkpoints(self, job: str) -> CheckpointCoordinator:
        """The checkpoints of a job, one at least every `checkpoint_interval_seconds` until it is shut down."""
        return self.database.checkpoints(job, self._interval_seconds())

    # what it tells

    def explain(self, sql: str) -> dict[str, Any]:
        """The plan of a query: its operators, each with `is_stateful`, `is_broadcast` and `requires_shuffle`."""
        found = self.database.sql(f"EXPLAIN (FORMAT JSON) {sql}").rows()
        answer: dict[str, Any] = json.loads("\n".join(str(row[0]) for row in found))["plans"][0]
        return answer

    def status(self) -> dict[str, Any]:
        """The version, what it runs with, what it can do, and which jobs there are."""
        from penstock import __version__
        from penstock.options.registry import known_connectors, known_formats

        settings = {**default_settings(), **self._settings}
        return {
            "version": __version__,
            "state_backend": settings["state_backend"],
            "state_backend_asked": self._asked["state_backend"],
            "timer_backend": settings["timer_backend"],
            "state_path": None if self.state_path is None else str(self.state_path),
            "checkpoint_interval_seconds": self._interval_seconds(),
            "max_parallelism": settings["max_parallelism"],
            "connectors": sorted(spec.name for spec in known_connectors() if spec.available),
            "formats": sorted(spec.name for spec in known_formats() if spec.available),
            "jobs": {job.name: job.state for job in self.database.jobs()} if self._owner.is_open else {},
        }

    def _interval_seconds(self) -> float:
        interval = {**default_settings(), **self._settings}["checkpoint_interval"]
        assert isinstance(interval, timedelta)
        return interval.total_seconds()

    # the end

    def close(self) -> None:
        """End everything that runs, at a batch boundary, and let the directory go."""
        self._owner.close()

    def shutdown(self) -> None:
        """The same as `close`."""
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _backend(parameter: str, value: object, known: Mapping[str, str]) -> str | None:
    """What a name of a backend means."""
    if value is None:
        return None
    found = known.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise InvalidArgument(
            "INVALID_ARGUMENT", f"{parameter} {value!r} is not known", hint=f"known are {', '.join(known)}"
        )
    return found


def _interval(value: object) -> timedelta | None:
    """A number of seconds as a length of time."""
    if value is None:
        return None
    length = value if isinstance(value, timedelta) else timedelta(0)
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < _LONGEST:
        length = timedelta(seconds=value)
    if length <= timedelta(0):
        raise InvalidArgument(
            "INVALID_ARGUMENT", f"checkpoint_interval_seconds must be a number of seconds above zero, not {value!r}"
        )
    return length


def _setting(parameter: str, value: object) -> tuple[str, object]:
    try:
        return resolve_setting(parameter, option_value(value))
    except OptionError as error:
        expected = error.message.partition(" must be ")[2] or error.message
        raise InvalidArgument("INVALID_ARGUMENT", f"{parameter} must be {expected}", hint=error.hint) from None
