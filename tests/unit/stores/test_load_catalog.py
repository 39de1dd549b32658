"""A session written to the store and read back means the same (A12, H16)."""

from __future__ import annotations

from pathlib import Path

from penstock.catalog.changes import ChangeSetting, changes_between
from penstock.catalog.dimensions import define_dimension
from penstock.catalog.model import ColumnDefinition, MaterializedViewDefinition
from penstock.catalog.snapshot import Catalog
from penstock.plan.script import analyze_script
from penstock.plan.session import Session
from penstock.sql.statements import Name
from penstock.stores.catalog_store import CatalogStore
from penstock.stores.load_catalog import load_session
from penstock.types import STRING

SCRIPT = """
CREATE SECRET pass AS 'hunter2';
CREATE FUNCTION label(x STRING) RETURNS STRING LANGUAGE python AS 'shop.label';
CREATE STREAM trades (symbol STRING, price DOUBLE, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND)
    WITH (connector = 'kafka', topic = 't', format = 'json', properties.ssl.key.password = 'hunter3',
          properties.ssl.keystore.password = SECRET pass);
CREATE VIEW labelled AS SELECT label(symbol) AS symbol, price, ts FROM trades;
CREATE MATERIALIZED VIEW minutes AS
    SELECT symbol, TUMBLE_START(ts, INTERVAL '1' MINUTE) AS m, COUNT(*) AS n
    FROM labelled GROUP BY symbol, TUMBLE(ts, INTERVAL '1' MINUTE);
CREATE SINK out WITH (connector = 'kafka', topic = 'o', format = 'json') AS SELECT symbol, n FROM minutes;
"""


def session_after(script: str) -> Session:
    reports = analyze_script(script)
    assert all(report.error is None for report in reports), [report.error for report in reports]
    last = reports[-1].analysis
    assert last is not None
    return last.session


def test_everything_is_there_again(tmp_path: Path) -> None:
    session = session_after(SCRIPT)
    dimension = define_dimension(Name("names"), (ColumnDefinition("id", STRING), ColumnDefinition("name", STRING)))
    catalog, _ = session.catalog.put(dimension)
    with CatalogStore.open(tmp_path / "state") as store:
        store.apply(changes_between(Catalog(), catalog))
    with CatalogStore.open(tmp_path / "state") as store:
        again = load_session(store)
    assert again.catalog == catalog
    assert changes_between(catalog, again.catalog) == ()
    assert again.jobs == session.jobs == {"minutes", "out"}
    assert [item.text for item in again.catalog] == [item.text for item in catalog]


def test_computed_columns_have_their_types_again(tmp_path: Path) -> None:
    """A text of an older version, whose column has no type, is read as what is written now."""
    session = session_after(
        """CREATE STREAM s (kind INT, a STRUCT<at TIMESTAMP>, b STRUCT<at TIMESTAMP>, d DECIMAL(10, 2), name STRING,
            at AS CASE WHEN kind = 0 THEN a.at ELSE b.at END, upper AS UPPER(name), more AS d * 2, old AS COALESCE(d, 0),
            WATERMARK FOR at AS at - INTERVAL '4' SECOND);
        CREATE STREAM text_times (name STRING, at AS UPPER(name), WATERMARK FOR at AS at - INTERVAL '4' SECOND);
        CREATE MATERIALIZED VIEW v AS SELECT upper, COUNT(DISTINCT more) AS n FROM s GROUP BY upper"""
    )
    with CatalogStore.open(tmp_path / "state") as store:
        store.apply(changes_between(Catalog(), session.catalog))
        again = load_session(store)
    assert again.catalog == session.catalog
    view = again.catalog.get(Name("v"))
    assert isinstance(view, MaterializedViewDefinition)
    assert view.columns[0].type == STRING


def test_an_object_keeps_the_settings_it_was_made_under(tmp_path: Path) -> None:
    """A view made with RisingWave's emission keeps it, whatever the dialect is now."""
    made = """CREATE STREAM s (k STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts);
        SET dialect = 'risingwave';
        CREATE MATERIALIZED VIEW v AS
        SELECT window_start, COUNT(*) AS n FROM TUMBLE(s, ts, INTERVAL '1 minute') GROUP BY window_start"""
    session = session_after(made)
    with CatalogStore.open(tmp_path / "state") as store:
        store.apply(changes_between(Catalog(), session.catalog, {"dialect": "risingwave"}))
        store.apply([ChangeSetting("dialect", "flink")])
        again = load_session(store)
    view = again.catalog.get(Name("v"))
    assert isinstance(view, MaterializedViewDefinition)
    assert view.mode == "upsert"
    assert again.settings == {"dialect": "flink"}


def test_secrets_are_known_again_and_shown_nowhere(tmp_path: Path) -> None:
    session = session_after(SCRIPT)
    with CatalogStore.open(tmp_path / "state") as store:
        store.apply(changes_between(Catalog(), session.catalog))
        again = load_session(store)
    assert {name: value.reveal() for name, value in again.secrets.items()} == {
        "pass": "hunter2",
        "trades.kafka.ssl.key.password": "hunter3",
    }
    assert "hunter" not in repr(again) + repr(again.catalog)
