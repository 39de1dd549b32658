"""Jobs that join a stream with dimensions: which relations are looked up, by which keys, and what is refused (L7-L9)."""

from __future__ import annotations

import pytest

from penstock.catalog.dimensions import define_dimension
from penstock.catalog.model import ColumnDefinition
from penstock.errors import NotYetError
from penstock.plan.analyze import analyze
from penstock.plan.job_plan import JobPlan, plan_job
from penstock.plan.logical import LogicalPlan
from penstock.plan.nodes import Join
from penstock.plan.session import Session
from penstock.sql.script import parse_script, parse_statement
from penstock.sql.statements import Name
from penstock.types import STRING
from tests.unit.plan.analysis import planned as planned_script

SETUP = """
CREATE STREAM trades (symbol STRING, price DOUBLE, side STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts);
CREATE TABLE ended (symbol STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts) WITH (connector = 'datagen', number_of_rows = 9);
CREATE TABLE names (id STRING, name STRING, country STRING) WITH (connector = 'file', path = '/data/names', format = 'csv');
CREATE TABLE sides (id STRING PRIMARY KEY, label STRING)
  WITH (connector = 'file', path = '/data/sides', format = 'csv', refresh = '1 minute');
CREATE TABLE wide (id STRING, at TIMESTAMP, n SMALLINT, v BIGINT) WITH (connector = 'file', path = '/data/wide', format = 'csv');
"""
COLUMNS = tuple(ColumnDefinition(name, STRING) for name in ("instrumentId", "NAME", "SECTOR"))


def planned(sql: str) -> LogicalPlan:
    session = Session()
    for parsed in parse_script(SETUP):
        assert parsed.statement is not None
        session = analyze(parsed.statement, session).session
    catalog, _ = session.catalog.put(define_dimension(Name("securities"), COLUMNS))
    plan = analyze(parse_statement(sql), session.with_catalog(catalog)).plan
    assert plan is not None
    return plan


def job(sql: str) -> JobPlan:
    return plan_job(planned(sql))


def flat(text: str | None) -> str:
    assert text is not None
    return " ".join(text.split())


def test_hopping_windows_over_a_dimension() -> None:
    """L8, D4: panes of joined rows, whichever way the dimension is joined."""
    found = job("""
        CREATE MATERIALIZED VIEW v AS SELECT s.name AS n, MAX(t.price) AS top
        FROM trades t JOIN securities s ON t.symbol = s.instrumentId
        GROUP BY s.name, HOP(t.ts, INTERVAL '1' SECOND, INTERVAL '5' SECOND)
    """)
    assert found.kind == "panes"
    assert "JOIN `__dimension_0`" in flat(found.core)
    looked_up = found.with_lookups()
    assert "`__pane`" in flat(looked_up.core)
    assert "JOIN" not in flat(looked_up.core)


def test_a_dimension_is_no_scan() -> None:
    """The stream is read row by row, the dimension as a whole; only the columns that are needed (L8, L16, L17)."""
    found = job("SELECT t.price, s.name AS n FROM trades t LEFT JOIN securities s ON t.symbol = s.instrumentId")
    assert [(scan.relation, scan.columns) for scan in found.scans] == [("trades", ("symbol", "price"))]
    (dimension,) = found.dimensions
    assert (dimension.id, dimension.relation, dimension.view) == ("securities", "securities", "__dimension_0")
    assert dimension.columns == ("instrumentId", "NAME")
    assert dimension.keys == ("instrumentId",)
    assert "LEFT JOIN `__dimension_0` AS `s` ON `t`.`symbol` = `s`.`instrumentId`" in flat(found.core)
    assert found.kind == "append"


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT t.price FROM trades t JOIN securities s ON t.symbol = s.instrumentId", ["instrumentId"]),
        ("SELECT t.price FROM securities s JOIN trades t ON upper(t.symbol) = s.instrumentId", ["instrumentId"]),
        ("SELECT t.price FROM securities s RIGHT JOIN trades t ON t.symbol = s.instrumentId", ["instrumentId"]),
        ("SELECT t.price FROM trades t LEFT SEMI JOIN securities s ON t.symbol = s.instrumentId", ["instrumentId"]),
        ("SELECT t.price FROM trades t LEFT ANTI JOIN securities s ON t.symbol = s.instrumentId", ["instrumentId"]),
        ("SELECT t.price FROM trades t, securities s WHERE t.symbol = s.instrumentId", ["instrumentId"]),
        ("SELECT t.price FROM trades t JOIN securities s ON t.symbol = s.NAME AND t.side = s.SECTOR", ["NAME", "SECTOR"]),
        ("SELECT t.price FROM trades t JOIN securities s ON t.symbol = s.NAME AND s.SECTOR = 'Tech'", ["NAME"]),
        ("SELECT t.price FROM trades t JOIN securities s ON t.symbol LIKE s.NAME", []),
        ("SELECT t.price FROM trades t JOIN securities FOR SYSTEM_TIME AS OF PROCTIME() AS s ON t.symbol = s.NAME", ["NAME"]),
        ("SELECT t.price FROM trades t JOIN (SELECT NAME AS n FROM securities WHERE SECTOR = 'x') AS s ON t.symbol = s.n", []),
    ],
)  # fmt: skip
def test_kinds_of_joins(sql: str, keys: list[str]) -> None:
    found = job(sql)
    assert [scan.relation for scan in found.scans] == ["trades"]
    assert [dimension.relation for dimension in found.dimensions] == ["securities"]
    assert list(found.dimensions[0].keys) == keys


def test_several_dimensions_and_one_twice() -> None:
    found = job(
        "SELECT t.price, a.NAME, b.NAME AS other, n.name, v.x FROM trades t JOIN securities a ON t.symbol = a.instrumentId "
        "LEFT JOIN securities b ON t.side = b.instrumentId LEFT JOIN names n ON n.id = t.symbol "
        "JOIN (VALUES ('buy', 1)) AS v(side, x) ON v.side = t.side"
    )
    assert [dimension.id for dimension in found.dimensions] == ["securities", "securities#2", "names"]
    assert [scan.id for scan in found.scans] == ["trades"]


def test_windows_over_joined_rows() -> None:
    """G10: the event time is the stream's; late rows are found below the join, without the dimension."""
    found = job(
        "SELECT t.symbol, s.NAME, s.SECTOR, COUNT(*) AS n FROM trades t LEFT JOIN securities s ON t.symbol = s.instrumentId "
        "GROUP BY t.symbol, s.NAME, s.SECTOR, TUMBLE(t.ts, INTERVAL '1' MINUTE) HAVING AVG(t.price) > 100"
    )
    assert found.uses_event_time
    assert found.scans[0].event_time is not None
    assert "`t`.`__source`" in flat(found.late)
    assert "`s`.`__source`" not in flat(found.late)
    assert "`__dimension_0` AS `s`" in flat(found.late)


def test_running_aggregate_over_joined_rows() -> None:
    found = job(
        "SELECT s.SECTOR, SUM(t.price) AS p FROM trades t JOIN securities s ON t.symbol = s.instrumentId GROUP BY s.SECTOR"
    )
    assert found.kind == "merge"
    assert "`__dimension_0`" in flat(found.core)


def test_state_knows_the_join() -> None:
    """Another join condition is another query, and must not go on with the state of this one."""
    text = "SELECT t.side, SUM(t.price) AS p FROM trades t JOIN securities s ON t.symbol = s.{} GROUP BY t.side"
    assert job(text.format("NAME")).fingerprint != job(text.format("SECTOR")).fingerprint
    left = text.replace("JOIN", "LEFT JOIN").format("NAME")
    assert job(text.format("NAME")).fingerprint != job(left).fingerprint


def test_a_bounded_stream_beside_a_dimension() -> None:
    """Both end; the one that is there to be looked up is the dimension, and time is that of the other one."""
    for sql in (
        "ended e LEFT JOIN securities s ON e.symbol = s.instrumentId",
        "sides s JOIN ended e ON e.symbol = s.id",
    ):
        window = "TUMBLE(e.ts, INTERVAL '1' MINUTE)"
        found = job(f"SELECT e.symbol, COUNT(*) AS n FROM {sql} GROUP BY e.symbol, {window}")
        assert [scan.relation for scan in found.scans] == ["ended"]
        assert len(found.dimensions) == 1
        assert found.uses_event_time
    found = job(
        "CREATE MATERIALIZED VIEW v AS SELECT e.symbol, n.name FROM ended e LEFT JOIN names n ON e.symbol = n.id"
    )
    assert ([scan.relation for scan in found.scans], found.dimensions[0].relation) == (["ended"], "names")
    batch = planned("SELECT e.symbol FROM ended e FULL JOIN securities s ON e.symbol = s.instrumentId")
    assert [node.strategy for node in batch.nodes() if isinstance(node, Join)] == ["batch"], "a query that ends may"


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT NAME FROM securities", "dimension"),
        ("SELECT a.NAME FROM securities a JOIN securities b ON a.NAME = b.SECTOR", "join"),
        (("SELECT t.price FROM trades t WHERE t.symbol IN (SELECT symbol FROM ended GROUP BY symbol, TUMBLE(ts, INTERVAL '1' HOUR)) "
         "EMIT FINAL"), "Aggregate"),
        ("SELECT n, n IN (SELECT id FROM sides) AS m FROM (SELECT t.side, COUNT(*) AS n FROM trades t GROUP BY t.side) AS c",
         "subquery"),
        ("SELECT e.symbol FROM ended e JOIN names n ON e.symbol = n.id", "join"),
        ("SELECT e.symbol FROM ended e JOIN sides s ON e.symbol = s.id UNION ALL SELECT id FROM sides", "as a stream"),
    ],
)  # fmt: skip
def test_refused(sql: str, word: str) -> None:
    with pytest.raises(NotYetError) as raised:
        job(sql)
    assert word in raised.value.message
    assert raised.value.hint


def test_the_view_store_has_the_rows_where_the_answer_changes() -> None:
    sql = "SELECT t.side, COUNT(*) AS n, (SELECT MAX(id) FROM sides) AS m FROM trades t GROUP BY t.side"
    found = job(sql)
    assert (found.kind, [(each.relation, each.columns, each.kept) for each in found.dimensions]) == (
        "finish",
        [("sides", ("id",), True)],
    )
    assert "sides" not in found.core, "Spark does not read it"


# queries over dimensions alone


@pytest.mark.parametrize(
    ("sql", "columns", "text"),
    [
        ("t.symbol IN (SELECT instrumentId FROM securities WHERE SECTOR = 'Tech')", ("instrumentId", "SECTOR"),
         ("`t`.`symbol` IN ( SELECT `securities`.`instrumentId` AS `instrumentId` FROM `__dimension_0` AS `securities` "
         "WHERE `securities`.`SECTOR` = 'Tech' )")),
        ("t.symbol NOT IN (SELECT NAME FROM securities)", ("NAME",), "NOT `t`.`symbol` IN ( SELECT"),
        ("EXISTS (SELECT 1 FROM securities s WHERE s.instrumentId = t.symbol AND s.NAME <> t.side)",
         ("instrumentId", "NAME"), "`s`.`instrumentId` = `t`.`symbol` AND `s`.`NAME` <> `t`.`side`"),
        ("t.price > (SELECT COUNT(DISTINCT SECTOR) FROM securities)", ("SECTOR",),
         "count(DISTINCT `securities`.`SECTOR`)"),
    ],
)  # fmt: skip
def test_subqueries_over_dimensions(sql: str, columns: tuple[str, ...], text: str) -> None:
    """They stay in the text, over the view of the dimension, which each batch sees in one version (L13, L16)."""
    found = job(f"SELECT t.price FROM trades t WHERE {sql}")
    assert [scan.relation for scan in found.scans] == ["trades"]
    assert [(each.relation, each.columns) for each in found.dimensions] == [("securities", columns)]
    assert text in flat(found.core)
    assert (found.kind, found.static) == ("append", ())
    assert {"symbol", "side"} & set(found.scans[0].columns) or "price" in found.scans[0].columns
    windowed = f"SELECT COUNT(*) AS n FROM trades t WHERE {sql} GROUP BY TUMBLE(t.ts, INTERVAL '1' MINUTE)"
    assert text in flat(job(windowed).late), "a row that is filtered out is not late"


@pytest.mark.parametrize(
    ("query", "key", "text"),
    [
        ("SELECT SECTOR, COUNT(*) AS n FROM securities GROUP BY SECTOR", "SECTOR", "GROUP BY `securities`.`SECTOR`"),
        ("SELECT DISTINCT NAME FROM securities", "NAME", "SELECT DISTINCT `securities`.`NAME`"),
        ("SELECT NAME FROM securities ORDER BY SECTOR LIMIT 3", "NAME", "LIMIT 3"),
        ("SELECT NAME FROM securities QUALIFY ROW_NUMBER() OVER (PARTITION BY SECTOR ORDER BY NAME) = 1", "NAME", "row_number()"),
        ("SELECT s.NAME, COUNT(*) AS n FROM securities s JOIN names n ON n.id = s.NAME GROUP BY s.NAME", "NAME", "INNER JOIN"),
        ("SELECT NAME FROM securities UNION ALL SELECT id FROM names", "NAME", "UNION ALL"),
    ],
)  # fmt: skip
def test_queries_over_dimensions_are_views_of_their_own(query: str, key: str, text: str) -> None:
    """What aggregates or sorts a dimension does so in each batch; the stream joins the result, and keeps no state."""
    found = job(f"SELECT t.price FROM trades t LEFT JOIN ({query}) AS d ON t.symbol = d.{key}")
    (view,) = found.static
    assert text in flat(view.sql)
    assert view.dimensions == tuple(each.id for each in found.dimensions)
    assert f"LEFT JOIN `{view.view}` AS `d`" in flat(found.core)
    assert (found.kind, found.kept, found.steps) == ("append", (), ())
    running = job(
        f"SELECT d.{key}, COUNT(*) AS n FROM trades t JOIN ({query}) AS d ON t.symbol = d.{key} GROUP BY d.{key}"
    )
    assert (running.kind, len(running.static)) == ("merge", 1)
    other = query.replace("NAME", "instrumentId")
    assert (
        other == query
        or job(
            f"SELECT t.side, COUNT(*) AS n FROM trades t JOIN ({query}) AS d ON t.symbol = d.{key} GROUP BY t.side"
        ).fingerprint
        != job(
            f"SELECT t.side, COUNT(*) AS n FROM trades t JOIN ({other}) AS d ON t.symbol = d.{key.replace('NAME', 'instrumentId')} "
            "GROUP BY t.side"
        ).fingerprint
    ), "another query over the dimension is another state"


# calls in the place of joins


def test_a_join_by_one_key_can_be_a_call() -> None:
    """The text with calls has no join, reads the same columns, and keeps the same state."""
    found = job(
        "SELECT t.symbol, s.NAME, COUNT(*) AS n FROM trades t JOIN securities s ON t.symbol = s.instrumentId "
        "LEFT JOIN names n ON n.id = upper(t.side) WHERE t.price > 1 OR n.name = 'x' "
        "GROUP BY t.symbol, s.NAME, TUMBLE(t.ts, INTERVAL '1' MINUTE)"
    )
    assert found.lookup is not None
    assert [(each.function, each.dimension.id, each.key) for each in found.lookup.lookups] == [
        ("__lookup_0", "securities", "instrumentId"),
        ("__lookup_1", "names", "id"),
    ]
    core = flat(found.lookup.core)
    assert "JOIN" not in core
    assert "__lookup_0(`t`.`symbol`) AS `__found_0`, __lookup_1(upper(`t`.`side`)) AS `__found_1`" in core
    assert (
        "(`t`.`price` > 1 OR `t`.`__found_1`.`name` = 'x') AND NOT `t`.`__found_0` IS NULL".replace("(", "( ").replace(
            ")", " )"
        )
        in core
    )
    assert "IS NULL" not in flat(found.core)
    assert "`t`.`__source` AS `__source`" in flat(found.lookup.late)
    other = found.with_lookups()
    assert (other.core, other.late, other.state) == (found.lookup.core, found.lookup.late, found.state)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT t.price FROM trades t LEFT ANTI JOIN securities s ON t.symbol = s.instrumentId",
        "SELECT t.price FROM trades t JOIN securities s ON t.symbol = s.NAME AND t.side = s.SECTOR",
        "SELECT t.price FROM trades t JOIN securities s ON t.symbol < s.NAME",
        "SELECT t.price FROM trades t JOIN securities s ON length(t.symbol) = s.NAME",
        "SELECT t.price FROM securities s RIGHT JOIN trades t ON t.symbol = s.instrumentId",
        "SELECT t.price FROM trades t, securities s WHERE t.symbol = s.instrumentId",
        "SELECT t.price FROM trades t JOIN (SELECT NAME AS n FROM securities) AS s ON t.symbol = s.n",
    ],
)
def test_joins_that_stay_joins(sql: str) -> None:
    assert job(sql).lookup is None


def test_one_of_two_joins_is_a_call() -> None:
    found = job(
        "SELECT t.price, s.NAME FROM trades t JOIN securities s ON t.symbol = s.instrumentId "
        "LEFT SEMI JOIN names n ON n.id = t.symbol"
    )
    assert found.lookup is not None
    assert [each.dimension.id for each in found.lookup.lookups] == ["securities"]
    assert "LEFT SEMI JOIN `__dimension_1` AS `n` ON `n`.`id` = `t`.`symbol`" in flat(found.lookup.core)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT symbol, (SELECT COUNT(*) FROM wide) AS n FROM trades",
        "SELECT symbol FROM trades WHERE EXISTS (SELECT 1 FROM wide)",
        "SELECT symbol FROM trades CROSS JOIN wide",
        "SELECT symbol, COUNT(*) AS n FROM trades CROSS JOIN wide GROUP BY symbol",
    ],
)
def test_of_a_dimension_that_is_only_counted_the_narrowest_column_is_read(sql: str) -> None:
    """Spark reads no rows without columns."""
    assert [dimension.columns for dimension in job(sql).dimensions] == [("n",)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(DISTINCT n) AS q FROM (SELECT k, COUNT(*) AS n FROM {} GROUP BY k) GROUP BY k",
        "SELECT DISTINCT k FROM {}",
        "SELECT a.k, COUNT(DISTINCT b.v) AS q FROM {} a JOIN {}2 b ON a.v = b.v GROUP BY a.k",
        "SELECT k FROM {} UNION SELECT k FROM {}2",
    ],
)
def test_tables_with_refresh_alone_are_read_as_those_without(query: str) -> None:
    """No stream is there that they could be joined with: each is read once, row by row."""

    def made(refresh: str) -> JobPlan:
        tables = "".join(
            f"CREATE TABLE {name} (k STRING, v INT) WITH (connector = 'file', path = 'x.csv', format = 'csv'{refresh});"
            for name in ("rates", "rates2")
        )
        view = query.replace("{}", "rates")
        return plan_job(planned_script(f"{tables} CREATE MATERIALIZED VIEW mv AS {view}"))

    job = made(", refresh = '1 minute'")
    assert job == made("")
    assert (job.kind, job.dimensions) == ("finish", ())


def test_a_table_with_refresh_beside_a_stream_stays_a_dimension() -> None:
    made = plan_job(
        planned_script(
            "CREATE TABLE rates (k STRING, v INT) "
            "WITH (connector = 'file', path = 'x.csv', format = 'csv', refresh = '1 minute');"
            "CREATE MATERIALIZED VIEW mv AS SELECT t.symbol, COUNT(DISTINCT r.v) AS q "
            "FROM trades t JOIN rates r ON t.symbol = r.k GROUP BY t.symbol"
        )
    )
    assert [each.relation for each in made.dimensions] == ["rates"]
    assert [each.relation for each in made.scans] == ["trades"]
