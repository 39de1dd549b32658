"""A home with a name that needs quoting, and what stands below jobs there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import penstock
from penstock import PenstockError
from tests.engine.answers import ms, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.mark.slow
def test_blanks_and_letters_of_all_kinds(opened: Callable[..., penstock.Database], tmp_path: Path) -> None:
    """H10: everything is under the state path, whatever it is called; arrays may hold NULLs; jobs keep what they read."""
    db = opened("st b ü %41 #1")
    db.execute("""
        CREATE STREAM s (k STRING, v BIGINT, ar ARRAY<INT>, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        CREATE VIEW positive AS SELECT k, v, ts FROM s WHERE v > 0;
        CREATE MATERIALIZED VIEW totals AS SELECT k, SUM(v) AS total FROM positive GROUP BY k;
        CREATE MATERIALIZED VIEW arrays AS SELECT ar, COUNT(*) AS n FROM s GROUP BY ar;
        CREATE MATERIALIZED VIEW minutes AS
        SELECT k, COUNT(*) AS n, MAX(ar) AS largest FROM s GROUP BY k, TUMBLE(ts, INTERVAL '1' MINUTE);
    """)
    rows = [("a", 1, [1, None]), (None, None, None), ("b", 5, []), ("b", 6, [None])]
    db.append("s", [{"k": k, "v": v, "ar": ar, "ts": ms(1)} for k, v, ar in rows])
    db.settle()
    assert read(db, "totals") == [("a", 1), ("b", 11)]
    assert sorted(read(db, "arrays"), key=repr) == sorted(((ar, 1) for _, _, ar in rows), key=repr)
    for replaced in (
        "CREATE OR REPLACE VIEW positive AS SELECT k, v * 1000 AS v, ts FROM s",
        "CREATE OR REPLACE STREAM s (k STRING, v BIGINT, ar ARRAY<INT>, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '9' SECOND)",
    ):
        with pytest.raises(PenstockError) as error:
            db.execute(replaced)
        assert error.value.condition == "DEPENDENT_OBJECTS"
    db.drain("minutes")
    assert sorted(read(db, "minutes"), key=repr) == [("a", 1, [1, None]), ("b", 2, [None]), (None, 1, None)]
    assert [path.name for path in tmp_path.iterdir()] == ["st b ü %41 #1"]
