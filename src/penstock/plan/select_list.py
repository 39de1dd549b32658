"""The columns of a SELECT list: bound, named, and marked with what they carry."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.errors import ResolutionError
from penstock.plan.block import Block, Item
from penstock.plan.grouping import Grouping
from penstock.plan.names import is_proctime, output_name
from penstock.plan.relation import HIDDEN_PREFIX, WINDOW_PARTS, WINDOW_TYPE, Field, WindowPart
from penstock.plan.scope import Leaf, column_tree, window_bound
from penstock.plan.trees import has_aggregate, type_of
from penstock.sql.fields import field_of
from penstock.sql.format import format_tree
from penstock.sql.nodes import WindowCall
from penstock.sql.spans import span_of


def plan_select_list(block: Block) -> None:
    """Adds the columns of a SELECT list to its block."""
    for written in block.written.expressions:
        if isinstance(written, exp.Star):
            _expand(block, None, written)
        elif isinstance(written, exp.Column) and isinstance(written.this, exp.Star):
            _expand(block, written.table, written)
        else:
            _add_item(block, written)
    if block.grouping is None and any(has_aggregate(item.tree) for item in block.items):
        block.grouping = Grouping.whole()
    seen: dict[str, Item] = {}
    for item in block.items:
        other = seen.setdefault(item.field.name.casefold(), item)
        if other is not item and (block.context.depth or block.context.unique_names):
            raise ResolutionError(
                "DUPLICATE_COLUMN",
                f'two columns of the SELECT list are called "{item.field.name}"',
                hint="give one of them another name with AS",
                span=item.place or span_of(item.tree),
            )


def _expand(block: Block, table: str | None, written: exp.Expr) -> None:
    if block.grouping is not None:
        raise ResolutionError(
            "NOT_GROUPED", "* cannot stand in a grouped query", hint="name the grouped columns", span=span_of(written)
        )
    listed = [(leaf, _listed(leaf, table)) for leaf in block.scope.leaves]
    leaves = [(leaf, fields) for leaf, fields in listed if fields is not None]
    if not leaves and _expand_struct(block, written):
        return
    if not leaves:
        raise ResolutionError("UNKNOWN_RELATION", f'"{table}" is not in the FROM clause', span=span_of(written))
    merged: set[str] = set()
    excluded = _excluded(block, written, leaves)
    for leaf, fields in leaves:
        if leaf.open:
            block.items.append(Item(Field("*", None), exp.Star(), "*"))
        for entry in fields:
            name = leaf.shown(entry)
            if entry.hidden or entry.pseudo or name.startswith(HIDDEN_PREFIX) or name.casefold() in excluded:
                continue
            block.context.read_field(entry)
            kept = replace(entry, name=name, qualifier=None)
            if table is None and name.casefold() in block.scope.merged:
                if name.casefold() not in merged:  # a column of USING stands once
                    merged.add(name.casefold())
                    block.items.append(Item(kept, block.scope.merged[name.casefold()].copy(), name))
                continue
            kept = replace(kept, nullable=_nullable(block, leaf.alias, entry))
            block.items.append(Item(kept, column_tree(leaf, entry), name))
    if excluded and not block.items and len(block.written.expressions) == 1:
        raise ResolutionError(
            "INVALID_ARGUMENT", "EXCEPT leaves no column of *", hint="keep one of them", span=span_of(written)
        )


def _excluded(block: Block, written: exp.Expr, leaves: list[tuple[Leaf, list[Field]]]) -> set[str]:
    """The columns that EXCEPT leaves out of *, each of which must be there."""
    star = written.this if isinstance(written, exp.Column) else written
    names = star.args.get("except_") or []
    known = {leaf.shown(entry).casefold() for leaf, fields in leaves for entry in fields}
    for name in names:
        if name.name.casefold() not in known and not any(leaf.open for leaf, _ in leaves):
            told = name.this if isinstance(name, exp.Column) else name
            table = exp.to_identifier(written.table) if isinstance(written, exp.Column) else None
            raise block.scope.unknown(exp.Column(this=told.copy(), table=table))
    return {name.name.casefold() for name in names}


def _expand_struct(block: Block, written: exp.Expr) -> bool:
    """`address.*`, `address->*` of ksqlDB: the fields of a struct as columns; whether there is such a column."""
    names = [written.args[key] for key in ("catalog", "db", "table") if written.args.get(key) is not None]
    base = exp.Column(this=names[-1].copy())
    for key, name in zip(("table", "db"), reversed(names[:-1]), strict=False):
        base.set(key, name.copy())
    found = block.scope.find(base)
    kind = type_of(found.tree) if found is not None else None
    if kind is None or kind.name != "STRUCT":
        return False
    for part in kind.fields:
        tree = block.binder.bind(field_of(base.copy(), exp.to_identifier(part.name, quoted=True)))
        block.items.append(Item(Field(part.name, part.type), tree, part.name, span_of(written)))
    return True


def _listed(leaf: Leaf, table: str | None) -> list[Field] | None:
    """The columns of a relation that * stands for, or those of one relation of that name; None: there is none."""
    if table is not None:
        return leaf.of_owner(table, quoted=False)
    return [entry for entry in leaf.fields if entry.name not in leaf.inside or leaf.inside[entry.name].bare]


def _nullable(block: Block, alias: str, entry: Field) -> bool:
    """Whether a column can be NULL behind the joins of the FROM clause."""
    return block.nullable().get((alias, entry.name), entry.nullable)


def _add_item(block: Block, written: exp.Expr) -> None:
    expression = written.this if isinstance(written, exp.Alias) else written
    tree = block.binder.bind(expression)
    name = written.alias if isinstance(written, exp.Alias) else output_name(expression, len(block.items))
    entry = Field(name, type_of(tree), processing_time=is_proctime(expression))
    if isinstance(expression, exp.Column):
        found = block.scope.find(expression)
        if found is not None and not found.path and found.leaf is not None:
            nullable = _nullable(block, found.leaf.alias, found.field)
            entry = replace(found.field, name=name, qualifier=None, nullable=nullable, pseudo=False)
        elif found is not None and found.field.window and found.path:
            entry = Field(name, type_of(tree), part=_part(found.path[-1]))
    entry = _window_field(block, expression, entry, tree)
    if name.startswith(HIDDEN_PREFIX) and not name.startswith("__qualified"):
        raise ResolutionError(
            "INVALID_DEFINITION",
            f'the name "{name}" begins with {HIDDEN_PREFIX}, which is kept for our own columns',
            span=span_of(written),
        )
    place = span_of(written.args["alias"]) if isinstance(written, exp.Alias) else span_of(expression)
    block.items.append(Item(entry, tree, format_tree(expression), place))


def _part(name: str) -> WindowPart:
    return "start" if name.casefold() in ("start", "window_start") else "end"


def _window_field(block: Block, expression: exp.Expr, entry: Field, tree: exp.Expr) -> Field:
    """Marks output columns that are the window itself or one of its bounds, so that the query around can use them."""
    window = block.binder.window
    if window is None:
        return entry
    if isinstance(expression, WindowCall) or tree == window.tree:
        return replace(entry, window=True, type=WINDOW_TYPE, part=None)
    for part in WINDOW_PARTS:
        if tree == window_bound(window.tree.copy(), part, window.spec):
            return replace(entry, part=part, event_time=part == "time", nullable=False)
    return entry
