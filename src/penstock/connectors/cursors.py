"""Reading from a connector of somebody else, one partition at a time: every promise it makes is checked here.

Rows are numbered as they are read, from 0, because the engine counts rows; the connector's own offset is kept beside
the number. Offsets go through JSON before they are compared or handed back, as they do when they are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.connector import Connector, ConnectorConfig
from penstock.errors import PenstockError, RuntimeFailure

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_SHOWN = 200


class Cursor:
    """One partition of a connector that is being read, and where it stands."""

    def __init__(self, name: str, cls: type[Connector], config: ConnectorConfig) -> None:
        self._name = name
        self.partition = config.partition
        self.connector = self._call("__init__", cls)
        self._call("initialize", lambda: self.connector.initialize(config))
        self.number = 0
        self.at = self.first = self.current()

    def partitions(self) -> int:
        found: Any = self._call("get_partition_count", self.connector.get_partition_count)
        if not isinstance(found, int) or found < 1:
            raise self._broken(f"get_partition_count gave {found!r}, and there is at least one partition")
        return found

    def schema(self) -> pa.Schema:
        found: Any = self._call("schema", lambda: self.connector.schema)
        return self._call("schema", found) if callable(found) else found

    def current(self) -> Any:
        """The connector's own offset."""
        found = self._call("get_current_offset", self.connector.get_current_offset)
        try:
            return canonical(found)
        except (TypeError, ValueError):
            raise self._broken(f"get_current_offset gave {type(found).__name__}, which JSON cannot hold") from None

    def seek(self, number: int, at: Any) -> None:
        """Go to the row of a number, which stands at an offset."""
        if (self.number, self.at) != (number, at):
            self._call("seek_to_offset", lambda: self.connector.seek_to_offset(at))
            self.number, self.at = number, at

    def next(self, max_rows: int) -> pa.RecordBatch | None:
        """The next rows; None when there are none now."""
        if not self.has_more():
            return None
        batch = self._call("get_next_batch", lambda: self.connector.get_next_batch(max_rows))
        if batch is None:
            return None
        rows = getattr(batch, "num_rows", None)
        if rows is None or not hasattr(batch, "schema") or not hasattr(batch, "column"):
            raise self._broken(f"get_next_batch gave {type(batch).__name__}, and not an Arrow batch")
        if hasattr(batch, "combine_chunks"):
            batch = batch.combine_chunks().to_batches()[0] if rows else None  # a table is as good
        if not rows:
            return None
        if rows > max_rows:
            raise self._broken(f"get_next_batch gave {rows} rows and was asked for at most {max_rows}")
        before, self.at = self.at, self.current()
        if self.at == before:
            raise self._broken(f"get_next_batch gave {rows} rows and the offset is still {_text(before)}")
        self.number += rows
        return batch

    def has_more(self) -> bool:
        return bool(self._call("has_more", self.connector.has_more))

    def watermark_ms(self, batch: pa.RecordBatch) -> int | None:
        found = self._call("extract_watermark", lambda: self.connector.extract_watermark(batch))
        if found is not None and not isinstance(found, int):
            raise self._broken(f"extract_watermark gave {type(found).__name__}, and not milliseconds since 1970")
        return found

    def commit(self, at: Any) -> None:
        self._call("commit_offset", lambda: self.connector.commit_offset(at))

    def close(self) -> None:
        self._call("shutdown", self.connector.shutdown)

    def exactly(self, number: int, at: Any, rows: int) -> Iterator[pa.RecordBatch]:
        """So many rows from an offset on, which were there before."""
        self.seek(number, at)
        end = number + rows
        while self.number < end:
            batch = self.next(end - self.number)
            if batch is None:
                raise RuntimeFailure(
                    "SOURCE_DATA_LOST",
                    f"connector '{self._name}', partition {self.partition}: {end - self.number} rows behind offset "
                    f"{_text(self.at)} were read once and are gone",
                    hint="create the job again to read what is there",
                )
            yield batch

    def _call(self, method: str, call: Callable[[], T]) -> T:
        try:
            return call()
        except PenstockError:
            raise
        except OSError as error:
            raise RuntimeFailure(
                "SOURCE_UNAVAILABLE",
                f"connector '{self._name}': {method} raised {_told(error)}",
                hint="the job tries again by itself; SHOW JOBS tells how often it has",
            ) from error
        except Exception as error:
            raise RuntimeFailure(
                "CONNECTOR_FAILED",
                f"connector '{self._name}': {method} raised {_told(error)}",
                hint="mend the connector or its options, then RESUME JOB",
            ) from error

    def _broken(self, what: str) -> RuntimeFailure:
        return RuntimeFailure(
            "CONNECTOR_FAILED",
            f"connector '{self._name}', partition {self.partition}: {what}",
            hint="check it with penstock.testing.connectors",
        )


def canonical(offset: Any) -> Any:
    """An offset as it comes back from where it is kept.

    >>> canonical({"file": "a", "at": (1, 2)})
    {'at': [1, 2], 'file': 'a'}
    """
    return json.loads(json.dumps(offset, sort_keys=True, allow_nan=False))


def _told(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:_SHOWN]}" if text else type(error).__name__


def _text(offset: Any) -> str:
    return json.dumps(offset)[:_SHOWN]
