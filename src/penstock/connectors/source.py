"""What a source is to the engine, whatever connector it belongs to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from penstock.catalog.model import SourceDefinition
from penstock.connectors.nudges import Nudges
from penstock.frozen import frozen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.stores.topics.store import TopicStore


@frozen
class ScanRequest:
    """One occurrence of a source in a job's query, and what the job wants of it.

    columns: the physical columns that are needed.
    run: the number of this start of the job; first: where it begins when it has read nothing, None: the oldest rows.
    wait_ms: how long a question for new rows may wait for some. It saves work while nothing happens, and holds up the
        other scans of the job, so it is for jobs with one scan.
    nudges: how the job asks for one more batch, with or without rows; None where another scan of it is asked.
    keep: a directory of the job's own, for what a source has to know again after a restart; None for a query that ends.
    roots: where files may lie; None: anywhere.
    realtime: the rows are for Spark's real-time mode, in which nothing else stands beside Spark's own reader.
    """

    id: str
    definition: SourceDefinition
    columns: tuple[str, ...]
    state_path: Path
    run: int
    job: str
    max_rows_per_batch: int | None = None
    first: Mapping[int, int] | None = field(default=None, hash=False)
    wait_ms: int = 0
    nudges: Nudges | None = field(default=None, hash=False)
    keep: Path | None = None
    roots: tuple[str, ...] | None = None
    realtime: bool = False


class Source(Protocol):
    """A connector as a source of rows; one object for all relations of the connector.

    The frames have the physical columns that were asked for, or `__value` where records are still bytes (`typed` tells
    which), and `__partition`, `__offset` and the hidden columns that the relation's metadata and headers are made of.
    """

    def typed(self, definition: SourceDefinition) -> bool:
        """Whether rows come with their columns; else as bytes, for a format to decode."""

    def stream(self, spark: SparkSession, request: ScanRequest) -> DataFrame:
        """The rows as a stream."""

    def between(self, spark: SparkSession, request: ScanRequest, start: str | None, end: str) -> DataFrame:
        """The same rows as a batch, with every column, for one range of offsets as they stand in Spark's offset log."""

    def partitions(self, request: ScanRequest) -> int:
        """How many partitions there are now."""

    def latest(self, request: ScanRequest, reached: str | None = None) -> Mapping[int, int]:
        """The next offset of each partition as of now: what a job has to reach to have read all that is there.

        `reached` is the newest offset of the job; a generator tells from it how far its clock has come. Partitions of
        which nothing can be said are left out.
        """

    def end(self, request: ScanRequest) -> Mapping[int, int] | None:
        """Where a bounded source ends; None for one without end."""

    def end_offset(self, request: ScanRequest) -> str:
        """An offset behind all there is, or will be in a bounded source: what `between` can read up to."""

    def positions(self, offset: str) -> Mapping[int, int]:
        """The next offset of each partition in an offset of Spark's log."""

    def prepare(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Make ready what the relation needs, when it is created; done again, it changes nothing."""

    def forget(self, definition: SourceDefinition, state_path: Path, topics: TopicStore) -> None:
        """Remove what `prepare` made, when the relation is dropped."""


@runtime_checkable
class FollowedSource(Source, Protocol):
    """A source whose end only its reader knows, and that is told what becomes of its rows."""

    def check(self, definition: SourceDefinition, state_path: Path) -> None:
        """Raises what is wrong with a relation, before there is one."""

    def watermark_us(self, offset: str) -> int | None:
        """The time that every partition has passed at an offset; None where the source does not tell."""

    def committed(self, request: ScanRequest, offset: str) -> None:
        """A batch that ends at this offset is committed."""

    def leave(self, request: ScanRequest, *, wait_s: float) -> None:
        """The run ends: have its reader let go of everything, and wait for it as long as one may."""

    def looked(self, request: ScanRequest, since_us: int) -> bool:
        """Whether the reader has found the end of what there is, and began to look for it after a moment."""


@runtime_checkable
class OutsideSource(FollowedSource, Protocol):
    """A source that Spark reads with a connector of its own, whose offsets we only look at.

    To Spark such a scan is `width` sources, one behind the other in its offset log.
    """

    width: int

    def first(self, request: ScanRequest) -> Mapping[int, int]:
        """Where a new job begins, by the options of the relation."""

    def folded(self, request: ScanRequest, texts: Sequence[str | None], partitions: int) -> str | None:
        """One offset out of those in Spark's log; PARTITIONS_CHANGED where there are more than `partitions` by now."""

    def begun_anew(self, request: ScanRequest, text: str | None, *, repeated: bool) -> str | None:
        """The end of the last batch, in the first of its sources, where it has to be another one: what is read is no
        longer what it was. Else None. `text` is the end in Spark's log, None where there is none; a batch that is
        `repeated` is in the ledger and stays as it is."""

    def took_anew(self, request: ScanRequest) -> None:
        """The end that `begun_anew` gave stands in Spark's log."""

    def gone(self, request: ScanRequest, positions: Mapping[int, int]) -> str | None:
        """What of the rows from these offsets on is not there any more, in words; None where nothing is."""

    def record_place(self, request: ScanRequest, number: int) -> tuple[str, int] | None:
        """The topic and its own partition behind the number of a partition; None where that is not known yet."""

    def lost(self, request: ScanRequest, start: str | None, end: str) -> int:
        """How many offsets of a range could not be read and are skipped, as the relation asks."""
