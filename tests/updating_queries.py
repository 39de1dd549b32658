"""Queries whose answer changes, each operator over any other: DuckDB reads the same texts as a batch query.

Every relation has the columns k, id, v and s, all of whole numbers but the last, so that each operator can stand over each.
Where rows tie, all their columns are compared, so that an answer does not depend on the order of rows.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

TOTAL: Final = "v DESC, id, s, k"
OVER_ONE: Final = (
    "SELECT k, MAX(id) AS id, COUNT(DISTINCT v) AS v, MIN(s) AS s FROM ({0}) AS x GROUP BY k",
    "SELECT k, COUNT(*) AS id, MAX(v) AS v, s FROM ({0}) AS x GROUP BY k, s",
    "SELECT v AS k, COUNT(*) AS id, MIN(k) AS v, MAX(s) AS s FROM ({0}) AS x GROUP BY v",
    "SELECT MAX(k) AS k, COUNT(*) AS id, COUNT(DISTINCT v) AS v, MAX(s) AS s FROM ({0}) AS x",
    ("SELECT k, COUNT(DISTINCT v) FILTER (WHERE id > 3) AS id, COUNT(DISTINCT s) AS v, MIN(s) AS s FROM ({0}) AS x GROUP BY k "
    "HAVING COUNT(*) > 1"),
    ("SELECT m AS k, COUNT(*) AS id, MAX(k) AS v, MIN(s) AS s "
    "FROM (SELECT k, MIN(s) AS s, MAX(v) AS m FROM ({0}) AS x GROUP BY k) AS y GROUP BY m"),
    "SELECT k, COUNT(*) AS id, COUNT(DISTINCT v) AS v, s FROM ({0}) AS x GROUP BY ROLLUP (k, s)",
    "SELECT k, MAX(id) AS id, SUM(v) AS v, s FROM ({0}) AS x GROUP BY CUBE (k, s)",
    "SELECT k, COUNT(v) AS id, MIN(v) AS v, s FROM ({0}) AS x GROUP BY GROUPING SETS ((k), (k, s), ())",
    (f"SELECT k, id, v, s FROM (SELECT k, id, v, s, ROW_NUMBER() OVER (PARTITION BY k ORDER BY {TOTAL}) AS n "
    "FROM ({0}) AS x) AS y WHERE n <= 2"),
    ("SELECT k, id, v, s FROM (SELECT k, id, v, s, DENSE_RANK() OVER (PARTITION BY k, s ORDER BY v) AS n FROM ({0}) AS x) AS y "
    "WHERE n = 1"),
    "SELECT k, id, v, s FROM ({0}) AS x QUALIFY RANK() OVER (PARTITION BY k ORDER BY v DESC) <= 2",
    "SELECT k, id, CAST(RANK() OVER (PARTITION BY s ORDER BY v) AS BIGINT) AS v, s FROM ({0}) AS x",
    (f"SELECT k, id, SUM(id) OVER (PARTITION BY k ORDER BY {TOTAL} ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS v, s "
    "FROM ({0}) AS x"),
    "SELECT k, id, SUM(v) OVER (PARTITION BY s ORDER BY id RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS v, s FROM ({0}) AS x",
    f"SELECT k, id, LAG(v) OVER (PARTITION BY k ORDER BY {TOTAL}) AS v, s FROM ({{0}}) AS x",
    (f"SELECT k, FIRST_VALUE(id) OVER w AS id, LEAD(v, 1, -1) OVER w AS v, s FROM ({{0}}) AS x "
    f"WINDOW w AS (PARTITION BY k ORDER BY {TOTAL})"),
    "SELECT DISTINCT k, k AS id, v, s FROM ({0}) AS x",
    "SELECT DISTINCT ON (k) k, id, v, s FROM ({0}) AS x ORDER BY k, " + TOTAL,
    "SELECT k, id, v, s FROM ({0}) AS x WHERE v > 0 OR s = 'a'",
    "SELECT k, id, v, s FROM ({0}) AS x ORDER BY " + TOTAL + " LIMIT 4",
    "SELECT a.k, b.id, b.v, a.s FROM ({0}) AS a JOIN ({0}) AS b ON a.k = b.k AND a.id < b.id",
    "SELECT k, id, v, s FROM ({0}) AS x WHERE v >= (SELECT AVG(v) FROM ({0}) AS y)",
    "SELECT k, id, v, s FROM ({0}) AS x WHERE k NOT IN (SELECT v FROM ({0}) AS y WHERE v IS NOT NULL)",
)  # fmt: skip
OVER_TWO: Final = (
    "SELECT a.k, a.id, b.v, a.s FROM ({0}) AS a LEFT JOIN ({1}) AS b ON a.k = b.k AND a.id <= b.id",
    "SELECT b.k, b.id, a.v, b.s FROM ({0}) AS a RIGHT JOIN ({1}) AS b ON a.v = b.k",
    "SELECT a.k, b.id, a.v, b.s FROM ({0}) AS a FULL JOIN ({1}) AS b ON a.k = b.v",
    "SELECT a.k, a.id, b.v, b.s FROM ({0}) AS a JOIN ({1}) AS b ON a.k = b.k WHERE a.v > 0",
    "SELECT a.k, a.id, a.v, a.s FROM ({0}) AS a LEFT SEMI JOIN ({1}) AS b ON a.k = b.k",
    "SELECT a.k, a.id, a.v, a.s FROM ({0}) AS a LEFT ANTI JOIN ({1}) AS b ON a.k = b.k AND a.v < b.v",
    "SELECT k, id, v, s FROM ({0}) AS a WHERE EXISTS (SELECT 1 FROM ({1}) AS b WHERE b.k = a.k)",
    "SELECT k, id, v, s FROM ({0}) AS a WHERE NOT EXISTS (SELECT 1 FROM ({1}) AS b WHERE b.k = a.k AND b.v > a.v)",
    "SELECT k, id, v, s FROM ({0}) AS a WHERE v > 0 AND k IN (SELECT k FROM ({1}) AS b)",
    "SELECT a.k, a.id, b.v, b.s FROM ({0}) AS a, LATERAL (SELECT v, s FROM ({1}) AS c WHERE c.k = a.k "
    "ORDER BY " + TOTAL + " LIMIT 2) AS b",
    "SELECT a.k, a.id, b.n AS v, a.s FROM ({0}) AS a, LATERAL (SELECT COUNT(*) AS n FROM ({1}) AS c WHERE c.k = a.k AND c.v > a.v) AS b",
    "SELECT k, id, (SELECT MAX(v) FROM ({1}) AS c WHERE c.k = a.k) AS v, s FROM ({0}) AS a",
    "SELECT k, id, (SELECT COUNT(*) FROM ({1}) AS c) AS v, s FROM ({0}) AS a",
    "SELECT a.k, b.id, b.v, a.s FROM ({0}) AS a LEFT JOIN ({1}) AS b ON a.v < b.v AND a.id > b.id",
    "(SELECT k, id, v, s FROM ({0}) AS a) UNION ALL (SELECT k, id, v, s FROM ({1}) AS b)",
    "(SELECT k, k AS id, v, s FROM ({0}) AS a) UNION (SELECT k, k AS id, v, s FROM ({1}) AS b)",
    "(SELECT k, k AS id, v, s FROM ({0}) AS a) EXCEPT (SELECT k, k AS id, v, s FROM ({1}) AS b)",
    "(SELECT k, k AS id, k AS v, s FROM ({0}) AS a) INTERSECT (SELECT k, k AS id, k AS v, s FROM ({1}) AS b)",
)  # fmt: skip
OVER_THREE: Final = (
    "SELECT a.k, b.id, c.v, a.s FROM ({0}) AS a JOIN ({1}) AS b ON a.k = b.k LEFT JOIN ({2}) AS c ON b.v = c.k AND b.id < c.id",
    "SELECT a.k, c.id, b.v, c.s FROM ({0}) AS a LEFT JOIN ({1}) AS b ON a.k = b.k AND a.id < b.id FULL JOIN ({2}) AS c ON a.v = c.k",
)  # fmt: skip


def queries(bases: tuple[str, ...]) -> st.SearchStrategy[str]:
    """Operators over operators over the bases."""
    return st.recursive(
        st.sampled_from(bases),
        lambda below: st.one_of(
            st.builds(str.format, st.sampled_from(OVER_ONE), below),
            st.builds(str.format, st.sampled_from(OVER_TWO), below, below),
            st.builds(str.format, st.sampled_from(OVER_THREE), below, below, below),
        ),
        max_leaves=3,
    )


def for_duckdb(query: str) -> str:
    """The query as DuckDB spells it."""
    return query.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
