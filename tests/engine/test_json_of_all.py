"""JSON and maps of nested values of whole groups, gathered by the view store and written by Spark."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

import pytest

import penstock
from tests.engine.answers import at, read

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROW = "STRUCT(id, label, d, ts, tags, p)"
ITEMS = (
    # maps have no order, so their list comes in any
    f"JSON_AGG(STRUCT(id, m)) AS m, JSON_AGG({ROW} ORDER BY id) AS r, JSON_AGG(ts ORDER BY id) AS t, JSON_AGG(d ORDER BY id DESC) AS d, "
    "JSON_AGG(p ORDER BY p, id) FILTER (WHERE id % 2 = 0) AS p, JSON_OBJECT_AGG(label, p) AS o, MAP_AGG(label, p) AS q"
)


def _row(rnd: random.Random, place: int) -> dict[str, Any]:
    def some(value: Any) -> Any:
        return None if rnd.random() < 0.25 else value

    return {
        "id": place,
        "cat": rnd.randrange(3),
        "label": some(rnd.choice(["a", 'b"\\', "é\n", ""])),
        "d": some(Decimal(rnd.randrange(-500, 500)) / 100),
        "ts": some(at(rnd.randrange(100)).replace(microsecond=rnd.choice([0, 120_000, 7]))),
        "tags": some([some(rnd.choice("xyz")) for _ in range(rnd.randrange(3))]),
        "p": some({"x": some(rnd.randrange(9)), "y": some([{"z": some(1.5)}])}),
        "m": some({rnd.choice("kl"): some(rnd.randrange(9))}),
    }


def _in_order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row with its maps by their ids."""
    cat, maps, *others = row
    return (cat, sorted(json.loads(maps), key=lambda each: int(each["id"])), *others)


def test_json_of_groups(db: penstock.Database) -> None:
    """The store gives, to the letter, what Spark gives that keeps the state of the same aggregates itself."""
    db.execute(
        "CREATE STREAM a (id BIGINT, cat BIGINT, label STRING, d DECIMAL(10, 2), ts TIMESTAMP, tags ARRAY<STRING>, "
        "p STRUCT<x: INT, y: ARRAY<STRUCT<z: DOUBLE>>>, m MAP<STRING, INT>)"
    )
    db.execute(f"CREATE MATERIALIZED VIEW kept WITH (state = 'spark') AS SELECT cat, {ITEMS} FROM a GROUP BY cat")
    db.execute(f"CREATE MATERIALIZED VIEW x AS SELECT cat, {ITEMS}, COUNT(DISTINCT label) AS n FROM a GROUP BY cat")
    db.execute(
        "CREATE MATERIALIZED VIEW joined AS SELECT a.cat, JSON_AGG(STRUCT(b.id, b.d AS price)) AS j "
        "FROM a LEFT JOIN a AS b ON a.id = b.cat GROUP BY a.cat"
    )
    rnd = random.Random(3)  # noqa: S311
    rows: list[dict[str, Any]] = []
    for step in range(3):
        new = [_row(rnd, 20 * step + place) for place in range(20)]
        rows += new
        db.append("a", new)
        db.settle(180)
        found = read(db, "x")
        assert [_in_order(row[:-1]) for row in found] == [_in_order(row) for row in read(db, "kept")]
        assert [row[-1] for row in found] == [
            len({row["label"] for row in rows if row["cat"] == cat and row["label"] is not None}) for cat in range(3)
        ]
        for cat, text in read(db, "joined"):
            mine = [row["id"] for row in rows if row["cat"] == cat]
            given = json.loads(text, parse_float=Decimal)
            wanted = [(b["id"], b["d"]) for place in mine for b in rows if b["cat"] == place]
            there = [(each.get("id"), each.get("price")) for each in given]
            # of a row without a partner Spark leaves out all fields, as they are NULL
            alone = [(None, None)] * sum(1 for place in mine if not any(b["cat"] == place for b in rows))
            assert sorted(there, key=repr) == sorted(wanted + alone, key=repr)
