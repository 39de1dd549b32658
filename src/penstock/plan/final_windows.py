"""Windows over rows that change, each shown once: when the watermark has passed its end.

    SELECT k, COUNT(*) AS n FROM c GROUP BY k, TUMBLE(ts, INTERVAL '10' SECOND) EMIT FINAL

The view store keeps the rows, as it does for windows that show each change. A batch that moves the watermark asks the
whole query of them once more, for no windows but those that end on the way:

    … FROM (SELECT *, <bounds> FROM c) WHERE window_end > <the watermark before> AND window_end <= <the watermark> …

and what it answers is added to the view. Nothing asks for a closed window again, so a change of its rows comes too
late, and a row is let go of when all its windows have closed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.assign_windows import steps_of
from penstock.plan.finish_orders import NotFinishableError
from penstock.plan.finish_plan import Closing, WindowEnds
from penstock.plan.joins import conjuncts_of
from penstock.plan.kept_windows import closing_spec
from penstock.plan.late_plan import late_text
from penstock.plan.nodes import Scan
from penstock.plan.pane_plan import PanePlan
from penstock.plan.relation import WINDOW_COLUMN
from penstock.plan.spark_blocks import aggregates, item_of, origins, relations, scans, selects
from penstock.plan.trees import aliased, column, identifier, select, subquery
from penstock.plan.windows import WindowSpec, spark_window

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from penstock.plan.core_rows import CoreRows
    from penstock.plan.finish_plan import KeptRows
    from penstock.plan.job_scans import JobScans
    from penstock.plan.logical import LogicalPlan
    from penstock.plan.nodes import Core
    from penstock.plan.spark_blocks import Origin

_BOUNDS: Final = ("window_start", "window_end", "window_time")
_ENDS: Final = ("window_end", "window_time")
_FEW: Final = ("distinct", "limit", "offset")
_MORE: Final = (*_FEW, "laterals", "joins")
_CHANGES: Final = "write EMIT CHANGES: the view shows each window as its rows change"


@frozen
class FinalWindows:
    """The windows of a query that are shown when they close. `times` are the relations and columns that their times
    come from; rows of the relations in `only` are read by these windows and by nothing else, each by itself."""

    spec: WindowSpec
    times: tuple[tuple[str, str], ...]
    only: frozenset[str]
    said: tuple[exp.Expr, ...]  # conditions above the windows that speak of the rows of the one relation of their times

    @property
    def panes(self) -> PanePlan:
        """How the windows lie."""
        spec = self.spec
        slide = spec.step_us or spec.slide_us or spec.size_us
        return PanePlan(spec.size_us, slide, spec.offset_us % slide, cumulates=spec.kind == "CUMULATE")


def final_windows(tree: exp.Query, known: Mapping[str, Scan | Core]) -> FinalWindows | None:
    """The windows of a query that are shown when they close; None where it has none. NotFinishableError where what is
    shown of a window would not be known when it closes."""
    found = [(block, spec) for block in tree.find_all(exp.Select) if (spec := closing_spec(block)) is not None]
    if not found:
        return None
    if len(found) > 1:
        raise NotFinishableError("EMIT FINAL takes one window over rows that change", _CHANGES)
    ((block, spec),) = found
    if spec.kind == "SESSION":
        raise NotFinishableError(
            "a session of rows that change is never known to have ended: what is taken out of it makes two of it",
            _CHANGES,
        )
    _check_above(tree, block, cumulates=spec.kind == "CUMULATE")
    found_times = list(_times(block))
    times = tuple(dict.fromkeys((each.table.name, each.column) for each in found_times))
    if not times:
        raise NotFinishableError("the time of a window is computed from several rows, and no watermark passes it",
                                 _CHANGES)  # fmt: skip
    for relation, time in times:
        _check_time(known[relation], time)
    inside = {id(each.table) for each in found_times}
    seen_elsewhere = {table.name for table in scans(tree) if id(table) not in inside}
    alone = {relation for relation, _ in times} if _row_by_row(block) else set()
    said = tuple(_said_above(tree, block, times[0][0])) if len(times) == 1 else ()
    return FinalWindows(spec, times, frozenset(alone - seen_elsewhere), said)


def _check_above(tree: exp.Expr, windowed: exp.Select, *, cumulates: bool) -> None:
    """What stands above the windows has to be made of one window each: its rows, groups of them, ranks among them."""
    block, grouped = tree, False
    while isinstance(block, exp.Select) and block is not windowed:
        calls = [node for item in block.expressions for node in item.find_all(exp.Window)]
        within = all(_one_of(block, each.args.get("partition_by") or [], windowed, cumulates) for each in calls)
        if aggregates(block):
            few = any(block.args.get(clause) for clause in _FEW)
            grouped = within and not few and _one_of(block, _plain_keys(block), windowed, cumulates)
            grouped = grouped and _whole(block, windowed)
            break
        below = list(relations(block).values())
        if not within or len(below) != 1 or any(block.args.get(clause) for clause in _MORE) or _asks(block):
            break
        block = below[0]
    if block is windowed or grouped:
        return
    raise NotFinishableError(
        "EMIT FINAL shows what is made of the rows of each window, and here stands more above the windows",
        f"group by the bounds of the window, filter and rank within it; or {_CHANGES}",
    )


def _asks(block: exp.Select) -> bool:
    parts = [*block.expressions, *([block.args["where"]] if block.args.get("where") is not None else [])]
    return any(isinstance(node, exp.Subquery | exp.Exists) for part in parts for node in part.walk())


def _plain_keys(block: exp.Select) -> list[exp.Expr]:
    group = block.args.get("group")
    return list(group.expressions) if isinstance(group, exp.Group) else []


def _whole(block: exp.Select, windowed: exp.Select) -> bool:
    """Whether every row that a SELECT reads has a window: what is joined to windows may be missing, they may not."""
    alias, below = next(
        (alias, below) for alias, below in relations(block).items() if any(node is windowed for node in below.walk())
    )
    joins = block.args.get("joins") or []
    if any(join.side not in ("", "LEFT") or (join.side and join.this.alias_or_name == alias) for join in joins):
        return False
    return below is windowed or (isinstance(below, exp.Select) and _whole(below, windowed))


def _one_of(block: exp.Select, keys: list[exp.Expr], windowed: exp.Select, cumulates: bool) -> bool:
    """Whether one of the keys tells windows apart."""
    names = _ENDS if cumulates else _BOUNDS
    return any(isinstance(key, exp.Column) and _is_bound(block, key, windowed, names) for key in keys)


def _is_bound(block: exp.Select, key: exp.Column, windowed: exp.Select, names: tuple[str, ...]) -> bool:
    """Whether a column is a bound of the windows as it is."""
    below = relations(block).get(key.table)
    if below is windowed:
        return key.name in names
    if not isinstance(below, exp.Select):
        return False
    found = item_of(below, key.name)
    return isinstance(found, exp.Column) and _is_bound(below, found, windowed, names)


def _said_above(tree: exp.Expr, windowed: exp.Select, relation: str) -> Iterator[exp.Expr]:
    """The conditions between the groups and the windows that a row of a relation meets by itself, or not."""
    for block in selects(tree):
        where = block.args.get("where")
        if block is windowed or where is None or set(relations(block).values()) != {windowed}:
            continue
        for conjunct in conjuncts_of(where.this):
            made = exp.Paren(this=conjunct.copy())
            columns = list(made.find_all(exp.Column))
            places = [origins(block, each) for each in columns]
            if made.find(exp.Subquery, exp.Select, exp.Window) is not None:
                continue
            if not all(len(found) == 1 and found[0].table.name == relation for found in places):
                continue
            for each, (found,) in zip(columns, places, strict=True):
                each.replace(column(found.column, relation))
            yield made


def _times(query: exp.Expr) -> Iterator[Origin]:
    """The columns of scans that the times of windows come from, of each of the windows that a row is in."""
    if isinstance(query, exp.SetOperation):
        yield from _times(query.this)
        yield from _times(query.expression)
    end = item_of(query, "window_end") if isinstance(query, exp.Select) else None
    if not isinstance(query, exp.Select) or end is None:
        return
    below = relations(query).get(end.table) if isinstance(end, exp.Column) else None
    if below is not None:
        yield from _times(below)
    elif not isinstance(end, exp.Column):
        for node in end.find_all(exp.Column):
            yield from origins(query, node)


def _check_time(scan: Scan | Core, time: str) -> None:
    declared = scan.event_time if isinstance(scan, Scan) else None
    if not isinstance(scan, Scan):
        raise NotFinishableError(
            "the rows of the windows come from a subquery that Spark runs by itself, and no watermark with them",
            f"read the stream itself there, with its conditions above the windows; or {_CHANGES}",
        )
    if scan.kind == "materialized view":
        raise NotFinishableError(
            f'no watermark comes with the rows of view "{scan.relation}", which change',
            f"read the stream below it, which has one; or {_CHANGES}",
        )
    if declared is None or declared.column != time:
        raise NotFinishableError(
            f'"{time}" is not the event time of "{scan.relation}", and no watermark passes it',
            f"declare it with WATERMARK FOR {time}; or {_CHANGES}",
        )


def _row_by_row(windowed: exp.Select) -> bool:
    """Whether each row below the windows is seen beside no other row of its relation."""
    for block in selects(windowed):
        parts = [*block.expressions, *([block.args["where"]] if block.args.get("where") is not None else [])]
        over = any(isinstance(node, exp.Window | exp.Subquery | exp.Exists) for part in parts for node in part.walk())
        if over or aggregates(block) or any(block.args.get(clause) for clause in _FEW):
            return False
    return not windowed.find(exp.Intersect, exp.Except)


# what is kept, and what comes too late


def kept_times(windows: FinalWindows, rows: CoreRows) -> dict[str, WindowEnds]:
    """Of each relation, the kept column with the times of its rows."""
    return {relation: WindowEnds(rows.kept_time(relation, time), windows.panes) for relation, time in windows.times}


def with_end(rows: KeptRows, ends: Mapping[str, WindowEnds], windows: FinalWindows) -> KeptRows:
    """The kept rows, marked where one is let go of when its windows have closed. A row with a version stays: it says
    which of those that come are older."""
    versioned = rows.changes is not None and rows.changes.version is not None
    end = ends.get(rows.relation)
    return rows if end is None or versioned or rows.relation not in windows.only else replace(rows, ends=end)


def closing_of(windows: FinalWindows, ends: Mapping[str, WindowEnds]) -> Closing:
    """What the store has to know of the windows."""
    return Closing(windows.panes, tuple(each.column for each in ends.values()))


def with_event_times(plan: LogicalPlan, found: JobScans) -> JobScans:
    """The scans of a job with their event times: each stream that has one holds the watermark back."""
    known = {scan.relation: scan for scan in (*plan.nodes(), *plan.subquery_nodes()) if isinstance(scan, Scan)}
    return replace(
        found, scans=tuple(replace(each, event_time=known[each.relation].event_time) for each in found.scans)
    )


def late_rows_text(windows: FinalWindows, views: Mapping[str, str], conditions: Mapping[str, exp.Expr]) -> str | None:
    """Spark's text for the rows whose windows have closed: see late_plan. `views` are those of the scans, by relation;
    `conditions` say which of their rows count."""
    made: exp.Query | None = None
    for relation, time in windows.times:
        window = spark_window(windows.spec, column(time, relation))
        source = exp.Table(this=identifier(views[relation]), alias=exp.TableAlias(this=identifier(relation)))
        block = select([aliased(window, WINDOW_COLUMN)], source)
        counts = [*([conditions[relation]] if relation in conditions else []), *windows.said]
        if counts:
            block.set("where", exp.Where(this=exp.and_(*counts)))
        if windows.spec.kind == "CUMULATE":
            block = steps_of(block, [], column(time, relation), windows.spec)
        inner = "__each"
        key = column(WINDOW_COLUMN, inner)
        group = exp.Group(expressions=[key.copy()])
        grouped = select([aliased(key, WINDOW_COLUMN)], subquery(block, inner), group=group)
        made = grouped if made is None else exp.Union(this=made, expression=grouped, distinct=False)
    return None if made is None else late_text(made)
