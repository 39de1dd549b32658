"""kill -9 in the middle of commits: what was acknowledged is there, and nothing is there in part."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.stores.views.model import Kind
from penstock.stores.views.store import ViewStore
from tests.project import ROOT
from tests.unit.stores.views.making import (
    append_view,
    batch_table,
    commit,
    expected,
    folded,
    merge_view,
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
        store._commits = 50
    store.maintain()
"""


def prepare(store: ViewStore) -> None:
    for spec in (append_view(), merge_view(), update_view()):
        store.create_view(spec)


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
            for view, kind in KINDS.items():
                count = number_of(store, view)
                assert count in (acknowledged + 1, acknowledged + 2)
                want = expected(kind, [batch_of(number) for number in range(count)])
                assert shown(store, view) == want
                assert folded(store.changes(view, 0, 1_000_000)) == want
                # The next batch may have reached this view and not the others: it is skipped when it comes again.
                again = store.commit(commit(view, acknowledged + 1, batch_table(kind, batch_of(acknowledged + 1))))
                assert again.skipped is (count == acknowledged + 2)
