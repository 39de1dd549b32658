"""Each rule before and after, from `tests/fixtures/rules/<rule>.sql` (A11, G12, G14, P1)."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot import exp

from penstock.errors import PenstockError
from penstock.plan.rules.array_queries import array_queries
from penstock.plan.rules.call_spellings import call_spellings
from penstock.plan.rules.distinct_aggregates import distinct_aggregates
from penstock.plan.rules.distinct_on import distinct_on
from penstock.plan.rules.group_by_references import group_by_references
from penstock.plan.rules.having_all import having_all
from penstock.plan.rules.inline_ctes import inline_ctes
from penstock.plan.rules.named_windows import named_windows
from penstock.plan.rules.order import RULES, Rule
from penstock.plan.rules.qualify import qualify
from penstock.plan.rules.row_makers import row_makers
from penstock.plan.rules.session_frames import session_frames
from penstock.plan.rules.topk import topk
from penstock.plan.rules.window_exists import window_exists
from penstock.plan.rules.with_ties import with_ties
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import call, column
from penstock.sql.format import format_tree
from penstock.sql.script import parse_statement
from penstock.sql.statements import Select

FIXTURES = Path(__file__).parents[2] / "fixtures" / "rules"
BY_NAME: dict[str, Rule] = {
    "call_spellings": call_spellings,
    "row_makers": row_makers,
    "inline_ctes": inline_ctes,
    "named_windows": named_windows,
    "window_exists": window_exists,
    "group_by_references": group_by_references,
    "qualify": qualify,
    "distinct_on": distinct_on,
    "with_ties": with_ties,
    "having_all": having_all,
    "topk": topk,
    "array_queries": array_queries,
    "session_frames": session_frames,
}


def listed(by: str, *, desc: bool) -> exp.Expr:
    """LISTAGG(DISTINCT k, '|') WITHIN GROUP (ORDER BY …)."""
    aggregate = call("listagg", exp.Distinct(expressions=[column("k"), exp.Literal.string("|")]))
    order = exp.Order(expressions=[exp.Ordered(this=column(by), desc=desc)])
    return exp.WithinGroup(this=aggregate, expression=order)


def tree(sql: str) -> exp.Expr:
    statement = parse_statement(sql)
    assert isinstance(statement, Select)
    return statement.query.tree.copy()


def pairs() -> list[tuple[str, str, str]]:
    found = []
    for path in sorted(FIXTURES.glob("*.sql")):
        for block in path.read_text(encoding="utf-8").split("\n---\n"):
            before, after = block.split("\n>>>\n")
            found.append((path.stem, before.strip(), after.strip()))
    return found


@pytest.mark.parametrize(("rule", "before", "after"), pairs())
def test_rule(rule: str, before: str, after: str) -> None:
    assert format_tree(BY_NAME[rule](tree(before))) == format_tree(tree(after))


def test_every_rule_has_fixtures() -> None:
    assert set(RULES) == set(BY_NAME.values())
    assert {name for name, _, _ in pairs()} == set(BY_NAME)


@pytest.mark.parametrize(("rule", "before"), [(rule, after) for rule, _, after in pairs()])
def test_a_rule_leaves_its_own_result_alone(rule: str, before: str) -> None:
    assert format_tree(BY_NAME[rule](tree(before))) == format_tree(tree(before))


def test_recursion_is_refused() -> None:
    with pytest.raises(PenstockError, match="RECURSIVE_QUERY"):
        inline_ctes(tree("WITH RECURSIVE r AS (SELECT 1 AS n) SELECT n FROM r"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (call("count", exp.Distinct(expressions=[column("k")])), "CAST(size(collect_set(`k`)) AS BIGINT)"),
        (
            call("count", exp.Distinct(expressions=[column("a"), column("b")])),
            "CAST(size(collect_set(if(`a` IS NULL OR `b` IS NULL, NULL, struct(`a`, `b`)))) AS BIGINT)",
        ),
        (call("max", exp.Distinct(expressions=[column("k")])), "max(`k`)"),
        (
            exp.Filter(
                this=call("count", exp.Distinct(expressions=[column("k")])),
                expression=exp.Where(this=exp.GT(this=column("v"), expression=exp.Literal.number(0))),
            ),
            "CAST(size(collect_set(`k`) FILTER(WHERE `v` > 0)) AS BIGINT)",
        ),
        (
            listed("k", desc=False),
            "if(size(collect_set(`k`)) > 0, array_join(array_sort(collect_set(`k`)), '|'), NULL)",
        ),
        (
            exp.Filter(this=listed("k", desc=True), expression=exp.Where(this=column("b"))),
            (
                "if(size(collect_set(`k`) FILTER(WHERE `b`)) > 0, "
                "array_join(sort_array(collect_set(`k`) FILTER(WHERE `b`), FALSE), '|'), NULL)"
            ),
        ),
    ],
)
def test_distinct_aggregates(before: exp.Expr, after: str) -> None:
    """0.2 trap 10: Spark refuses COUNT(DISTINCT) on a stream."""
    assert spark_sql(distinct_aggregates(before.copy()), pretty=False) == after


def test_a_distinct_list_goes_by_its_value() -> None:
    with pytest.raises(PenstockError, match=r"INVALID_ARGUMENT.*order by the value itself"):
        distinct_aggregates(listed("v", desc=False))
