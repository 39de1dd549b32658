"""The values that go into the view store and come out of it. Times are microseconds since 1970 in UTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from penstock.frozen import frozen

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.plan.finish_plan import FinishPlan
    from penstock.plan.joined_pane_plan import JoinedPanes
    from penstock.plan.merge_plan import MergePlan
    from penstock.plan.pane_plan import PanePlan
    from penstock.plan.windows_plan import WindowsPlan
    from penstock.types import SqlType

Kind = Literal["append", "merge", "panes", "windows", "update", "finish"]
Operation = Literal["insert", "update", "delete"]

# In batches of `update` views: whether the row of the key is in the view from now on. NULL counts as false.
KEEP = "__keep"


@frozen
class ViewSpec:
    """What a view keeps, and how a batch changes it.

    `columns` are the ones a reader sees. `hidden` are further columns of the batches of `update` views, kept but not
    shown. `key` are names of either; a `merge` view takes its keys from the merge plan. A `panes` view has a merge plan
    too, and rows are only added to it, as windows close; `joined` says what is made of windows that are joined. A
    `windows` view has one as well; its rows change until their windows close. A `finish` view is answered from the rows
    of its batches, which it keeps. `retention_us` is how long changes can be asked for, None for ever. `ttl_us` is how
    long a `merge` view keeps a key that no row comes for, and a `finish` view a row; None for ever.
    """

    name: str
    columns: tuple[tuple[str, SqlType], ...]
    kind: Kind = "append"
    key: tuple[str, ...] = ()
    merge: MergePlan | None = None
    retention_us: int | None = None
    hidden: tuple[tuple[str, SqlType], ...] = ()
    panes: PanePlan | None = None
    joined: JoinedPanes | None = None
    windows: WindowsPlan | None = None
    finish: FinishPlan | None = None
    ttl_us: int | None = None


@frozen
class SeenVersion:
    """The version of a dimension that a batch sees; `read` gives its rows, and is asked where the version is another
    one than that of the batch before."""

    relation: str
    number: int
    read: Callable[[], pa.Table]


@frozen
class PartitionOffset:
    """How far a job has read a partition of one of its inputs: the last offset it has committed, and when."""

    connector_id: str
    partition: int
    offset: int
    timestamp_us: int | None = None


@frozen
class BatchCommit:
    """Everything that one batch of a job leaves behind.

    `counters` are what this batch adds to the job's counters. `offsets` name only the partitions that moved. `late` and
    `dead` have the columns of penstock.late_rows and penstock.dead_letters without `job`; columns that are missing are
    NULL, and a missing `batch_id` is this batch. `size_bytes` is what the batch wrote, by default the size of its rows.
    `closing_us` is the watermark under which the batch ran: it closes the windows of a `panes` or `windows` view that
    end by then. `retried` are places of dead letters that the batch has read, and that are none any more. `clock_us` is
    the time of the batch, the same whenever it is run again: by it a view tells what is too old to be kept.
    `versions` are those of the dimensions whose rows a `finish` view keeps, the same whenever the batch is run again.
    """

    job: str
    batch_id: int | None
    offsets_hash: str = ""
    watermark_us: int | None = None
    tracker: str = ""
    view: str | None = None
    rows: pa.Table | None = None
    late: pa.Table | None = None
    dead: pa.Table | None = None
    offsets: tuple[PartitionOffset, ...] = ()
    counters: Mapping[str, float] = field(default_factory=dict)
    input_rows: int = 0
    started_at_us: int | None = None
    size_bytes: int | None = None
    closing_us: int = 0
    retried: tuple[tuple[str, int, int], ...] = ()
    clock_us: int = 0
    versions: tuple[SeenVersion, ...] = ()


@frozen
class CommitResult:
    """What a commit did. Without changes `first_seq` is one past `last_seq`; both are 0 for a job without a view."""

    skipped: bool
    changes: int = 0
    first_seq: int = 0
    last_seq: int = 0


@frozen
class LedgerEntry:
    """The last batch that a job has committed. `tracker` and `watermark_us` are newer where they moved outside it."""

    job: str
    batch_id: int
    offsets_hash: str
    watermark_us: int | None
    tracker: str
    offsets: tuple[PartitionOffset, ...]
    counters: Mapping[str, float]
    input_rows: int
    size_bytes: int
    started_at_us: int
    completed_at_us: int


@frozen
class StoredChange:
    """One change of a view, in the order of `seq`."""

    seq: int
    op: Operation
    before: dict[str, Any] | None
    row: dict[str, Any] | None
    batch_id: int | None
    watermark_us: int | None
    committed_at_us: int | None


@frozen
class Snapshot:
    """A whole view as of one sequence number, from which its changes go on."""

    seq: int
    batch_id: int | None
    watermark_us: int | None
    table: pa.Table


AsOf = tuple[int | None, int | None]


@frozen
class Answer:
    """The answer of a query, and for each view it read the batch and watermark it is as of (None: no batch yet)."""

    table: pa.Table
    as_of: Mapping[str, AsOf]


@frozen
class Kept:
    """How long what jobs leave behind is kept, in microseconds; None is for ever."""

    late_rows_us: int | None = None
    dead_letters_us: int | None = None
    job_history_us: int | None = None

    @property
    def shortest_us(self) -> int | None:
        """The shortest of them."""
        return min(
            (each for each in (self.late_rows_us, self.dead_letters_us, self.job_history_us) if each), default=None
        )


@frozen
class JobTransition:
    """A row of penstock.job_history."""

    job: str
    at_us: int
    from_state: str | None
    to_state: str
    reason: str | None = None
