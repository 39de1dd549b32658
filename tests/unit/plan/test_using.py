"""JOIN … USING one after the other: the columns that join are those of the whole chain, beside DuckDB (A11)."""

from __future__ import annotations

import itertools

import duckdb
import pyarrow as pa
import pytest

from penstock.plan.store_text import store_sql
from tests.unit.plan.analysis import planned

VIEWS = """
CREATE STREAM s (k STRING, n1 BIGINT, n2 BIGINT, n3 BIGINT);
CREATE MATERIALIZED VIEW a AS SELECT k, n1 FROM s;
CREATE MATERIALIZED VIEW b AS SELECT k, n2 FROM s;
CREATE MATERIALIZED VIEW c AS SELECT k, n3 FROM s;
"""
ROWS = {
    "a": pa.table({"k": ["1", "4", None], "n1": [1, 4, 9]}),
    "b": pa.table({"k": ["1", "2", "4"], "n2": [1, 2, 4]}),
    "c": pa.table({"k": ["2", "3", "4", None], "n3": [2, 3, 4, 8]}),
}
KINDS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")


@pytest.mark.parametrize(("first", "second"), list(itertools.product(KINDS, repeat=2)))
def test_a_chain(first: str, second: str) -> None:
    query = f"SELECT k, n1, n2, n3 FROM a {first} b USING (k) {second} c USING (k)"
    text = store_sql(planned(VIEWS + query))
    assert text is not None
    with duckdb.connect() as connection:
        for name, rows in ROWS.items():
            connection.register(name, rows)
        ours, right = (connection.execute(sql).fetchall() for sql in (text, query))
    assert sorted(ours, key=str) == sorted(right, key=str)
