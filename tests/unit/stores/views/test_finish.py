"""Views that are answered from kept rows: after every batch the view and the folded changes are DuckDB's batch answer
(G13, G16, G18)."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
import sqlglot

from penstock.plan.job_plan import plan_job
from penstock.stores.views.model import BatchCommit
from tests.unit.plan.analysis import planned
from tests.unit.stores.views.finishing import BrokenOffError, Finished, job_of, random_batch
from tests.unit.stores.views.sampling import some

TOTAL = "ORDER BY v DESC, id, s"
# The query, and whether it has a key.
SHAPES: dict[str, tuple[str, bool]] = {
    "top 2 of a key": (
        f"SELECT * FROM (SELECT k, id, v, s, ROW_NUMBER() OVER (PARTITION BY k {TOTAL}) AS rn FROM l) AS x WHERE rn <= 2",
        True,
    ),
    "top 2, filtered, key hidden": (
        (
            f"SELECT id, rn FROM (SELECT id, ROW_NUMBER() OVER (PARTITION BY k {TOTAL}) AS rn FROM l WHERE v > 0) AS x "
            "WHERE rn <= 2"
        ),
        True,
    ),
    "one row beside one row": (
        (
            "SELECT a.n AS x, b.n AS y FROM (SELECT COUNT(*) AS n FROM l) AS a "
            "FULL JOIN (SELECT COUNT(*) AS n FROM r) AS b ON a.n = b.n AND a.n % 2 = 0"
        ),
        False,
    ),
    "groups beside one row": (
        (
            "SELECT a.k, b.n FROM (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS a "
            "FULL JOIN (SELECT COUNT(*) AS n FROM r) AS b ON a.n = b.n"
        ),
        False,
    ),
    "a star and its place": (
        "SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v, id, s) AS rn FROM l QUALIFY rn <= 2",
        True,
    ),
    "rankings of rankings": (
        (
            "SELECT c.* FROM (SELECT b.* FROM (SELECT DISTINCT ON (a.k, a.s) a.k, a.s, a.id, a.v FROM l AS a "
            "ORDER BY a.k, a.s, a.v, a.id) AS b QUALIFY ROW_NUMBER() OVER (PARTITION BY b.k ORDER BY b.v DESC, b.id, b.s) "
            "<= 2) AS c QUALIFY ROW_NUMBER() OVER (PARTITION BY c.k ORDER BY c.id, c.v, c.s) = 1"
        ),
        True,
    ),
    "rank": ("SELECT k, v, RANK() OVER (PARTITION BY k, s ORDER BY v) AS n FROM l QUALIFY n <= 2", True),
    "dense rank over all": ("SELECT k, v, DENSE_RANK() OVER (ORDER BY v) AS n FROM l", False),
    "order by, limit": ("SELECT k, v, id FROM l ORDER BY v DESC, id, k LIMIT 4", False),
    "order by, limit, offset": ("SELECT k, v, id FROM l ORDER BY v DESC, id, k LIMIT 3 OFFSET 2", False),
    "distinct": ("SELECT DISTINCT k, s FROM l WHERE id > 2", True),
    "distinct on": ("SELECT DISTINCT ON (k) k, v, id, s FROM l ORDER BY k, v DESC, id, s", True),
    "keep last": (
        (
            "SELECT k, id, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY id DESC, v, s) AS rn FROM l) AS x "
            "WHERE rn = 1"
        ),
        True,
    ),
    "spread of distinct values": (
        "SELECT k, STDDEV(DISTINCT v) AS s, VAR_POP(DISTINCT v) FILTER (WHERE id > 3) AS p, COUNT(*) AS n FROM l GROUP BY k",
        True,
    ),
    "count distinct": ("SELECT k, COUNT(DISTINCT v) AS n, COUNT(*) AS all_rows FROM l GROUP BY k", True),
    "several distinct": (
        (
            "SELECT k, COUNT(DISTINCT v) FILTER (WHERE id > 3) AS n, COUNT(DISTINCT s) AS m, SUM(v) AS t FROM l GROUP BY k "
            "HAVING COUNT(DISTINCT s) > 1"
        ),
        True,
    ),
    "count distinct of all": (
        "SELECT COUNT(DISTINCT v) AS n, COUNT(DISTINCT s) FILTER (WHERE v > 1) AS m FROM l",
        False,
    ),
    "by a computed key": ("SELECT upper(s) AS u, COUNT(DISTINCT v) AS n FROM l GROUP BY upper(s)", True),
    "aggregate of an aggregate": (
        "SELECT m, COUNT(*) AS n FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k) AS x GROUP BY m",
        True,
    ),
    "mean of maxima": ("SELECT AVG(m) AS mean FROM (SELECT k, s, MAX(v) AS m FROM l GROUP BY k, s) AS x", False),
    "aggregate of an aggregate by its key": (
        "SELECT k, MAX(n) AS most FROM (SELECT k, s, COUNT(*) AS n FROM l GROUP BY k, s) AS x GROUP BY k",
        True,
    ),
    "running sum": ("SELECT k, id, SUM(v) OVER (PARTITION BY k ORDER BY id, v, s) AS t FROM l", True),
    "lag": ("SELECT k, id, LAG(v) OVER (PARTITION BY k ORDER BY id, v, s) AS earlier FROM l", True),
    "neighbours": (
        (
            "SELECT k, id, LAG(v, 2, -1) OVER w AS two_before, LEAD(v) OVER w AS later, FIRST_VALUE(v) OVER w AS one, "
            "LAST_VALUE(v) OVER (PARTITION BY k ORDER BY id, v, s ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS last "
            "FROM l WINDOW w AS (PARTITION BY k ORDER BY id, v, s)"
        ),
        True,
    ),
    "frames": (
        (
            "SELECT k, id, SUM(v) OVER (PARTITION BY k ORDER BY id, v, s ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS t, "
            "COUNT(*) OVER (PARTITION BY k ORDER BY id ROWS UNBOUNDED PRECEDING) AS n, "
            "MAX(v) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS m FROM l"
        ),
        True,
    ),
    "rollup": ("SELECT k, s, COUNT(DISTINCT v) AS n FROM l GROUP BY ROLLUP (k, s)", False),
    "grouping sets": ("SELECT k, s, SUM(v) AS t FROM l GROUP BY GROUPING SETS ((k, s), (k), ())", False),
    "left join": ("SELECT l.k, l.id, l.v, r.w FROM l LEFT JOIN r ON l.k = r.k AND r.w >= l.v", True),
    "left join, filtered": (
        "SELECT l.id, r.id AS other FROM l LEFT JOIN r ON l.k = r.k WHERE l.v > 0 AND (r.w IS NULL OR r.w < 3)",
        True,
    ),
    "right join": ("SELECT l.id, r.k, r.id AS other FROM l RIGHT JOIN r ON l.k = r.k", True),
    "full join": ("SELECT l.k, l.id, r.k AS rk, r.id AS other FROM l FULL JOIN r ON l.k = r.k AND l.v = r.w", True),
    "join in brackets": ("SELECT l.id, r.w, u.x FROM l LEFT JOIN (r JOIN u ON r.w = u.k) ON l.k = r.k", True),
    "median over a left join": (
        "SELECT l.k, MEDIAN(r.w) AS m, ARRAY_AGG(COALESCE(r.s, '-') ORDER BY r.w, r.s) AS x FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.k",
        True,
    ),
    "median of counts": ("SELECT MEDIAN(n) AS m FROM (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS x", False),
    "union of numbers": ("SELECT CAST(v AS DECIMAL(10, 2)) AS v FROM l UNION SELECT x FROM u", True),
    "except of numbers": ("SELECT w + id AS w FROM r EXCEPT SELECT CAST(v AS DECIMAL(6, 1)) AS v FROM l", True),
    "intersect of numbers": ("SELECT x FROM u INTERSECT SELECT v FROM l", True),
    "frames with rows left out": (
        (
            "SELECT k, id, SUM(v) OVER (PARTITION BY k ORDER BY id, v, s ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING "
            "EXCLUDE CURRENT ROW) AS t, COUNT(*) OVER (PARTITION BY k ORDER BY v GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS n, "
            "SUM(v) FILTER (WHERE s > 'B') OVER (PARTITION BY k ORDER BY id) AS f FROM l"
        ),
        True,
    ),
    "lists of frames": (
        (
            "SELECT k, id, MEDIAN(v) OVER (PARTITION BY k) AS m, ARRAY_AGG(id) OVER (PARTITION BY k ORDER BY id DESC, v, s "
            "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS x FROM l"
        ),
        True,
    ),
    "distinct rows": (
        "SELECT COUNT(DISTINCT (k, v)) AS n, COUNT(DISTINCT (v, s)) FILTER (WHERE id > 3) AS m FROM l",
        False,
    ),
    "more than the mean": (
        (
            "SELECT k, COUNT(*) AS n FROM l GROUP BY k "
            "HAVING COUNT(*) > (SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM l GROUP BY k) AS x)"
        ),
        False,
    ),
    "as many as any": (
        (
            "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS x "
            "WHERE n >= ALL (SELECT COUNT(*) FROM l GROUP BY k)"
        ),
        False,
    ),
    "largest sums": ("SELECT k, SUM(v) AS t FROM l GROUP BY k ORDER BY t DESC, k LIMIT 3", False),
    "largest sums, hidden key": (
        "SELECT SUM(v) + 1 AS t, MAX(id) AS m FROM l GROUP BY upper(s) HAVING MIN(v) < 3 ORDER BY MAX(id) DESC LIMIT 2 OFFSET 1",
        False,
    ),
    "ranks of groups": (
        "SELECT k, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS r, SUM(COUNT(*)) OVER () AS a FROM l GROUP BY k",
        False,
    ),
    "largest groups of a join": (
        (
            "SELECT l.s, COUNT(r.w) AS n FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.s "
            "ORDER BY COUNT(r.w) DESC, l.s NULLS FIRST LIMIT 2"
        ),
        False,
    ),
    "groups as large as others": (
        (
            "SELECT k, COUNT(*) AS n FROM l GROUP BY k HAVING COUNT(*) IN (SELECT m FROM (SELECT w, COUNT(*) AS m "
            "FROM r GROUP BY w) AS x) AND EXISTS (SELECT 1 FROM r WHERE r.k = l.k) LIMIT 100"
        ),
        False,
    ),
    "semi join": ("SELECT l.k, l.id FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.v < r.w", True),
    "semi join, of both sides the names of one": (
        "SELECT k, id, s FROM l LEFT SEMI JOIN r ON l.k = r.k AND l.s <> r.s WHERE id > 1",
        True,
    ),
    "anti join, every column": ("SELECT * FROM l LEFT ANTI JOIN r ON l.k = r.k AND v < w", True),
    "semi join, then a join by a name of both": (
        "SELECT id, x FROM l LEFT SEMI JOIN r USING (k) JOIN u ON u.k = l.k WHERE s <> 'a'",
        True,
    ),
    "left join that knows NULL": ("SELECT l.id, r.w FROM l LEFT JOIN r ON l.k IS NOT DISTINCT FROM r.k", True),
    "full join that knows NULL": (
        "SELECT l.id, l.k, r.w FROM l FULL JOIN r ON l.k IS NOT DISTINCT FROM r.k AND r.w > 1",
        True,
    ),
    "groups of a join that knows NULL": (
        (
            "SELECT l.k, COUNT(*) AS n, MAX(r.w) AS m FROM l RIGHT JOIN r ON l.k IS NOT DISTINCT FROM r.k AND l.v > 0 "
            "GROUP BY l.k"
        ),
        True,
    ),
    "NOT EXISTS that knows NULL": (
        "SELECT l.id, l.k FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k IS NOT DISTINCT FROM l.k AND r.w > 1)",
        True,
    ),
    "three with commas, the third between the others": (
        "SELECT l.k, COUNT(DISTINCT r.w) AS n FROM l, r, u WHERE l.k = u.k AND u.k = r.k GROUP BY l.k",
        True,
    ),
    "anti join": ("SELECT l.k, l.id FROM l LEFT ANTI JOIN r ON l.k = r.k AND l.v < r.w", True),
    "exists": ("SELECT k, id FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.w > l.v)", True),
    "not exists": ("SELECT k, id FROM l WHERE v > 0 AND NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k)", True),
    "in": ("SELECT id, v FROM l WHERE k IN (SELECT k FROM r WHERE w > 1)", True),
    "not in": ("SELECT id, v FROM l WHERE k NOT IN (SELECT k FROM r WHERE w > 3 AND k IS NOT NULL)", False),
    "value of a subquery": ("SELECT k, v FROM l WHERE v > (SELECT MIN(w) FROM r WHERE r.k = l.k)", True),
    "value of all": ("SELECT k, v FROM l WHERE v > (SELECT AVG(w) FROM r)", False),
    "except": ("SELECT k, v FROM l EXCEPT SELECT k, w FROM r", True),
    "intersect": ("SELECT k FROM l INTERSECT SELECT k FROM r", True),
    "union": ("SELECT k, s FROM l UNION SELECT k, s FROM r", True),
    "count over a left join": (
        "SELECT l.k, COUNT(DISTINCT r.w) AS n, COUNT(*) AS m FROM l LEFT JOIN r ON l.k = r.k GROUP BY l.k",
        True,
    ),
    "join of aggregates": (
        (
            "SELECT a.k, a.n, b.m FROM (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS a "
            "LEFT JOIN (SELECT k, MAX(w) AS m FROM r GROUP BY k) AS b ON a.k = b.k"
        ),
        True,
    ),
    "self join of the best": (
        "SELECT a.id, b.id AS other FROM l AS a LEFT JOIN l AS b ON a.k = b.k AND a.id < b.id",
        True,
    ),
    "two keys that nobody sees": ("SELECT id, ROW_NUMBER() OVER (PARTITION BY k, s ORDER BY id, v) AS n FROM l", True),
    "full join, key below": (
        (
            "SELECT id, other FROM (SELECT l.id, r.id AS other FROM l FULL JOIN r ON l.k = r.k) AS x "
            "WHERE id IS NULL OR other IS NULL"
        ),
        True,
    ),
    "distinct of a union": (
        "SELECT k, COUNT(DISTINCT v) AS n FROM (SELECT k, v FROM l UNION ALL SELECT k, w FROM r) AS x GROUP BY k",
        True,
    ),
    "count beside each row": ("SELECT l.id, (SELECT COUNT(*) FROM r WHERE r.k = l.k AND r.w > l.v) AS n FROM l", True),
    "two subqueries": (
        (
            "SELECT k, v FROM l WHERE k IN (SELECT k FROM r) "
            "AND NOT EXISTS (SELECT 1 FROM u WHERE u.k = l.k AND u.x > 1)"
        ),
        True,
    ),
    "join by what Spark computes": (
        "SELECT l.k, COUNT(DISTINCT r.id) AS n FROM l LEFT JOIN r ON upper(l.s) = upper(r.s) GROUP BY l.k",
        True,
    ),
    "top of a grouped query": (
        (
            "SELECT k, s, n FROM (SELECT k, s, COUNT(*) AS n, ROW_NUMBER() OVER (PARTITION BY k ORDER BY COUNT(*) DESC, s) "
            "AS rn FROM l GROUP BY k, s) AS x WHERE rn <= 2"
        ),
        True,
    ),
    "inner join by WHERE": (
        "SELECT l.k, COUNT(DISTINCT r.w) AS n FROM l, r LEFT JOIN u ON r.k = u.k WHERE l.k = r.k AND l.v >= r.w GROUP BY l.k",
        True,
    ),
    "two parts of a stream": (
        (
            "SELECT a.k, a.w, b.id FROM (SELECT k, v + v AS w FROM l WHERE id % 2 = 0) AS a "
            "LEFT JOIN (SELECT k, id FROM l WHERE v > 1) AS b ON a.k = b.k"
        ),
        True,
    ),
    "three streams": (
        "SELECT l.id, r.id AS other, u.x FROM l LEFT JOIN r ON l.k = r.k LEFT JOIN u ON l.k = u.k AND u.x > 0",
        True,
    ),
    "mean by category": (
        (
            "SELECT c, AVG(best) AS mean, COUNT(*) AS n FROM (SELECT r.k, r.s AS c, MAX(l.v) AS best FROM l JOIN r ON l.k = r.k "
            "AND l.v >= r.w GROUP BY r.k, r.s) AS q GROUP BY c"
        ),
        True,
    ),
    "mean over the last two winners": (
        (
            "SELECT seller, id, AVG(v) OVER (PARTITION BY seller ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS mean "
            "FROM (SELECT l.k, r.s AS seller, l.v, l.id, ROW_NUMBER() OVER (PARTITION BY l.k, r.s ORDER BY l.v DESC, l.id) AS rn "
            "FROM l JOIN r ON l.k = r.k) AS q WHERE rn = 1"
        ),
        True,
    ),
    "count of counts of counts": (
        (
            "SELECT m, COUNT(*) AS x FROM (SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS a "
            "GROUP BY n) AS b GROUP BY m"
        ),
        True,
    ),
    "total of an aggregate by a finer key": (
        "SELECT k, SUM(n) AS t FROM (SELECT k, s, COUNT(DISTINCT v) AS n FROM l GROUP BY k, s) AS x GROUP BY k",
        True,
    ),
    "largest of all": (
        "SELECT k, n FROM (SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k) AS x ORDER BY n DESC, k LIMIT 3",
        False,
    ),
    "the most": (
        (
            "WITH c AS (SELECT k, COUNT(*) AS n FROM l GROUP BY k) SELECT a.k, a.n FROM c AS a JOIN (SELECT MAX(n) AS most "
            "FROM c) AS b ON a.n = b.most"
        ),
        False,
    ),
    "joined by an aggregate": (
        (
            "SELECT a.k, a.m, b.t FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k) AS a "
            "LEFT JOIN (SELECT w, COUNT(*) AS t FROM r GROUP BY w) AS b ON a.m = b.w"
        ),
        True,
    ),
    "joined with rows": (
        "SELECT a.k, a.m, r.id FROM (SELECT k, MAX(v) AS m FROM l GROUP BY k) AS a FULL JOIN r ON a.m = r.w",
        True,
    ),
    "filtered before the join": (
        (
            "SELECT a.k, r.id FROM (SELECT k, s, MAX(v) AS m FROM l GROUP BY k, s) AS a LEFT JOIN r ON a.m = r.w "
            "WHERE a.m > 1 AND a.s IS NOT NULL"
        ),
        True,
    ),
    "union of aggregates": (
        (
            "SELECT k AS a, COUNT(DISTINCT v) AS n FROM l GROUP BY k UNION ALL "
            "SELECT w, MAX(m) FROM (SELECT w, k, COUNT(*) AS m FROM r GROUP BY w, k) AS x GROUP BY w"
        ),
        True,
    ),
    "except of aggregates": (
        (
            "SELECT n FROM (SELECT k, COUNT(*) AS n FROM l GROUP BY k) AS a WHERE n > 0 EXCEPT "
            "SELECT m FROM (SELECT k, COUNT(*) AS m FROM r GROUP BY k) AS b"
        ),
        True,
    ),
    "mean of differences": (
        (
            "SELECT s, SUM(d) AS t FROM (SELECT s, v - LAG(v) OVER (PARTITION BY k ORDER BY id, s) AS d FROM l) AS x "
            "GROUP BY s"
        ),
        True,
    ),
    "range of numbers": (
        (
            "SELECT k, id, SUM(v) OVER (PARTITION BY k ORDER BY id RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) AS t, "
            "COUNT(*) OVER (PARTITION BY k ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS n FROM l"
        ),
        True,
    ),
    "shares": (
        (
            "SELECT k, id, NTILE(3) OVER (PARTITION BY k ORDER BY v, id, s) AS third, PERCENT_RANK() OVER "
            "(PARTITION BY k ORDER BY v) AS p, CUME_DIST() OVER (PARTITION BY k ORDER BY v) AS c FROM l"
        ),
        True,
    ),
    "three streams, one by another key": (
        "SELECT l.id, r.id AS other, u.x FROM l LEFT JOIN r ON l.k = r.k LEFT JOIN u ON r.w = u.k",
        True,
    ),
    "lateral limit": (
        (
            "SELECT l.id, t.w, t.other FROM l, LATERAL (SELECT r.w, r.id AS other FROM r WHERE r.k = l.k "
            "ORDER BY r.w DESC, r.id, r.s LIMIT 2) AS t"
        ),
        True,
    ),
    "left lateral limit": (
        (
            "SELECT l.id, t.a, t.b FROM l LEFT JOIN LATERAL (SELECT r.w, r.id FROM r WHERE l.k = r.k AND r.w > 0 "
            "ORDER BY r.id, r.w, r.s LIMIT 1 OFFSET 1) AS t(a, b) ON t.a >= l.v"
        ),
        True,
    ),
    "lateral limit of groups": (
        (
            "SELECT l.id, t.s, t.n FROM l CROSS JOIN LATERAL (SELECT r.s, COUNT(*) AS n FROM r WHERE r.k = l.k "
            "GROUP BY r.s ORDER BY COUNT(*) DESC, r.s LIMIT 1) AS t"
        ),
        True,
    ),
    "lateral limit by an inequality": (
        (
            "SELECT l.id, t.other FROM l, LATERAL (SELECT r.id AS other FROM r WHERE r.k = l.k AND r.w < l.v "
            "ORDER BY r.w DESC, r.id LIMIT 1) AS t"
        ),
        True,
    ),
    "lateral aggregate": (
        (
            "SELECT l.id, t.n, t.most FROM l LEFT JOIN LATERAL (SELECT COUNT(*) AS n, MAX(r.w) AS most FROM r "
            "WHERE r.k = l.k AND r.w >= l.v) AS t ON true"
        ),
        True,
    ),
    "lateral over all": (
        "SELECT l.id, t.id AS best FROM l, LATERAL (SELECT id FROM r ORDER BY w DESC, id, s LIMIT 1) AS t",
        False,
    ),
    "join by inequality": ("SELECT l.id, r.id AS other FROM l JOIN r ON l.v < r.w AND l.s < 'c'", False),
    "left join by inequality": ("SELECT l.id, u.x FROM l LEFT JOIN u ON l.v > u.x", False),
    "value of the best": (
        "SELECT id, (SELECT w FROM r WHERE r.k = l.k ORDER BY w DESC, r.id LIMIT 1) AS w FROM l",
        True,
    ),
    "conditions as values": (
        (
            "SELECT id, CASE WHEN EXISTS (SELECT 1 FROM r WHERE r.k = l.k) THEN 'x' ELSE 'y' END AS e, "
            "k IN (SELECT k FROM u) AS i, v NOT IN (SELECT w FROM r WHERE r.k = l.k) AS o FROM l"
        ),
        False,
    ),
    "subqueries in groups": (
        (
            "SELECT k, SUM(CASE WHEN v IN (SELECT w FROM r) THEN 1 ELSE 0 END) AS n FROM l GROUP BY k "
            "HAVING COUNT(*) > (SELECT COUNT(*) FROM u WHERE x > 1)"
        ),
        False,
    ),
}

# Those that are answered in more than one stage.
STAGES = {
    "rankings of rankings": 2, "groups beside one row": 2, "groups of a join that knows NULL": 2,
    "join in brackets": 2, "median of counts": 2, "as many as any": 2,
    "aggregate of an aggregate": 2, "mean of maxima": 2, "aggregate of an aggregate by its key": 2, "mean by category": 2,
    "mean over the last two winners": 2, "count of counts of counts": 3, "total of an aggregate by a finer key": 2,
    "largest of all": 2, "the most": 3, "more than the mean": 3, "largest sums": 2, "largest sums, hidden key": 2,
    "ranks of groups": 2, "largest groups of a join": 3, "subqueries in groups": 1, "joined by an aggregate": 3, "joined with rows": 2, "filtered before the join": 2,
    "three streams, one by another key": 2, "join by what Spark computes": 2, "union of aggregates": 2, "except of aggregates": 3, "mean of differences": 2, "top of a grouped query": 1, "lateral limit of groups": 2,
}  # fmt: skip


@pytest.mark.parametrize("shape", some(SHAPES, 3))
def test_view_and_changes_are_the_batch_answer_after_every_batch(shape: str, tmp_path: Path) -> None:
    """With NULL keys, duplicates, empty batches, a batch that comes twice, one that breaks off, a store that is closed and opened again, and
    a way back to an earlier batch in between."""
    query, keyed = SHAPES[shape]
    rnd = random.Random(f"finish {shape}")  # noqa: S311
    batches = [random_batch(rnd, 10 * number) for number in range(8)]
    batches[0]["l"].append((1, 0, 1, "a"))  # an aggregate of all rows is there from the first row on
    batches[5] = {"l": [], "r": [], "u": []}
    found = Finished(query, tmp_path / "views.duckdb")
    assert found.job.finish is not None
    assert bool(found.job.finish.keys) == keyed, found.job.how
    assert len(found.job.finish.stages) == STAGES.get(shape, 1), found.job.how
    for number, batch in enumerate(batches):
        if number == 3:
            with pytest.raises(BrokenOffError):
                found.commit(number, batch, fails_at="view.before_commit")
        found.add(number, batch)
        if number == 2:
            found.commit(number, batch)  # Spark had not heard of the commit
        if number == 4:
            found.reopen()
        if number == 6:
            found.store.rollback("job", 3)
            for again in (4, 5, 6):
                found.commit(again, batches[again])
            # The changes since then are those of the new batches, numbered as the old ones were.
            found.fold.clear()
            found.seq = 0
        found.follow()
        expected = found.answer()
        assert found.view() == expected, f"the view after batch {number}"
        assert +found.fold == expected, f"the folded changes after batch {number}"
    assert expected, "an empty answer tells nothing"
    found.store.close()


ASOF = {
    "asof join": ("JOIN r ON l.k = r.k AND l.v >= r.w", "r.w <= l.v", "r.w DESC", False),
    "asof left join": ("LEFT JOIN r ON l.k = r.k AND l.v >= r.w", "r.w <= l.v", "r.w DESC", True),
    "asof of all": ("JOIN r ON l.v >= r.w", "r.w <= l.v", "r.w DESC", False),
    "asof of all, matched": ("LEFT JOIN r MATCH_CONDITION (l.v > r.w)", "r.w < l.v", "r.w DESC", True),
    "asof, the next": ("LEFT JOIN r ON l.k = r.k AND l.v < r.w", "r.w > l.v", "r.w", True),
    "asof, near": (
        "LEFT JOIN r ON l.k = r.k AND l.v >= r.w AND r.w >= l.v - 2",
        "r.w BETWEEN l.v - 2 AND l.v",
        "r.w DESC",
        True,
    ),
    "asof, between": (
        "JOIN r ON l.k = r.k AND r.w BETWEEN l.v - 2 AND l.v",
        "r.w BETWEEN l.v - 2 AND l.v",
        "r.w DESC",
        False,
    ),
    "asof of all, the next within": (
        "LEFT JOIN r MATCH_CONDITION (l.v < r.w) ON r.w - l.v <= 3",
        "r.w > l.v AND r.w - l.v <= 3",
        "r.w, r.k",
        True,
    ),
}


@pytest.mark.parametrize("shape", ASOF)
def test_the_last_row_before_each(shape: str) -> None:
    """A version that comes late takes the place of an earlier one; of two of the same moment the other columns say
    which (G13)."""
    written, allowed, order, left = ASOF[shape]
    found = Finished(f"SELECT l.id, l.v, r.id AS other FROM l ASOF {written}", None)
    equal = "l.k = r.k" in written
    key = "r.k = l.k AND " if equal else ""
    best = f"(SELECT r.id FROM r WHERE {key}{allowed} ORDER BY {order}, r.id LIMIT 1)"
    found.oracle = f"SELECT id, v, other FROM (SELECT l.id, l.v, {best} AS other FROM l) {'' if left else 'WHERE other IS NOT NULL'}"
    assert found.job.finish is not None
    assert bool(found.job.finish.keys) == equal
    rnd = random.Random(shape)  # noqa: S311
    for number in range(6):
        found.add(number, random_batch(rnd, 10 * number))
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"after batch {number}"
    assert found.answer()
    found.store.close()


@pytest.mark.parametrize("on", ["l.k + 1 = r.k + 1", "l.k = r.k + 0", "abs(l.k) = abs(r.k)"])
def test_the_last_row_by_a_computed_key(on: str) -> None:
    """The versions of one key are those for which what is computed of them is the same."""
    found = Finished(f"SELECT l.id, l.v, r.id AS other FROM l ASOF LEFT JOIN r ON {on} AND l.v >= r.w", None)
    best = f"(SELECT r.id FROM r WHERE {on} AND r.w <= l.v ORDER BY r.w DESC, r.k, r.id LIMIT 1)"
    found.oracle = f"SELECT l.id, l.v, {best} AS other FROM l"
    rnd = random.Random(7)  # noqa: S311
    for number in range(6):
        found.add(number, random_batch(rnd, 10 * number))
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"after batch {number}"
    assert len({row.rsplit(",", 1)[1] for row in found.answer()}) > 1
    found.store.close()


def test_a_version_of_a_stream_as_of_an_event_time() -> None:
    """FOR SYSTEM_TIME AS OF is a join with the last row up to that time, and a late version is heard of."""
    streams = """
        CREATE STREAM o (id BIGINT, cur BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
        CREATE STREAM rates (cur BIGINT, rate BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
    """
    query = (
        "SELECT o.id, x.rate FROM o LEFT JOIN rates FOR SYSTEM_TIME AS OF o.ts AS x ON o.cur = x.cur WHERE x.rate > 1"
    )
    job = plan_job(planned(f"{streams} CREATE MATERIALIZED VIEW v AS {query};"))
    assert job.finish is not None
    text = job.finish.view.text
    assert "ASOF LEFT JOIN" in text
    assert '"o"."ts" >= "x"."ts"' in text
    # asked after the join: an earlier version does not take the place of one that is left out
    assert '"x"."rate" > ' in text.split(' AS "x" ON ')[1]
    assert job.finish.keys


def test_a_version_is_found_by_its_key_and_then_asked() -> None:
    """Further conditions of an inner join do not put an earlier version in the place of one that they refuse."""
    streams = """
        CREATE STREAM o (id BIGINT, cur BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
        CREATE STREAM rates (cur BIGINT, rate BIGINT, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '1' SECOND);
    """
    texts: list[str] = []
    for condition in ("o.cur = x.cur AND x.rate > 1", "o.cur = x.cur WHERE x.rate > 1"):
        query = f"SELECT o.id, x.rate FROM o JOIN rates FOR SYSTEM_TIME AS OF o.ts AS x ON {condition}"
        job = plan_job(planned(f"{streams} CREATE MATERIALIZED VIEW v AS {query};"))
        assert job.finish is not None
        texts.append(job.finish.view.text)
    assert texts[0] == texts[1]
    assert "ASOF JOIN" in texts[0]


def test_limit_without_an_order_always_takes_the_same_rows() -> None:
    """G16: any rows are an answer; these are the first by all columns, whichever batch brought them."""
    found = Finished("SELECT k, v, id FROM l WHERE v > 0 LIMIT 4", None)
    found.oracle = "SELECT k, v, id FROM l WHERE v > 0 ORDER BY k, v, id LIMIT 4"
    rnd = random.Random(3)  # noqa: S311
    for number in range(4):
        found.add(number, random_batch(rnd, 10 * number))
        found.follow()
        assert found.view() == found.answer() == +found.fold, f"after batch {number}"
    assert sum(found.answer().values()) == 4
    found.store.close()


def test_only_what_the_batch_touched_changes() -> None:
    """A key of which no row came has no changes, and an answer that stays the same has none either."""
    found = Finished("SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k", None)
    found.add(0, {"l": [(1, 1, 1, "a"), (2, 2, 1, "a"), (None, 3, 1, "a")]})
    found.add(1, {"l": [(1, 4, 2, "a"), (2, 5, 1, "b")]})
    changes = found.store.changes("answered", 3)
    assert [(change.op, change.before, change.row) for change in changes] == [
        ("update", {"k": 1, "n": 1}, {"k": 1, "n": 2})
    ]
    found.store.close()


@pytest.mark.parametrize(
    "query",
    ["SELECT k, COUNT(DISTINCT v) AS n FROM l GROUP BY k HAVING COUNT(DISTINCT v) < 3", "SELECT DISTINCT k, v FROM l"],
    ids=["by key", "whole rows"],
)
def test_changes_of_a_large_batch_are_numbered_in_their_order(query: str) -> None:
    """Deletes, then inserts, then updates, each by the columns of the row: more of them than DuckDB handles at once."""
    found = Finished(query, None)
    keys = range(30_000)
    batches = [[(k, 0, 0) for k in keys], [(k, 0, v) for k in keys if k % 3 for v in range(k % 3 + 1)]]
    batches[1] += [(len(keys) + k, 0, 0) for k in keys]
    random.Random(5).shuffle(batches[1])  # noqa: S311
    for number, rows in enumerate(batches):
        found.spark.execute("DELETE FROM l")
        columns = {
            name: pa.array(values, pa.int64()) for name, values in zip("kiv", zip(*rows, strict=True), strict=True)
        }
        found.spark.register("given", pa.table(columns))
        found.spark.execute("INSERT INTO l SELECT k, i, v, NULL FROM given")
        text = sqlglot.transpile(found.job.core, read="spark", write="duckdb")[0]
        given = found.spark.sql(text).to_arrow_table()
        found.store.commit(BatchCommit("job", number, f"hash {number}", view="answered", rows=given))
    changes = found.store.changes("answered", 0, limit=200_000)
    assert [change.seq for change in changes] == list(range(1, len(changes) + 1))
    for number in (0, 1):
        of_batch = [change for change in changes if change.batch_id == number]
        order = [(each.op, *(each.row or each.before or {}).values()) for each in of_batch]
        assert len(order) >= len(keys)
        assert order == sorted(order)
    found.store.close()


def test_the_core_filters_computes_and_reads_a_stream_once() -> None:
    """Conditions of one stream go to Spark, and so does what the store has no words for."""
    found = job_of(
        "SELECT date_format(to_timestamp(s), 'yyyy') AS y, COUNT(DISTINCT v) AS n FROM l WHERE v > 3 AND id < 9 GROUP BY 1"
    )
    core = " ".join(found.core.split())
    assert "WHERE ( `l`.`v` > 3 ) AND ( `l`.`id` < 9 )" in core
    assert found.finish is not None
    assert len(found.finish.rows[0].columns) == 2
    twice = job_of("SELECT a.id FROM l AS a WHERE NOT EXISTS (SELECT 1 FROM l AS b WHERE b.k = a.k AND b.v > a.v)")
    assert [scan.relation for scan in twice.scans] == ["l"]
    assert twice.finish is not None
    assert [leaf.source for leaf in twice.finish.view.leaves] == [0, 0]


def test_how_says_core_finish_key_and_state() -> None:
    assert job_of("SELECT l.id, r.w FROM l LEFT JOIN r ON l.k = r.k").how == (
        "Spark reads and filters each batch, the view store keeps the rows of l (k, id) and r (k, w) and answers the "
        "query for the keys that a batch touches: l by (k), r by (k)"
    )
    assert "over all of them after each batch: it has no key" in job_of("SELECT k FROM l ORDER BY k LIMIT 3").how
