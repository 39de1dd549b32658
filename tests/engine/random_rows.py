"""Random rows in random batches over random partitions, in disorder that the delay allows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from penstock.frozen import frozen
from tests.engine.random_queries import KEYS, SECOND

DELAY_US: Final = 5 * SECOND
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_BASES: Final = (0, 1_767_225_600 * SECOND)


@frozen
class Row:
    """A row of the stream; `time_us` None is a NULL time."""

    id: int
    k: str | None
    g: int | None
    v: int | None
    x: float | None
    time_us: int | None

    @property
    def usable_time(self) -> bool:
        """Whether a window can hold it: it has a time, and not one before 1970."""
        return self.time_us is not None and self.time_us >= 0

    def appended(self) -> dict[str, Any]:
        """The row as a program hands it over."""
        time = None if self.time_us is None else _EPOCH + timedelta(microseconds=self.time_us)
        return {"id": self.id, "k": self.k, "g": self.g, "v": self.v, "x": self.x, "ts": time}

    def values(self) -> tuple[Any, ...]:
        return (self.id, self.k, self.g, self.v, self.x, self.time_us)


@frozen
class Append:
    """Rows that are appended together; `settled`: the jobs are waited for behind it."""

    partition: int
    rows: tuple[Row, ...]
    settled: bool
    stream: int = 0


@frozen
class Workload:
    partitions: int
    appends: tuple[Append, ...]

    def rows(self) -> list[Row]:
        return [row for append in self.appends for row in append.rows]


def _maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, st.none())


_STEPS: Final = st.one_of(
    st.integers(0, 3 * SECOND),
    st.sampled_from([0, 1, 1000, SECOND - 1, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 61 * SECOND]),
)
# The delay is exclusive: a row exactly at the watermark is in time, but a session that ended there has closed before it.
_BEHIND: Final = st.one_of(
    st.just(0), st.integers(0, DELAY_US - 1000), st.sampled_from([1000, SECOND, DELAY_US - 1000])
)


@st.composite
def workloads(draw: st.DrawFn, streams: int = 1) -> Workload:
    """Rows whose times never fall behind the largest one before them by the delay or more."""
    partitions = draw(st.integers(1, 3 if streams == 1 else 2))
    newest = draw(st.sampled_from(_BASES))
    appends: list[Append] = []
    number = 0
    for _ in range(draw(st.integers(4, 9))):
        rows: list[Row] = []
        for _ in range(draw(st.integers(0, 9))):
            number += 1
            kind = draw(st.integers(0, 19))
            if kind == 0:
                time: int | None = None
            elif kind == 1:
                time = -draw(st.sampled_from([1, 1000, SECOND, 86_400 * SECOND]))
            else:
                newest += draw(_STEPS) if kind < 12 else 0
                # 1970 itself is where a watermark begins: a join takes no row of it.
                time = max(1, newest - draw(_BEHIND))
            rows.append(
                Row(
                    number,
                    draw(_maybe(st.sampled_from(KEYS))),
                    draw(_maybe(st.integers(-2, 2))),
                    draw(_maybe(st.integers(-100, 100))),
                    draw(_maybe(st.integers(-40, 40).map(lambda half: half / 2))),
                    time,
                )
            )
        partition, stream = draw(st.integers(0, partitions - 1)), draw(st.integers(0, streams - 1))
        appends.append(Append(partition, tuple(rows), draw(st.booleans()), stream))
    return Workload(partitions, tuple(appends))
