"""Dimension tables of a database, without any job: registered, read, shown, updated, dropped, there again (L1-L6, L20)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest

import penstock
from penstock import DimensionBroadcastManager, PenstockError

SECURITIES = pa.table(
    {"instrumentId": ["AAPL", "MSFT"], "NAME": ["Apple", "Microsoft"], "rating": pa.array([1, 2], pa.int32())}
)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[penstock.Database]:
    with penstock.connect(tmp_path / "home") as opened:
        yield opened


def rows(db: penstock.Database, sql: str) -> list[tuple[object, ...]]:
    return db.sql(sql).rows()


def test_life_of_a_dimension(tmp_path: Path) -> None:
    """Registered once, there after every opening at its last version, gone with DROP TABLE (L1, L20)."""
    with penstock.connect(tmp_path) as db:
        assert db.register_dimension("securities", SECURITIES, broadcast=True) == 1
        assert rows(db, "SELECT name, rating FROM securities WHERE instrumentid = 'MSFT'") == [("Microsoft", 2)]
        assert rows(db, "SELECT COUNT(*) AS n, SUM(rating) AS r FROM Securities") == [(2, 3)]
        assert rows(db, "SHOW TABLES")[0][:2] == ("securities", "dimension")
        assert rows(db, "DESCRIBE securities")[0][:2] == ("instrumentId", "STRING")
        assert rows(db, "SELECT name, type FROM penstock.columns WHERE relation = 'securities' AND position = 3") == [
            ("rating", "INT")
        ]
        assert db.register_dimension("securities", SECURITIES) == 1, "the same rows again are the same version"
        assert any("same definition" in notice for notice in db.notices())
        assert db.update_dimension("SECURITIES", SECURITIES.slice(1)) == 2
        db.update_dimension("securities", SECURITIES.slice(1))
        assert any("has these rows already: version 2" in notice for notice in db.notices())
    with penstock.connect(tmp_path) as db:
        assert rows(db, "SELECT instrumentId FROM securities") == [("MSFT",)]
        assert rows(db, "SELECT name, kind, version, rows, broadcast, copies, jobs FROM penstock.dimensions") == [
            ("securities", "dimension", 2, 1, True, 1, None)
        ]
        assert db.update_dimension("securities", []) == 3
        assert rows(db, "SELECT * FROM securities") == []
        db.execute("DROP TABLE securities")
        assert not list((tmp_path / "dimensions").iterdir())
        with pytest.raises(PenstockError) as raised:
            db.sql("SELECT * FROM securities")
        assert raised.value.condition == "UNKNOWN_RELATION"
    with penstock.connect(tmp_path) as db:
        assert rows(db, "SELECT * FROM penstock.dimensions") == []
        assert db.register_dimension("securities", SECURITIES) == 1


def test_joins_with_other_dimensions(db: penstock.Database) -> None:
    db.register_dimension("securities", SECURITIES)
    db.register_dimension("ratings", pl.DataFrame({"id": [1], "word": ["good"]}))
    assert rows(
        db,
        "SELECT s.NAME, r.word FROM securities s LEFT JOIN ratings r ON r.id = s.rating ORDER BY s.NAME",
    ) == [("Apple", "good"), ("Microsoft", None)]


@pytest.mark.parametrize(
    ("name", "data", "key", "query", "answer"),
    [
        ("securities", SECURITIES, "instrumentId", "SELECT NAME FROM securities WHERE rating = 1", ("Apple",)),
        (
            "products",
            [{"sku": "A-1", "title": "Lamp", "price": 9.5}, {"sku": "B-2", "title": None, "price": 3.0}],
            "sku",
            "SELECT COUNT(title) AS titles, MAX(price) AS most FROM products",
            (1, 9.5),
        ),
        (
            "countries",
            pl.DataFrame({"code": ["DE", "CH"], "eu": [True, False], "languages": [["de"], ["de", "fr"]]}),
            "code",
            "SELECT eu, languages FROM countries WHERE code = 'CH'",
            (False, ["de", "fr"]),
        ),
    ],
    ids=["securities", "products", "reference data"],
)
def test_examples(
    db: penstock.Database, name: str, data: object, key: str, query: str, answer: tuple[object, ...]
) -> None:
    """L15."""
    db.register_dimension(name, data, key=key)
    assert rows(db, query) == [answer]


def test_what_is_refused(db: penstock.Database) -> None:
    db.register_dimension("securities", SECURITIES, key="instrumentid")
    assert rows(db, "DESCRIBE securities")[0][3] == "yes"
    db.execute("CREATE STREAM s (k STRING)")
    twice = pa.concat_tables([SECURITIES, SECURITIES])
    for call, condition in (
        (lambda: db.update_dimension("nobody", SECURITIES), "UNKNOWN_RELATION"),
        (lambda: db.update_dimension("s", SECURITIES), "WRONG_OBJECT_KIND"),
        (lambda: db.register_dimension("s", SECURITIES), "WRONG_OBJECT_KIND"),
        (lambda: db.update_dimension("securities", [{"instrumentId": "A"}]), "INVALID_ROWS"),
        (lambda: db.update_dimension("securities", twice), "DUPLICATE_KEYS"),
        (lambda: db.register_dimension("other", SECURITIES, key="nothing"), "INVALID_DEFINITION"),
        (lambda: db.execute("ALTER TABLE securities RENAME TO other"), "UNSUPPORTED_STATEMENT"),
    ):
        with pytest.raises(PenstockError) as raised:
            call()
        assert raised.value.condition == condition, raised.value
    assert rows(db, "SELECT COUNT(*) AS n FROM securities") == [(2,)], "nothing of a refused version stays"
    (db.path / "dimensions" / "securities" / "v1.arrow").unlink()
    with pytest.raises(PenstockError) as raised:
        db.sql("SELECT * FROM securities")
    assert raised.value.condition == "DIMENSION_MISSING"


def test_columns_change_with_what_is_registered(tmp_path: Path) -> None:
    with penstock.connect(tmp_path) as db:
        db.register_dimension("d", [{"a": 1}])
        assert db.register_dimension("d", [{"b": "x"}], broadcast=False) == 2
        assert rows(db, "SELECT * FROM d") == [("x",)]
        assert rows(db, "SELECT broadcast FROM penstock.dimensions") == [(False,)]
    with penstock.connect(tmp_path) as db:
        assert rows(db, "SELECT b FROM d") == [("x",)]


def test_a_killed_program_leaves_catalog_and_files_alike(tmp_path: Path) -> None:
    """Rows are written before the catalog: what died in between is taken up, or taken away (L20)."""
    from penstock.failpoints import FailpointError, enabled

    with penstock.connect(tmp_path) as db:
        db.register_dimension("d", [{"a": 1}])
        with pytest.raises(FailpointError), enabled("catalog.before_write", "error"):
            db.register_dimension("d", [{"b": 2}])
        with pytest.raises(FailpointError), enabled("catalog.before_write", "error"):
            db.register_dimension("e", [{"b": 2}])
    with penstock.connect(tmp_path) as db:
        assert rows(db, "SELECT b FROM d") == [(2,)]
        assert not (tmp_path / "dimensions" / "e").exists()


# the manager of the texts


def test_manager(db: penstock.Database) -> None:
    """L2-L6, SC15: the names of the texts, over a database."""
    manager = DimensionBroadcastManager(db)
    assert manager.register_dimension_table("securities", SECURITIES, is_raft_replicated=True) == 1
    assert manager.get_dimension_table("securities").equals(SECURITIES)
    assert rows(db, "SELECT COUNT(*) AS n FROM securities") == [(2,)]
    size = SECURITIES.nbytes
    assert manager.is_suitable_for_broadcast("securities", size)
    assert not manager.is_suitable_for_broadcast("securities", size - 1), "texts count with every byte"
    assert manager.is_suitable_for_broadcast("securities")
    assert manager.update_dimension_table("securities", SECURITIES.slice(0, 1)) == 2
    status = manager.broadcast_table("Securities")
    assert (status.name, status.version, status.rows, status.jobs) == ("securities", 2, 1, ())
    assert status.memory_bytes == status.bytes * status.copies
    with pytest.raises(PenstockError) as raised:
        manager.register_dimension_table("d", SECURITIES, broadcast=True, is_raft_replicated=False)
    assert raised.value.condition == "CONFLICTING_OPTIONS"
    for call in (manager.get_dimension_table, manager.broadcast_table, manager.is_suitable_for_broadcast):
        with pytest.raises(PenstockError) as raised:
            call("nobody")
        assert raised.value.condition == "UNKNOWN_RELATION"
    manager.close()
    assert rows(db, "SELECT COUNT(*) AS n FROM securities") == [(1,)], "a database that was given stays open"


def test_manager_of_its_own() -> None:
    """SC15: tables without rows and with texts, sizes, lists and sums."""
    texts = pa.table({"id": pa.array(range(1000)), "text": ["x" * 2000] * 1000})
    with DimensionBroadcastManager() as manager:
        manager.register_dimension_table("empty", texts.slice(0, 0), broadcast=False)
        manager.register_dimension_table("texts", texts)
        assert manager.get_dimension_table("empty").equals(texts.slice(0, 0))
        assert not manager.is_suitable_for_broadcast("texts", 1024 * 1024), "two million letters are more than 1 MB"
        assert manager.is_suitable_for_broadcast("empty", 1024 * 1024)
        assert manager.list_dimension_tables() == ["empty", "texts"]
        stats = manager.get_stats()
        assert (stats["tables"], stats["broadcast_tables"], stats["rows"]) == (2, 1, 1000)
        assert stats["bytes"] >= 2_000_000
        fact = pa.table({"id": [5, 5000]})
        assert manager.broadcast_join(fact, "texts", "id").num_rows == 1
        assert manager.broadcast_join(fact, texts, "id", "left").column("text").to_pylist() == ["x" * 2000, None]


def test_rows_by_key(db: penstock.Database) -> None:
    """SC28: found or not, a default, the number of rows, the first few, and a batch with more columns."""
    manager = DimensionBroadcastManager(db)
    manager.register_dimension_table("securities", SECURITIES)
    table = manager.open_dimension_table("securities", "instrumentId")
    assert len(table) == 2
    assert "AAPL" in table
    assert "UNKN" not in table
    assert 7 not in table
    assert None not in table
    assert table["MSFT"] == {"instrumentId": "MSFT", "NAME": "Microsoft", "rating": 2}
    with pytest.raises(KeyError):
        table["UNKN"]
    assert table.get("UNKN", {"NAME": "?"}) == {"NAME": "?"}
    assert [row and row["NAME"] for row in table.get_many(["MSFT", 7, "AAPL"])] == ["Microsoft", None, "Apple"]
    assert table.scan(1).to_pylist()[0]["NAME"] == "Apple"
    assert table.scan().equals(SECURITIES)
    batch = pa.record_batch({"symbol": ["MSFT", "UNKN"], "price": [1.0, 2.0]})
    assert table.enrich(batch, "symbol").column("NAME").to_pylist() == ["Microsoft", None]
    assert table.enrich(batch, "symbol", "inner").num_rows == 1
    with pytest.raises(PenstockError) as raised:
        manager.open_dimension_table("securities", "nothing")
    assert raised.value.condition == "UNKNOWN_COLUMN"
    assert manager.open_dimension_table("securities", "rating")[2]["NAME"] == "Microsoft"
