"""Views below a query that asks when its rows came: their queries in their places.

    CREATE VIEW both AS SELECT id, name FROM a UNION ALL SELECT id, name FROM b
    SELECT DISTINCT ON (id) id, name FROM both ORDER BY id, PROCTIME()
    -> SELECT DISTINCT ON (id) id, name FROM (SELECT id, name FROM a UNION ALL SELECT id, name FROM b) AS both …

A row knows when it came where a stream is read, which is inside of the view.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from penstock.catalog.model import ViewDefinition
from penstock.plan.rules.order import apply_rules
from penstock.sql.script import parse_statement
from penstock.sql.statements import CreateView, Name

if TYPE_CHECKING:
    from penstock.plan.context import PlanContext


def with_views_in_place(context: PlanContext, select: exp.Select) -> exp.Select:
    """The SELECT with the queries of the views in its FROM clause as subqueries; itself where it reads none."""
    items = [*([select.args["from_"]] if select.args.get("from_") else []), *(select.args.get("joins") or ())]
    if not any(_query_of(context, item.this) is not None for item in items):
        return select
    made = select.copy()
    for item in [*([made.args["from_"]] if made.args.get("from_") else []), *(made.args.get("joins") or ())]:
        table, query = item.this, _query_of(context, item.this)
        if query is not None:
            context.depends_on[_view(context, table).name.text] = None  # type: ignore[union-attr]
            alias = exp.TableAlias(this=exp.to_identifier(table.alias_or_name, quoted=True))
            table.replace(exp.Subquery(this=query, alias=alias))
    return made


def _view(context: PlanContext, item: exp.Expr) -> ViewDefinition | None:
    plain = isinstance(item, exp.Table) and isinstance(item.this, exp.Identifier) and item.args.get("db") is None
    if not plain or item.args.get("system_time") is not None or item.args.get("joins") or _renames(item):
        return None
    found = context.catalog.find(Name(item.name, quoted=bool(item.this.quoted)))
    return found if isinstance(found, ViewDefinition) else None


def _renames(table: exp.Expr) -> bool:
    alias = table.args.get("alias")
    return isinstance(alias, exp.TableAlias) and bool(alias.args.get("columns"))


def _query_of(context: PlanContext, item: exp.Expr) -> exp.Query | None:
    """The query of a view that an item of a FROM clause names, where it can stand in its place by itself."""
    view = _view(context, item)
    if view is None or view.query.emit is not None:
        return None
    made = parse_statement(view.text)
    if not isinstance(made, CreateView) or made.columns:
        return None  # the names of its columns are not those of its query
    query = apply_rules(view.query.tree)
    return query if isinstance(query, exp.Query) else None
