"""Sinks over materialized views: commit by commit, each once, through failures, restarts and crashes (A7, G16, G18)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.failpoints import VARIABLE, enabled
from penstock.stores.topics import TopicReader
from tests.project import ROOT
from tests.unit.runtime.fed_views import Fed

BATCHES = 9
QUERIES = {
    "rows": "SELECT id, v * 2 AS w, s FROM added WHERE v > 1",
    "newest": "SELECT k, n, t FROM sums WHERE n > 1",
    "keys": "SELECT n, COUNT(*) AS c, MAX(t) AS t FROM sums GROUP BY n",
    "best": "SELECT id, v FROM added ORDER BY v DESC NULLS LAST, id LIMIT 4",
}
JOBS = ("rows", "newest", "keys", "best", "insert_envelopes")


def script(directory: Path) -> str:
    def file(name: str, changes: str) -> str:
        path = directory / f"{name}.json"
        given = f"connector = 'file', path = '{path}', format = 'json', single_file = true{changes}"
        return f"CREATE SINK {name} WITH ({given}) AS {QUERIES[name]};"

    return (
        file("rows", "")
        + file("newest", ", changes = 'upsert'")
        + file("keys", ", changes = 'upsert'")
        + file("best", ", changes = 'retract'")
        + "CREATE STREAM envelopes (k BIGINT, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) "
        "WITH (connector = 'topic', format = 'debezium-json', partitions = 2);"
        "INSERT INTO envelopes SELECT k, n FROM sums;"
    )


def lines(directory: Path, name: str) -> list[dict[str, Any]]:
    path = directory / f"{name}.json"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def asked(fed: Fed, query: str) -> Counter[tuple[Any, ...]]:
    return Counter(fed.db.sql(query).rows())


def folded(changes: list[dict[str, Any]], key: str) -> Counter[tuple[Any, ...]]:
    """Upserts, which must fit each other."""
    latest: dict[Any, tuple[Any, ...]] = {}
    for change in changes:
        row = tuple(value for name, value in change.items() if name != "_op")
        if change["_op"] == "delete":
            assert latest.pop(change[key]) == row, "what was never there is deleted"
        else:
            assert latest.get(change[key]) != row, "what is there is written again"
            latest[change[key]] = row
    return Counter(latest.values())


def check(fed: Fed, directory: Path) -> None:
    """Everything that is in the views is in the sinks, once."""
    fed.db.settle(120)
    plain = [tuple(row.values()) for row in lines(directory, "rows")]
    assert Counter(plain) == asked(fed, QUERIES["rows"])
    assert folded(lines(directory, "newest"), "k") == asked(fed, QUERIES["newest"])
    assert folded(lines(directory, "keys"), "n") == asked(fed, QUERIES["keys"])
    bag: Counter[tuple[Any, ...]] = Counter()
    for change in lines(directory, "best"):
        bag[change["id"], change["v"]] += 1 if change["_op"] == "insert" else -1
        assert bag[change["id"], change["v"]] >= 0, "a row is taken back that is not there"
    assert +bag == asked(fed, QUERIES["best"])
    assert envelopes(fed) == asked(fed, "SELECT k, n FROM sums")


def envelopes(fed: Fed) -> Counter[tuple[Any, ...]]:
    """Debezium's records, each key in its own partition, in order."""
    bag: Counter[tuple[Any, ...]] = Counter()
    reader = TopicReader(fed.db.path / "topics" / "envelopes")
    for partition, end in reader.ends().items():
        for batch in reader.read(partition, 0, end, ["__value"]):
            for value in batch.column("__value").to_pylist():
                record = json.loads(value)
                for side, sign in (("before", -1), ("after", 1)):
                    if record[side] is not None:
                        bag[tuple(record[side].values())] += sign
                        assert bag[tuple(record[side].values())] >= 0, "a row is taken back that is not there"
    return +bag


def test_every_sink_follows_its_view_through_failures_and_restarts(tmp_path: Path) -> None:
    fed = Fed(tmp_path / "home")
    for number in range(2):
        fed.feed(number)  # what is there before the sinks are
    fed.db.execute(script(tmp_path))
    check(fed, tmp_path)
    for number in range(2, BATCHES):
        if number == 3:
            with enabled("sink.after_write", "error@1"):
                fed.feed(number)
                fed.db.settle(120)  # what may pass is tried again, under the same number
            assert sum(job.restarts for job in fed.db.jobs()) == 1
        elif number == 5:
            for job in JOBS:
                fed.db.execute(f"PAUSE JOB {job}")
            before = {name: lines(tmp_path, name) for name in QUERIES}
            fed.feed(number)
            assert {name: lines(tmp_path, name) for name in QUERIES} == before
            for job in JOBS:
                fed.db.execute(f"RESUME JOB {job}")
        elif number == 6:
            fed.close()
            fed = Fed(tmp_path / "home")
            fed.feed(number)
        else:
            fed.feed(number)
        check(fed, tmp_path)
    batches = {job.name: job for job in fed.db.jobs()}
    assert batches["rows"].lag == 0
    assert (batches["rows"].reads, batches["rows"].writes) == (("added",), "rows")
    assert batches["rows"].input_rows == fed.store.last_seq("added")
    assert fed.store.ledger("rows").batch_id < BATCHES  # type: ignore[union-attr]
    _end(fed)


def _end(fed: Fed) -> None:
    """What stands on a view goes with it, its hidden views, too."""
    with pytest.raises(PenstockError, match="rows") as refused:
        fed.db.execute("DROP MATERIALIZED VIEW added")
    assert refused.value.condition == "DEPENDENT_OBJECTS"
    fed.db.execute("DROP SINK best")
    fed.db.execute("DROP MATERIALIZED VIEW sums CASCADE")
    assert [job.name for job in fed.db.jobs()] == ["added", "rows"]
    assert [spec.name for spec in fed.store.specs()] == ["added"]
    fed.close()


def test_each_commit_is_a_batch_of_its_own(tmp_path: Path) -> None:
    """Also those that came while nobody wrote: what a sink gets is merged by commit, not by chance."""
    fed = Fed(tmp_path / "home")
    fed.db.execute(script(tmp_path))
    fed.db.settle(120)
    with enabled("sink.before_write", "sleep(300)"):
        for number in range(5):
            fed.feed(number)
    check(fed, tmp_path)
    commits = {change.batch_id for change in fed.store.changes("added", 0)}
    entry = fed.store.ledger("rows")
    assert entry is not None
    assert entry.batch_id + 1 == len(commits)
    assert entry.counters["input_rows"] == fed.store.last_seq("added")
    assert entry.counters["output_rows"] == len(lines(tmp_path, "rows"))
    fed.close()


@pytest.mark.parametrize(
    "point", ["sink.before_write@4", "sink.after_write@4", "view.before_commit@14", "view.after_commit@14"]
)
def test_a_killed_process_writes_nothing_twice_and_loses_nothing(tmp_path: Path, point: str) -> None:
    name, _, nth = point.partition("@")
    program = (
        "import sys; from pathlib import Path; from tests.unit.runtime.test_view_sinks import *;"
        "home = Path(sys.argv[1]); fed = Fed(home / 'home'); fed.db.execute(script(home));"
        "[(fed.feed(number), fed.db.settle(120)) for number in range(BATCHES)]; fed.close()"
    )
    environment = {
        **os.environ,
        VARIABLE: f"{name}=crash@{nth}",
        "PYTHONPATH": os.pathsep.join(map(str, (ROOT / "src", ROOT))),
    }
    killed = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert killed.returncode == 137, killed.stderr[-2_000:]
    fed = Fed(tmp_path / "home")
    fed.db.execute(script(tmp_path))  # those that were not there yet
    for number in range(BATCHES):
        fed.feed(number)
    check(fed, tmp_path)
    fed.close()


def test_what_cannot_follow_is_refused(tmp_path: Path) -> None:
    fed = Fed(tmp_path / "home")
    fed.db.execute(
        "CREATE STREAM plain (k BIGINT, n BIGINT) WITH (connector = 'topic');"
        "CREATE STREAM other (k BIGINT, n BIGINT, PRIMARY KEY (n) NOT ENFORCED) "
        "WITH (connector = 'topic', changes = 'upsert')"
    )
    for statement, condition in (
        ("INSERT INTO plain SELECT k, n FROM sums", "SINK_CANNOT_UPDATE"),
        ("INSERT INTO other SELECT k, n FROM sums", "KEY_MISMATCH"),
        ("CREATE SINK x WITH (connector = 'console') AS SELECT k, RAND() AS r FROM sums", "QUERY_NOT_YET"),
    ):
        with pytest.raises(PenstockError) as refused:
            fed.db.execute(statement)
        assert refused.value.condition == condition, refused.value
    explained = "\n".join(row[0] for row in fed.db.sql("EXPLAIN INSERT INTO plain SELECT k, v FROM added").rows())
    assert "append: rows are only added" in explained
    assert "no Spark: the rows of each commit of added are read from the view store and written" in explained
    explained = "\n".join(
        row[0]
        for row in fed.db.sql("EXPLAIN CREATE SINK x WITH (connector = 'console') AS SELECT k, n FROM sums").rows()
    )
    assert "the changes of each commit are written to the sink" in explained
    assert "key (k)" in explained
    fed.close()
