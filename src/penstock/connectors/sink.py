"""What a sink is to the engine, whatever connector it belongs to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TextIO, runtime_checkable

from penstock.catalog.model import SinkDefinition
from penstock.frozen import frozen

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from penstock.stores.topics.store import TopicStore

# The column that stands before the others where rows can change: 'upsert', 'insert' or 'delete'.
OPERATION: Final = "_op"
# The column behind the others where each row comes with the bytes of its record.
RECORD: Final = "__record"


def _unknown_input(_: int) -> str:
    return ""


def _never_in_doubt(_: int) -> bool:
    return False


@frozen
class SinkContext:
    """Who writes, and with what.

    producer: what a topic knows the job's batches by; another one when the job is created anew and counts from 0 again.
    encode: rows to one record of bytes each, in the format of the sink; None where it has none.
    encode_frame: the same inside Spark, as a further column `__record`, of all columns or of those named after it.
    encode_key, encode_key_frame: the same for the key of a record, in the format of keys.
    output: where a console prints; the process's own output where none is given.
    state_path: the state directory, by which secrets are found.
    roots: where files may lie; None: anywhere.
    input_hash: what tells the input of a batch from that of another one with its number; empty where that is not known.
    in_doubt: whether an earlier run of the job, which wrote rows, may have written a batch its ledger does not have.
    """

    job: str
    producer: str
    definition: SinkDefinition
    topics: TopicStore
    encode: Callable[[pa.Table], pa.Array] | None = None
    encode_frame: Callable[..., DataFrame] | None = None
    encode_key: Callable[[pa.Table], pa.Array] | None = None
    encode_key_frame: Callable[..., DataFrame] | None = None
    output: TextIO | None = None
    state_path: Path = Path()
    roots: tuple[str, ...] | None = None
    input_hash: Callable[[int], str] = _unknown_input
    in_doubt: Callable[[int], bool] = _never_in_doubt


def record_values(rows: pa.Table, context: SinkContext) -> pa.Array | pa.ChunkedArray:
    """The records of rows: those that come with them, or as the format of the sink writes them."""
    if RECORD in rows.column_names:
        return rows.column(RECORD)
    assert context.encode is not None, "a sink with a format is given its encoder"
    return context.encode(rows)


class Sink(Protocol):
    """A connector as a place for rows; one object for all relations of the connector."""

    @property
    def takes_frame(self) -> bool:
        """Whether Spark itself gets rid of the rows, so that `write` is not called."""

    @property
    def exactly_once(self) -> bool:
        """Whether a batch that is written again leaves no row twice."""

    def prepare(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Make ready what the sink needs, when it is created; done again, it changes nothing."""

    def forget(self, definition: SinkDefinition, state_path: Path, topics: TopicStore) -> None:
        """Remove what `prepare` made, when the sink is dropped."""

    def write(self, rows: pa.Table, context: SinkContext, batch_id: int | None) -> None:
        """Write the rows of a batch; without a number they belong to none, and are written as often as it is asked."""


@runtime_checkable
class CheckedSink(Protocol):
    """A sink that can tell before the first row that it cannot write."""

    def check(self, context: SinkContext) -> None:
        """Raises what is wrong with the options, their secrets included."""


@runtime_checkable
class ReachedSink(Protocol):
    """A sink over a network, where somebody who creates a job for it wants to know at once that nobody is there."""

    def reach(self, context: SinkContext) -> None:
        """Raises SINK_UNAVAILABLE where nobody answers; takes no longer than somebody waits at a prompt."""


@runtime_checkable
class StreamedSink(Protocol):
    """A sink that Spark writes to by itself, without batches of ours, in its real-time mode."""

    def streamed(self, frame: DataFrame, context: SinkContext) -> DataStreamWriter:
        """The stream of rows on its way to the sink, ready to be started."""


@runtime_checkable
class HeldSink(Protocol):
    """A sink that holds connections for a job while it runs."""

    def leave(self, context: SinkContext) -> None:
        """A run of the job ends: let go of them."""


@runtime_checkable
class LaterSeenSink(Protocol):
    """A sink whose readers see what was written a moment later than it is told to be there."""

    def wait_until_seen(self, definition: SinkDefinition, state_path: Path, seconds: float) -> None:
        """Return when they see what is written by now, or after so long: somebody else's rows may hold it up."""


@frozen
class Staged:
    """Rows of a batch that are written and not visible yet; no `parts`: nothing is left to do for them.

    rows: how many; None where the sink does not know.
    """

    rows: int | None
    parts: tuple[Any, ...] = ()


@runtime_checkable
class FrameSink(Protocol):
    """A sink that Spark's tasks write to, so that rows need not pass through our own process.

    `stage` is the action on a batch's frame, and `publish` is called with what it returned before the batch is in the
    ledger. Both can happen again for the same batch.
    """

    @property
    def tells_rows(self) -> bool:
        """Whether `stage` knows how many rows it has written; else Spark counts them on their way to it."""

    def stages(self, definition: SinkDefinition) -> bool:
        """Whether rows of this relation go this way; else `write` gets them."""

    def stage(self, frame: DataFrame, context: SinkContext, batch_id: int) -> Staged:
        """Write the rows of a batch where nobody sees them."""

    def publish(self, staged: Staged, context: SinkContext, batch_id: int) -> None:
        """Make them visible."""
