"""The interface of a connector of your own: a source in a few methods, read by jobs like any other.

A connector hands out Arrow batches and says where it stands. The engine does the rest: it keeps the offsets with the
rows that follow from them, so that after a crash it goes back to where the last batch ended (`seek_to_offset`) and no
row is lost or counted twice. All it asks is that rows behind an offset are the same rows, in the same order, whenever
they are read again.

One object reads one partition. It lives in a process of its own beside the job, so it shares nothing with your program
but what its options say. `penstock.testing.connectors` checks a connector against all of this.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa
    from pydantic import BaseModel

    from penstock.options.schema import OptionSpec


class ConnectorConfig(Mapping[str, Any]):
    """What a connector is set up with: its options by name, with defaults, secrets read.

    `stream` is the relation that is read, `partition` the one of its partitions that this object reads.
    """

    def __init__(self, options: Mapping[str, Any], *, stream: str = "", partition: int = 0) -> None:
        self._options = dict(options)
        self.stream = stream
        self.partition = partition

    def __getitem__(self, key: str) -> Any:
        return self._options[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._options)

    def __len__(self) -> int:
        return len(self._options)

    def __repr__(self) -> str:
        return f"ConnectorConfig({self.stream!r}, partition={self.partition}, options={sorted(self._options)})"


class Connector(ABC):
    """A source of rows. Register it with `penstock.register_connector(name, cls)`.

    An offset is any value that JSON can hold; a list, number or text that grows is best, as people can compare it. It
    names a place between two rows: the one that was handed out last, and the next.
    """

    #: The options of the WITH clause: the fields of a pydantic model, or `OptionSpec`s.
    options: ClassVar[type[BaseModel] | Sequence[OptionSpec]] = ()
    #: Whether the rows come to an end: once `has_more` says no, the job closes its windows and stops.
    bounded: ClassVar[bool] = False
    #: How long a source that had nothing is left alone before it is asked again.
    poll_seconds: ClassVar[float] = 0.1

    def initialize(self, config: ConnectorConfig) -> None:  # noqa: B027  most connectors need it, none must
        """Get ready to read from the beginning. What cannot work with these options is raised here."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of every batch."""

    @abstractmethod
    def get_next_batch(self, max_rows: int) -> pa.RecordBatch | None:
        """The next rows, at most `max_rows`; an empty batch or None when there are none now. It does not wait long."""

    @abstractmethod
    def get_current_offset(self) -> Any:
        """The place behind the last row that was handed out."""

    @abstractmethod
    def seek_to_offset(self, offset: Any) -> None:
        """Go to a place that `get_current_offset` told, in this process or in an earlier one."""

    def has_more(self) -> bool:
        """Whether there may be rows to read now; of a bounded source, whether there are any left."""
        return True

    def commit_offset(self, offset: Any) -> None:  # noqa: B027  where nothing is kept elsewhere, nothing is to do
        """Everything before this offset has been committed: a queue may forget it. Called after the commit, not always
        for every batch, and again after a crash."""

    def extract_watermark(self, batch: pa.RecordBatch) -> int | None:
        """The time in epoch milliseconds before which this partition has no more rows behind this batch.

        None leaves event time to the WATERMARK clause of the stream; a time moves it on further where that is later.
        """
        return None

    def get_partition_count(self) -> int:
        """How many partitions there are; asked of the object for partition 0."""
        return 1

    def shutdown(self) -> None:  # noqa: B027  most have nothing to let go of
        """Let go of everything. It is not called when the process is killed."""
