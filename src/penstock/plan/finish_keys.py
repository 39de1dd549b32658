"""By which columns the answer of a query falls into parts: those that the batch did not touch stay as they are.

A column of a scan is such a key where restricting every scan to some of its values gives just the rows of the answer
that belong to them: it is in every GROUP BY and PARTITION BY on its way up, and every join is by it. NULL is a value
like any other here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from sqlglot import exp

from penstock.plan.joins import conjuncts_of
from penstock.plan.spark_blocks import aggregates, outputs, relations, scans
from penstock.plan.store_unnest import makes_rows_of
from penstock.plan.trees import aliased, call, column, own_nodes

Place = tuple[str, str]  # alias, column
_EQUALITIES: Final = (exp.EQ, exp.NullSafeEQ)


@dataclass(slots=True)
class Key:
    """A key of a query: the column of each scan, by the scan's name, and where the query around can see it.

    places: columns of the relations of a FROM clause that hold it, or of a query, under its output names
    sides: the columns of a full join, of which one holds it
    """

    leaves: dict[str, str]
    names: tuple[str, ...] = ()
    places: set[Place] = field(default_factory=set)
    sides: tuple[Place, ...] = ()


def keys_of(query: exp.Expr) -> list[Key]:
    """The keys of a query whose scans have names of their own."""
    if isinstance(query, exp.SetOperation):
        return _of_set(query)
    return _of_select(query) if isinstance(query, exp.Select) else []


def shown_key(query: exp.Expr, key: Key, name: str) -> str:
    """The output column of a query that holds a key; it is added under a hidden name where there is none."""
    if key.names:
        return key.names[0]
    assert isinstance(query, exp.Select)
    found = next(each for each in _block_keys(query) if each.leaves == key.leaves)
    if found.sides:
        parts = [column(_seen(query, alias, inner, name), alias) for alias, inner in found.sides]
        value: exp.Expr = call("coalesce", *parts)
    else:
        alias, inner = min(found.places)
        value = column(_seen(query, alias, inner, name), alias)
    query.append("expressions", aliased(value, name))
    return name


def _seen(query: exp.Select, alias: str, inner: str, name: str) -> str:
    """The column of a relation that holds a key, which may have to be handed up first."""
    if inner:
        return inner
    below = relations(query)[alias]
    hidden = [key for key in keys_of(below) if not key.names]
    return shown_key(below, hidden[0], name)


def _of_set(query: exp.SetOperation) -> list[Key]:
    if any(query.args.get(clause) for clause in ("limit", "offset", "order")):
        return []
    left, right = outputs(query.this), outputs(query.expression)
    found: list[Key] = []
    others = keys_of(query.expression)
    for key in keys_of(query.this):
        for name in key.names:
            other = right[left.index(name)]
            for match in others:
                if other in match.names:
                    found.append(Key({**key.leaves, **match.leaves}, names=(name,)))
                    break
            else:
                continue
            break
    return found


def _of_select(query: exp.Select) -> list[Key]:
    found: list[Key] = []
    for key in _block_keys(query):
        names = tuple(item.alias_or_name for item in query.expressions if _place(item.unalias()) in key.places)
        found.append(Key(key.leaves, names=names))
    return found


def _block_keys(query: exp.Select) -> list[Key]:
    """The keys of a SELECT, by the columns of its FROM clause."""
    if any(query.args.get(clause) for clause in ("limit", "offset", "laterals")):
        return []
    found = _joined(query)
    for inner in _inner_queries(query):
        found = [each for key in found if (each := _correlated(inner, key)) is not None]
    if aggregates(query):
        group = query.args.get("group")
        keys = {_place(key) for key in group.expressions} if isinstance(group, exp.Group) else set()
        # of equal columns only those that are grouped by are seen above
        found = [replace(key, places=key.places & keys) for key in _within(found, keys)]
    for tree in query.expressions:
        for over in (node for node in own_nodes(tree) if isinstance(node, exp.Window)):
            found = _within(found, {_place(key) for key in over.args.get("partition_by") or []})
    if query.args.get("distinct") is not None:
        found = _within(found, {_place(item.unalias()) for item in query.expressions})
    return found


def _within(found: list[Key], places: set[Place | None]) -> list[Key]:
    return [key for key in found if key.places & places]


def _joined(query: exp.Select) -> list[Key]:
    below = relations(query)
    from_ = query.args.get("from_")
    if not isinstance(from_, exp.From) or from_.this.alias_or_name not in below:
        return []
    found = _of_relation(from_.this.alias_or_name, below[from_.this.alias_or_name])
    for join in query.args.get("joins") or []:
        alias = join.this.alias_or_name
        if isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Subquery):
            asked = join.this.this
            found = [each for key in found if (each := _correlated(asked, key)) is not None]
            continue
        if makes_rows_of(join.this) is not None:
            continue  # each row makes its own
        if alias not in below or not isinstance(join.this, exp.Table | exp.Subquery):
            return []
        found = _by_equality(found, _of_relation(alias, below[alias]), join, _where_of(query))
    return found


def _where_of(query: exp.Select) -> list[exp.Expr]:
    """The conditions of WHERE that may stand for those of inner joins: `FROM a, b WHERE a.k = b.k`."""
    where = query.args.get("where")
    if where is None or any(join.side.upper() not in ("", "LEFT") for join in query.args.get("joins") or []):
        return []
    return conjuncts_of(where.this)


def _of_relation(alias: str, below: exp.Table | exp.Query) -> list[Key]:
    if isinstance(below, exp.Table):
        names = below.meta.get("penstock_columns", ())
        return [Key({below.name: name}, places={(alias, name)}) for name in names]
    found: list[Key] = []
    hidden = False
    for key in keys_of(below):
        if key.names:
            found.append(Key(key.leaves, places={(alias, name) for name in key.names}))
        elif not hidden:
            hidden = True  # one is enough
            found.append(Key(key.leaves, places={(alias, "")}))
    return found


def _by_equality(left: list[Key], right: list[Key], join: exp.Join, where: list[exp.Expr]) -> list[Key]:
    on = join.args.get("on")
    kind = (join.side or join.kind or "inner").lower()
    if join.kind.lower() in ("semi", "anti"):
        kind = "semi"
    conditions = [
        *(conjuncts_of(on) if on is not None else []),
        *(where if kind in ("inner", "cross") and not join.method else []),
    ]
    equalities = [
        (_place(conjunct.this), _place(conjunct.expression))
        for conjunct in conditions
        if isinstance(conjunct, _EQUALITIES)
    ]
    found = [
        _both(key, other, (first, second), kind)
        for one, two in equalities
        for first, second in ((one, two), (two, one))
        if first is not None and second is not None
        for key in left
        for other in right
        if first in key.places and second in other.places
    ]
    unique: list[Key] = []
    for key in found:
        if all(key.leaves != other.leaves for other in unique):
            unique.append(key)
    return unique


def _both(left: Key, right: Key, by: tuple[Place, Place], kind: str) -> Key:
    leaves = {**left.leaves, **right.leaves}
    if kind in ("left", "semi"):
        return Key(leaves, places=set(left.places))
    if kind == "right":
        return Key(leaves, places=set(right.places))
    if kind == "full":
        return Key(leaves, sides=by)
    return Key(leaves, places=left.places | right.places)


def _inner_queries(query: exp.Select) -> list[exp.Expr]:
    """The EXISTS, IN and scalar subqueries of a SELECT itself, each with what stands around it."""
    own = {id(item) for item in (join.this for join in query.args.get("joins") or [])}
    trees = [query.args.get(clause) for clause in ("where", "having")] + list(query.expressions)
    trees += [join.args.get("on") for join in query.args.get("joins") or []]
    found: list[exp.Expr] = []
    for tree in trees:
        if tree is None:
            continue
        for node in tree.walk(prune=lambda inner: isinstance(inner, exp.Subquery | exp.Exists)):
            if isinstance(node, exp.Exists):
                found.append(node)
            elif isinstance(node, exp.Subquery) and id(node) not in own:
                parent = node.parent
                found.append(parent if isinstance(parent, exp.In) else node)
    return found


def _correlated(around: exp.Expr, key: Key) -> Key | None:
    """The key with the scans of a subquery, where that only sees rows of the same key."""
    if isinstance(around, exp.In):
        return _listed(around, key)
    found = around.this if isinstance(around, exp.Exists | exp.Subquery) else None
    if isinstance(found, exp.Subquery):
        found = found.this
    if isinstance(found, exp.Query) and not scans(found):
        return key  # it sees the row in front of it and nothing else
    if not isinstance(found, exp.Select) or found.args.get("laterals") or _inner_queries(found):
        return None
    where = found.args.get("where")  # comes first: whatever else the subquery does, it does with rows of one key
    for conjunct in conjuncts_of(where.this) if where is not None else []:
        if not isinstance(conjunct, _EQUALITIES):
            continue
        sides = (_place(conjunct.this), _place(conjunct.expression))
        for outer, own in (sides, sides[::-1]):
            for each in _joined(found):
                if outer in key.places and own in each.places and own not in key.places:
                    return _with(key, each)
    return None


def _listed(around: exp.In, key: Key) -> Key | None:
    """The key of `column IN (SELECT …)`, which is a join by that column."""
    inner = around.args["query"].this
    if _place(around.this) not in key.places or not _kept_where(around):
        return None
    found = [each for each in keys_of(inner) if outputs(inner)[0] in each.names]
    return _with(key, found[0]) if found else None


def _with(key: Key, other: Key) -> Key:
    return Key({**key.leaves, **other.leaves}, key.names, key.places, key.sides)


def _kept_where(around: exp.In) -> bool:
    """Whether IN is a condition that rows must meet: only then is unknown the same as no."""
    node: exp.Expr = around
    while isinstance(node.parent, exp.And | exp.Paren):
        node = node.parent
    return isinstance(node.parent, exp.Where)


def _place(node: exp.Expr) -> Place | None:
    return (node.table, node.name) if isinstance(node, exp.Column) else None
