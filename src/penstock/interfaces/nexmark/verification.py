"""The proof: queries run as jobs over a topic, are stopped and resumed, and their answers held against the oracle's."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from penstock.errors import JobFailed, NotYetError, PenstockError
from penstock.frozen import frozen
from penstock.interfaces.database import Database, connect
from penstock.interfaces.nexmark.arrivals import Bidders
from penstock.interfaces.nexmark.oracle import Difference, Oracle, side_input
from penstock.interfaces.nexmark.queries import NexmarkQuery, nexmark_query, setup_script

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.interfaces.nexmark.events import NexmarkEvents

Outcome = Literal["equal", "different", "not there yet", "failed"]
STREAM: Final = "nexmark"
_PARTITIONS: Final = 2
_CHUNKS: Final = 64  # one part of the events goes to one partition, the next to the other
_PATIENT: Final = 900.0


@frozen
class Verdict:
    """What became of one query. why: in words, where it is not equal."""

    query: str
    outcome: Outcome
    rows: int = 0
    why: str = ""
    difference: Difference | None = None


@frozen(kw_only=True)
class Verification:
    """How queries are verified.

    batch_rows: the most events of a batch; None: what the engine takes by itself. resume: whether every job is paused
    in the middle, and the database closed and opened again. at_once: how many jobs run beside each other.
    """

    events: NexmarkEvents
    directory: Path
    batch_rows: int | None = None
    resume: bool = True
    at_once: int = 2
    settings: Mapping[str, object]

    def run(self, names: Sequence[str], tell: Callable[[str], None] = lambda _: None) -> Iterator[Verdict]:
        """The verdicts, one after the other; `tell` hears what is being done."""
        tell("making the events")
        with Oracle(self.events) as oracle:
            yield from _Run(self, [nexmark_query(name) for name in names], tell).verdicts(oracle)


class _Run:
    """Queries in one database, over one topic.

    Only some jobs run at a time: many that start together would wait for each other longer than Spark waits for them.
    """

    def __init__(self, asked: Verification, queries: Sequence[NexmarkQuery], tell: Callable[[str], None]) -> None:
        self._asked = asked
        self._queries = queries
        self._tell = tell
        self._ended: dict[str, Verdict] = {}  # those that will have no answer
        self._turn = 0
        self._bidders = Bidders()

    def verdicts(self, oracle: Oracle) -> Iterator[Verdict]:
        count = self._asked.events.count
        half = count // 2 if self._asked.resume else count
        with self._open() as db:
            db.execute(setup_script())
            if self._asked.batch_rows is not None:
                db.execute(f"ALTER STREAM {STREAM} SET (max_rows_per_batch = {self._asked.batch_rows})")
            db.register_dimension("side_input", side_input(), key="key")
            self._append(db, 0, half)
            for some in self._some():
                self._start(db, some)
                if self._asked.resume:
                    self._pause(db, some)
                else:
                    yield from self._drained(db, some, oracle)
        if not self._asked.resume:
            return
        with self._open() as db:
            self._append(db, half, count)
            for some in self._some():
                for query in self._going(some):
                    self._tell(f"resuming {query.name}")
                    self._execute(db, query, f"RESUME JOB {query.name}")
                yield from self._drained(db, some, oracle)

    def _start(self, db: Database, some: Sequence[NexmarkQuery]) -> None:
        for query in some:
            self._tell(f"starting {query.name}")
            self._execute(db, query, query.writing_to(str(self._files(query))))

    def _pause(self, db: Database, some: Sequence[NexmarkQuery]) -> None:
        """Pause jobs when they have read the first half."""
        self._tell(f"{', '.join(query.name for query in some)}: reading the first half")
        self._settle(db)
        for query in self._going(some):
            self._execute(db, query, f"PAUSE JOB {query.name}")

    def _drained(self, db: Database, some: Sequence[NexmarkQuery], oracle: Oracle) -> Iterator[Verdict]:
        for query in some:
            self._tell(f"draining {query.name}")
            yield self._ended.get(query.name) or self._verdict(db, query, oracle)

    def _going(self, some: Sequence[NexmarkQuery]) -> list[NexmarkQuery]:
        return [query for query in some if query.name not in self._ended]

    def _execute(self, db: Database, query: NexmarkQuery, sql: str) -> None:
        """Run a statement for a query; where that fails, the query has its verdict."""
        try:
            db.execute(sql)
        except NotYetError as error:
            self._ended.setdefault(query.name, Verdict(query.name, "not there yet", why=error.message))
        except PenstockError as error:
            self._ended.setdefault(query.name, Verdict(query.name, "failed", why=str(error)))

    def _some(self) -> Iterator[Sequence[NexmarkQuery]]:
        for first in range(0, len(self._queries), self._asked.at_once):
            yield self._queries[first : first + self._asked.at_once]

    def _open(self) -> Database:
        return connect(self._asked.directory / "home", **self._asked.settings)

    def _append(self, db: Database, first: int, end: int) -> None:
        for batch in self._asked.events.rows("all", first, end):
            for part in _parts(batch, max(100, self._asked.events.count // _CHUNKS)):
                partition = self._turn % _PARTITIONS
                db.append(STREAM, part, partition=partition)
                self._bidders.add(partition, part)
                self._turn += 1

    def _settle(self, db: Database) -> None:
        while True:
            try:
                db.settle(_PATIENT)
                return
            except JobFailed as error:
                self._ended[error.job] = Verdict(error.job, "failed", why=str(error))
                kind = "SINK" if self._named(error.job).writes_files else "MATERIALIZED VIEW"
                db.execute(f"DROP {kind} {error.job}")

    def _verdict(self, db: Database, query: NexmarkQuery, oracle: Oracle) -> Verdict:
        try:
            db.drain(query.name, _PATIENT)
            late = db.sql(f"SELECT COUNT(*) FROM penstock.late_rows WHERE job = '{query.name}'").rows()[0][0]
            if late:
                return Verdict(query.name, "different", why=f"{late} rows came late, and none does")
            answer = (
                oracle.files(self._files(query))
                if query.writes_files
                else db.sql(f"SELECT * FROM {query.name}").arrow()
            )
            if query.by_the_clock:
                oracle.add("arrivals", self._bidders.arrivals(db.path / "jobs" / query.name / "checkpoint"))
        except (PenstockError, TimeoutError) as error:
            return Verdict(query.name, "failed", why=str(error))
        found = oracle.compare(query.oracle, answer)
        if found.none:
            return Verdict(query.name, "equal", found.rows)
        why = found.columns or f"{found.missing} rows are missing, {found.more} are too many"
        return Verdict(query.name, "different", found.rows, why, found)

    def _files(self, query: NexmarkQuery) -> Path:
        return self._asked.directory / "files" / query.name

    def _named(self, name: str) -> NexmarkQuery:
        return next(query for query in self._queries if query.name == name)


def _parts(batch: pa.RecordBatch, size: int) -> Iterable[pa.RecordBatch]:
    return (batch.slice(first, size) for first in range(0, batch.num_rows, size))
