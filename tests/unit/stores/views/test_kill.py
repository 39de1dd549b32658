"""kill -9 in the middle of commits: what was acknowledged is there, and nothing is there in part; views on views show
the batch of the views below (G18)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.plan.job_plan import plan_job
from penstock.plan.script import analyze_script
from penstock.stores.views.model import Kind
from penstock.stores.views.store import ViewStore
from tests.project import ROOT
from tests.unit.stores.views.chaining import spec_of
from tests.unit.stores.views.making import (
    append_view,
    batch_table,
    commit,
    expected,
    folded,
    merge_view,
    plain,
    shown,
    update_view,
)

pytestmark = pytest.mark.chaos

KINDS: dict[str, Kind] = {"added": "append", "merged": "merge", "updated": "update"}

# Commits batch after batch into three views, and prints each number when all of them are on disk.
WRITER = """
import sys
from pathlib import Path
from penstock.stores.views.model import Kind
from penstock.stores.views.store import ViewStore
from tests.unit.stores.views.test_kill import KINDS, batch_of, number_of, prepare
from tests.unit.stores.views.making import batch_table, commit
store = ViewStore.open(Path(sys.argv[1]))
prepare(store)
for number in range(min(number_of(store, view) for view in KINDS), 100_000):
    for view, kind in KINDS.items():
        store.commit(commit(view, number, batch_table(kind, batch_of(number))))
    print(number, flush=True)
    if number % 7 == 0:
        store._upkeep.commits = 50
    store.maintain()
"""


# Over one view, over that, and over both and another one; under the names of views below in the store and the oracle.
CHAIN = {
    "groups": "SELECT k, COUNT(*) AS n, SUM(total) AS total FROM merged GROUP BY k",
    "all_groups": "SELECT SUM(n) AS n, MAX(total) AS most FROM groups",
    "beside": "SELECT updated.k, updated.x, groups.n FROM updated LEFT JOIN groups ON updated.k = groups.k",
}


def prepare(store: ViewStore) -> None:
    for spec in (append_view(), merge_view(), update_view()):
        store.create_view(spec)
    text = """CREATE STREAM s (k STRING, f DOUBLE, x BIGINT) WITH (connector = 'topic');
        CREATE MATERIALIZED VIEW merged AS SELECT k, f, SUM(x) AS total FROM s GROUP BY k, f;
        CREATE MATERIALIZED VIEW updated AS SELECT k, f, x FROM s;"""
    text += "".join(f"CREATE MATERIALIZED VIEW {name} AS {query};" for name, query in CHAIN.items())
    for name, report in zip(CHAIN, analyze_script(text)[-len(CHAIN) :], strict=True):
        assert report.plan is not None, report.error
        store.create_view(spec_of(name, plan_job(report.plan)))


def check_chain(store: ViewStore) -> None:
    """Each view of the chain is what its query answers over the views below it, and so are its changes."""
    for name, query in CHAIN.items():
        want = sorted((plain(row.values()) for row in store.read(query).table.to_pylist()), key=repr)
        assert shown(store, name) == want, name
        assert folded(store.changes(name, 0, 1_000_000)) == want, f"the changes of {name}"


def number_of(store: ViewStore, view: str) -> int:
    """The batch that is next."""
    entry = store.ledger(view)
    return 0 if entry is None else entry.batch_id + 1


def batch_of(number: int) -> list[tuple[object, ...]]:
    source = random.Random(number)  # noqa: S311
    return [
        (
            source.choice([None, "a", "b"]),
            source.choice([None, 1.0]),
            source.randrange(-9, 10),
            source.randrange(3),
            True,
        )
        for _ in range(20)
    ]


def test_a_killed_writer_leaves_whole_batches(tmp_path: Path) -> None:
    source = random.Random(11)  # noqa: S311
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))}
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
        ) as writer:
            assert writer.stdout is not None
            acknowledged = -1
            for _ in range(source.randrange(3, 12)):
                line = writer.stdout.readline()
                assert line, "the writer has ended by itself"
                acknowledged = int(line)
            time.sleep(source.random() * 0.05)
            writer.send_signal(signal.SIGKILL)
            rest = writer.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged
        with ViewStore.open(tmp_path) as store:
            check_chain(store)
            for view, kind in KINDS.items():
                count = number_of(store, view)
                assert count in (acknowledged + 1, acknowledged + 2)
                want = expected(kind, [batch_of(number) for number in range(count)])
                assert shown(store, view) == want
                assert folded(store.changes(view, 0, 1_000_000)) == want
                # The next batch may have reached this view and not the others: it is skipped when it comes again.
                again = store.commit(commit(view, acknowledged + 1, batch_table(kind, batch_of(acknowledged + 1))))
                assert again.skipped is (count == acknowledged + 2)
            check_chain(store)
