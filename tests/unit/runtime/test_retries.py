"""Which dead letters a condition chooses."""

from __future__ import annotations

from pathlib import Path

import penstock
from penstock.plan.analyze import analyze
from penstock.runtime.retries import chosen_places
from penstock.sql.script import parse_statement
from penstock.stores.views import BatchCommit


def test_dead_letters_of_a_condition(tmp_path: Path) -> None:
    import pyarrow as pa

    dead = pa.table(
        {
            "stream": ["s", "s", "t"],
            "partition": pa.array([0, 1, 1], pa.int32()),
            "offset": pa.array([3, 9, 4], pa.int64()),
            "raw": [b"x", b"y", b"z"],
            "reason": ["malformed", "malformed", "not_null"],
            "error": ["e", "e", "f"],
            "recorded_at": pa.array([0, 0, 0], pa.timestamp("us", tz="UTC")),
        }
    )
    with penstock.connect(tmp_path) as db:
        engine = db._engine
        engine.home.views.commit(BatchCommit(job="j", batch_id=0, offsets_hash="h", tracker="{}", dead=dead))
        for condition, wanted in (
            ("partition = 1", {("j", "s", 1, 9), ("j", "t", 1, 4)}),
            ("reason = 'malformed' AND offset < 5", {("j", "s", 0, 3)}),
            ("job <> 'j'", set()),
        ):
            plan = analyze(parse_statement(f"RETRY DEAD LETTERS WHERE {condition}"), engine.session).plan
            assert plan is not None
            assert chosen_places(engine, plan) == wanted, condition
