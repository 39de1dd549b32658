"""The program that is killed: declares, appends, and at the end settles, drains and reports what it sees.

python -m tests.chaos.worker …, as `program` says.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

import penstock
from tests.chaos import workload
from tests.chaos.program import PATIENCE, Run, main, plain, rows_of, standing

_LAST_APPENDS: Final = 8


def feed(db: penstock.Database, started: Run, number: int) -> None:
    """Append once."""
    if workload.late_by_design(number):
        db.settle(timeout=PATIENCE)
    rows = workload.rows_of(started.seed, number, started.start)
    for place in db.append(workload.STREAM, [row.appended() for row in rows], partition=number % workload.PARTITIONS):
        started.events.write(
            "appended", number=number, partition=place.partition, first=place.first_offset, count=place.count
        )
    if number % 4 == 3:
        started.events.write("standing", jobs=standing(db))
    time.sleep(started.pause)


def report(db: penstock.Database, jobs: Sequence[str]) -> dict[str, Any]:
    """Everything that can be seen from outside."""
    names = [job for job in jobs if job not in (workload.INSERT, workload.MOVING)]
    views = {view: rows_of(db, f"SELECT * FROM {view}") for view in names}
    changes = {
        view: [
            {"seq": change.seq, "op": change.op, "before": plain(change.before), "row": plain(change.row)}
            for change in db.subscribe(view, since=0, timeout=0.2)
        ]
        for view in names
    }
    result = db.select_once(f"SELECT id, item, doubled, ts FROM {workload.SINK}", timeout=PATIENCE)
    return {
        "views": views,
        "changes": changes,
        "sink": [[plain(value) for value in row] for row in result.rows()],
        "late_rows": rows_of(db, "SELECT * FROM penstock.late_rows"),
        "dead_letters": rows_of(db, "SELECT * FROM penstock.dead_letters"),
        "jobs": standing(db),
    }


def run(started: Run) -> None:
    with started.connect() as db:
        started.events.write("opened", jobs=standing(db))
        db.execute(workload.script(started.jobs))
        started.events.write("declared", jobs=standing(db), notices=db.notices())
        started.appends(lambda number: feed(db, started, number), _LAST_APPENDS)
        started.drain(db)
        db.settle(timeout=PATIENCE)  # a sink over a view, which nobody drains
        started.report(report(db, started.jobs))


if __name__ == "__main__":
    raise SystemExit(main(run))
