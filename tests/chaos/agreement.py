"""What a dead program has left in its view store: ledger, tracker, views and change logs, which must agree.

All of a batch goes into one transaction, or into two where a sink is told in between. So whatever was killed, the ledger
knows of each batch that a view shows, the change log folds up to the view, and Spark's checkpoint is at most one batch
ahead, with the same offsets as the ledger.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from urllib.parse import quote

from penstock.errors import PenstockError
from penstock.runtime.job_spec import changes_view
from penstock.spark.offset_log import committed, latest_batch, planned_batches, read_offsets
from penstock.stores.views.model import LedgerEntry, StoredChange
from penstock.stores.views.store import ViewStore
from tests.chaos.program import plain

_EVERY = 1_000_000


def check_agreement(home: Path, store: ViewStore, jobs: Collection[str]) -> None:
    """Everything that must hold of the store of a dead program, and of the checkpoints beside it."""
    views = {spec.name for spec in store.specs()}
    for job in jobs:
        latest = store.ledger(job)
        _check_tracker(store, job, latest)
        _check_checkpoint(home / "jobs" / quote(job, safe="") / "checkpoint", job, latest)
        if job in views:
            _check_view(store, job, -1 if latest is None else latest.batch_id, latest)
        elif changes_view(job) in views:
            staged = int(store.job_facts(job).get("staged", -1))
            ledger = -1 if latest is None else latest.batch_id
            assert staged <= ledger + 1, f"{job} has brought batch {staged} into its view, and the ledger has {ledger}"
            _check_view(store, changes_view(job), max(staged, ledger), None)


def _check_tracker(store: ViewStore, job: str, latest: LedgerEntry | None) -> None:
    """The tracker is that of the last batch, or one that has moved since, and tells the watermark beside it."""
    kept = store.tracker(job)
    if kept is None:
        assert latest is None, f"{job} has batches and no tracker"
        return
    tracker, watermark = kept
    if tracker:
        told = json.loads(tracker)["watermark_us"]
        assert told == watermark, f"the tracker of {job} says {told}, and the ledger {watermark}"
    if latest is not None:
        assert (latest.tracker, latest.watermark_us) == kept, f"{job}: the ledger has another tracker than the job"


def _check_checkpoint(checkpoint: Path, job: str, latest: LedgerEntry | None) -> None:
    """Spark has planned at most one batch that is not in the ledger, and has none done that is not in it."""
    planned = latest_batch(checkpoint)
    if planned is None:
        return  # a job over views alone, or one that has not begun
    batch = -1 if latest is None else latest.batch_id
    assert batch <= planned <= batch + 1, f"{job}: Spark has planned batch {planned}, and the ledger has {batch}"
    done = committed(checkpoint)
    assert done is None or done <= batch, f"{job}: Spark is done with batch {done}, and the ledger has {batch}"
    if latest is not None and batch in planned_batches(checkpoint):
        found = read_offsets(checkpoint, batch).hash
        assert found == latest.offsets_hash, f"{job}: batch {batch} of the ledger has other offsets than Spark's"


def _check_view(store: ViewStore, view: str, batch: int, latest: LedgerEntry | None) -> None:
    """The change log, from its first entry on, comes to the view, and goes as far as the ledger."""
    shown = store.snapshot(view)
    changes = _changes(store, view)
    if changes is None and latest is None:
        return
    assert changes is not None, f"{view}: its change log does not begin with its first change"
    assert [change.seq for change in changes] == list(range(1, shown.seq + 1)), f"{view}: a gap in the change log"
    batches = [change.batch_id for change in changes if change.batch_id is not None]
    assert batches == sorted(batches), f"{view}: the batches of its change log are in no order"
    assert max(batches, default=-1) <= batch, f"{view}: its change log has batch {batches[-1]}, the ledger {batch}"
    rows = Counter(_text(row) for row in shown.table.to_pylist())
    folded = fold(view, changes)
    assert folded == rows, f"{view}: not in its log {rows - folded}, in its log alone {folded - rows}"
    if latest is None:
        return
    assert shown.batch_id == batch, f"{view} shows batch {shown.batch_id}, and the ledger has {batch}"
    if store.spec(view).finish is not None:
        counted = latest.counters.get("output_rows", 0)
        assert counted == len(changes), f"{view}: the ledger counts {counted} changes, its log has {len(changes)}"


def _changes(store: ViewStore, view: str) -> list[StoredChange] | None:
    """The whole change log; None where its beginning is gone: of a sink, what was written is let go of."""
    try:
        return store.changes(view, 0, _EVERY)
    except PenstockError as error:
        if error.condition == "CHANGELOG_EXPIRED":
            return None
        raise


def fold(view: str, changes: Collection[StoredChange]) -> Counter[str]:
    """The rows that changes come to; none takes back what is not there."""
    found: Counter[str] = Counter()
    for change in changes:
        if change.before is not None:
            before = _text(change.before)
            assert found[before] > 0, f"{view}: {change} takes back a row that is not there"
            found[before] -= 1
        if change.row is not None:
            found[_text(change.row)] += 1
    return +found


def _text(row: dict[str, object]) -> str:
    return json.dumps({name: plain(value) for name, value in row.items()}, sort_keys=True, default=str)
