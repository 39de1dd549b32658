"""What state a job keeps, as a small description and its hash.

Spark accepts changed aggregates, windows and keys on old state without a word and mixes them. So each stateful plan is
described here: its scans, and every aggregate with keys, window, arguments and the conditions its rows have passed.
Every column is followed down to the scans, so that names inside the query, and the names and order of its output, do
not matter; neither does what happens above the last aggregate, such as HAVING.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.join_times import join_time
from penstock.plan.prune import columns_read
from penstock.plan.spark_blocks import (
    aggregate_nodes,
    aggregates,
    first_keys,
    group_keys,
    outputs,
    relations,
    stream_joins,
)
from penstock.plan.spark_text import spark_sql
from penstock.plan.trees import column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.plan.job_scans import JobScans

_PLACES: Final = {
    "keys": "the keys",
    "aggregates": "the aggregates",
    "rows": "the rows that are aggregated",
}

_WHOLE: Final = {
    "replaced by": "the keys by which rows replace each other",
    "kept rows": "which rows the view store keeps",
    "answers": "what the view store answers over the rows that it keeps",
}


@frozen
class StateDescription:
    """The state of a job as JSON text, and its hash."""

    text: str

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]


def state_of(found: JobScans, kind: str) -> StateDescription:
    """What a job over these scans keeps. A stateless job keeps only how far it has read."""
    views = {scan.view: scan.id for scan in found.scans}
    views.update({dimension.view: dimension.id for dimension in found.dimensions})
    views.update({query.view: f"({query.sql})" for query in found.static})
    reader = _Reader(views)
    reader.query(found.tree)
    described: dict[str, Any] = {
        "kept by": "the view store" if kind in ("merge", "panes", "windows") else "Spark",
        "scans": {
            scan.id: f"{scan.event_time.column}, delay {scan.event_time.delay_us} us" if scan.event_time else None
            for scan in found.scans
        },
        "aggregates": reader.aggregates,
    }
    if reader.joins:
        described["joins"] = reader.joins
    if reader.distinct:
        described["distinct"] = reader.distinct
    if not (reader.aggregates or reader.joins or reader.distinct):
        described = {"scans": described["scans"]}
    return StateDescription(json.dumps(described, ensure_ascii=False, sort_keys=True))


def describe_difference(old: str, new: str) -> str:
    """In words, what differs between two descriptions of state."""
    before, after = json.loads(old), json.loads(new)
    if list(before["scans"]) != list(after["scans"]):
        return f"it read {_listed(before['scans'])} and now reads {_listed(after['scans'])}"
    for name, time in before["scans"].items():
        if after["scans"][name] != time:
            return (
                f'the event time of "{name}" was {time or "not used"} and is now {after["scans"][name] or "not used"}'
            )
    if before.get("kept by") != after.get("kept by"):
        return f"its state was kept by {before.get('kept by', 'nobody')} and is now by {after.get('kept by', 'nobody')}"
    for part, words in (("joins", "the joins"), ("distinct", "the distinct rows")):
        if before.get(part) != after.get(part):
            return f"{words} were {_listed(before.get(part))} and are now {_listed(after.get(part))}"
    other = [words for part, words in _WHOLE.items() if before.get(part) != after.get(part)]
    if other:
        return other[0]
    one, two = before.get("aggregates", []), after.get("aggregates", [])
    if len(one) != len(two):
        return f"it had {len(one)} aggregates and now has {len(two)}"
    for was, now in zip(one, two, strict=True):
        for part, words in _PLACES.items():
            if was.get(part) != now.get(part):
                return f"{words} were {_listed(was.get(part))} and are now {_listed(now.get(part))}"
    return "nothing that is kept"


def _listed(values: Any) -> str:
    if isinstance(values, str):
        return values
    return ", ".join(_listed(value) for value in values) if values else "none"


class _Reader:
    """Follows columns down to the scans, and notes the aggregates on the way, the lowest first."""

    def __init__(self, views: Mapping[str, str]) -> None:
        self.views = views
        self.aggregates: list[dict[str, Any]] = []
        self.joins: list[list[str]] = []
        self.distinct: list[list[str]] = []

    def query(self, query: exp.Expr) -> tuple[dict[str, exp.Expr], list[str]]:
        """The columns of a query in terms of scans and aggregates, and what its rows have passed."""
        if isinstance(query, exp.SetOperation):
            return self._union(query)
        assert isinstance(query, exp.Select)
        return self._select(query)

    def _union(self, query: exp.SetOperation) -> tuple[dict[str, exp.Expr], list[str]]:
        left, passed = self.query(query.this)
        right, others = self.query(query.expression)
        columns: dict[str, exp.Expr] = {}
        for name, other in zip(outputs(query.this), outputs(query.expression), strict=True):
            columns[name] = exp.Anonymous(this="either", expressions=[left[name].copy(), right[other].copy()])
        return columns, [f"either ({'; '.join(passed)}) or ({'; '.join(others)})"]

    def _select(self, query: exp.Select) -> tuple[dict[str, exp.Expr], list[str]]:
        values: dict[str, dict[str, exp.Expr]] = {}
        rows: list[str] = []
        for alias, below in relations(query).items():
            if isinstance(below, exp.Table):
                # a scan gives its columns under its own name, whatever the query calls it
                values[alias] = _ScanColumns(self.views[below.name])
                rows.append(f"from {self.views[below.name]}")
            else:
                values[alias], passed = self.query(below)
                rows += passed
        for join in query.args.get("joins") or []:
            if join_time(join) is not None:
                on = join.args.get("on")
                word = " ".join(part for part in (join.side, join.kind) if part) or "INNER"
                rows.append(f"{word} JOIN on {self._text(on, values) if on is not None else 'nothing'}")
            if isinstance(join.this, exp.Lateral):
                made = f"{self._text(join.this.this, values)}{' or none' if join.side else ''}"
                rows.append(f"rows of {made}")
                alias = join.this.args["alias"]
                values[alias.name] = {
                    name.name: exp.column(exp.to_identifier(f"value {place} of {made}", quoted=True))
                    for place, name in enumerate(alias.args.get("columns") or [], start=1)
                }
        for join in query.args.get("joins") or []:
            on = join.args.get("on")
            if on is not None:
                kind = " ".join(word for word in (join.side, join.kind) if word).lower()
                rows.append(f"{kind} join on {self._text(on, values)}")
        where = query.args.get("where")
        if where is not None:
            rows.append(f"where {self._text(where.this, values)}")
        if stream_joins(query):
            self.joins.append([*rows, *self._joined_columns(query, values)])
        if query.args.get("distinct") is not None:
            keys = first_keys(query)
            kept = [item for item in query.expressions if not keys or item.alias_or_name in keys]
            self.distinct.append([self._text(item.unalias(), values) for item in kept])
        if aggregates(query):
            return self._aggregate(query, values, rows), [f"of aggregate {len(self.aggregates)}"]
        return {item.alias_or_name: self._resolved(item.unalias(), values) for item in query.expressions}, rows

    def _joined_columns(self, query: exp.Select, values: dict[str, dict[str, exp.Expr]]) -> list[str]:
        """The columns of each side of a join that are kept, as they come in."""
        read = columns_read(query)
        found: list[str] = []
        for alias, below in relations(query).items():
            names = sorted(read.get(alias, ()))
            if not isinstance(below, exp.Table):
                names = [name for name in outputs(below) if name in read.get(alias, ())]
            found.append(f"columns {', '.join(self._text(column(name, alias), values) for name in names)}")
        return found

    def _aggregate(
        self, query: exp.Select, values: dict[str, dict[str, exp.Expr]], rows: list[str]
    ) -> dict[str, exp.Expr]:
        having = query.args.get("having")
        trees = [*query.expressions, *([having] if having is not None else [])]
        calls = [self._text(node, values) for tree in trees for node in aggregate_nodes(tree)]
        group = query.args.get("group")
        sets = [self._text(entry, values) for entry in group.expressions] if group is not None else []
        keys = [self._text(key, values) for key in group_keys(query)]
        self.aggregates.append(
            {"keys": sets if _has_sets(group) else keys, "aggregates": list(dict.fromkeys(calls)), "rows": rows}
        )
        number = len(self.aggregates)
        columns: dict[str, exp.Expr] = {}
        for item in query.expressions:
            value = self._resolved(item.unalias(), values)
            columns[item.alias_or_name] = exp.Anonymous(this=f"aggregate_{number}", expressions=[value])
        return columns

    def _resolved(self, tree: exp.Expr, values: dict[str, dict[str, exp.Expr]]) -> exp.Expr:
        made = exp.Paren(this=tree.copy())
        for node in list(made.find_all(exp.Column)):
            known = values.get(node.table)
            if known is not None and (node.name in known or isinstance(known, _ScanColumns)):
                node.replace(known[node.name].copy())
        inner: exp.Expr = made.this
        return inner

    def _text(self, tree: exp.Expr, values: dict[str, dict[str, exp.Expr]]) -> str:
        return spark_sql(self._resolved(tree, values), pretty=False)


def _has_sets(group: exp.Expr | None) -> bool:
    entries = group.expressions if group is not None else []
    return any(isinstance(entry, exp.GroupingSets | exp.Cube | exp.Rollup) for entry in entries)


class _ScanColumns(dict[str, exp.Expr]):
    """The columns of a scan, whichever are asked for."""

    def __init__(self, scan: str) -> None:
        super().__init__()
        self.scan = scan

    def __missing__(self, name: str) -> exp.Expr:
        return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(self.scan, quoted=True))
