"""Names in scope: which column a name means, and what it is called in generated text."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field

from sqlglot import exp

from penstock.catalog.pseudo_columns import PSEUDO_HINTS
from penstock.errors import ResolutionError, Span
from penstock.frozen import frozen
from penstock.plan.relation import HIDDEN_PREFIX, WINDOW_COLUMN, Field
from penstock.plan.trees import call, column, dot, keep_place, number, typed
from penstock.plan.windows import WindowSpec
from penstock.sql.spans import span_of
from penstock.types import TIMESTAMP, SqlType
from penstock.types import Field as StructField

# Both spellings of a window's bounds are read: Spark's and Arroyo's `start`, the texts' `window_start`.
_WINDOW_FIELDS = {"start": "start", "end": "end", "window_start": "start", "window_end": "end"}


@frozen
class Inside:
    """What a column of a join in brackets is called: that of `owner`, a relation in it. `bare`: also without it;
    `pseudo`: * does not stand for it."""

    owner: str | None
    shown: str
    bare: bool
    pseudo: bool = False


@dataclass(slots=True)
class Leaf:
    """One relation of a FROM clause under its alias.

    `inside` says what the columns of a join in brackets are called.
    """

    alias: str
    fields: tuple[Field, ...]
    open: bool = False  # a relation we know nothing of (lenient mode): any column name fits
    window: WindowSpec | None = None  # the window of its rows
    bounded: bool = False
    inside: dict[str, Inside] = field(default_factory=dict)
    _by_name: dict[str, list[Field]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for entry in self.fields:
            if not entry.hidden and (entry.name not in self.inside or self.inside[entry.name].bare):
                self._by_name.setdefault(self.shown(entry).casefold(), []).append(entry)

    def matching(self, name: str, *, quoted: bool) -> list[Field]:
        """The visible columns that a written name means."""
        found = self._by_name.get(name.casefold(), [])
        return [entry for entry in found if same_name(self.shown(entry), name, quoted=quoted)]

    def shown(self, entry: Field) -> str:
        """What a column is called here."""
        return self.inside[entry.name].shown if entry.name in self.inside else entry.name

    def owner(self, entry: Field) -> str | None:
        """The name of the relation that a column is of; None: it is that of two, by USING."""
        return self.inside[entry.name].owner if entry.name in self.inside else self.alias

    def owners(self) -> list[str]:
        """The names of the relations in it."""
        named = dict.fromkeys(each.owner for each in self.inside.values() if each.owner is not None)
        return list(named) or [self.alias]

    def of_owner(self, owner: str, *, quoted: bool) -> list[Field] | None:
        """The columns of a relation of that name in it; None where there is none."""
        if not self.inside:
            return [*self.fields] if same_name(self.alias, owner, quoted=quoted) else None
        known = [name for name in self.owners() if same_name(name, owner, quoted=quoted)]
        own = [entry for entry in self.fields if entry.name in self.inside]
        return [entry for entry in own if self.inside[entry.name].owner == known[0]] if known else None


def same_name(defined: str, written: str, *, quoted: bool) -> bool:
    """Whether a written name means a defined one: exactly when quoted, else without regard to case."""
    return defined == written if quoted else defined.casefold() == written.casefold()


@dataclass(slots=True)
class Resolved:
    """What a column reference turned into."""

    tree: exp.Expr
    field: Field
    leaf: Leaf | None
    path: tuple[str, ...] = ()


@dataclass(slots=True)
class Scope:
    """The relations a SELECT can name, and the scope around it for correlated subqueries."""

    leaves: list[Leaf] = field(default_factory=list)
    gone: list[Leaf] = field(default_factory=list)  # the right sides of SEMI and ANTI joins, which ON alone can see
    outer: Scope | None = None
    merged: dict[str, exp.Expr] = field(default_factory=dict)  # columns of USING: name -> tree
    locals: dict[str, SqlType | None] = field(default_factory=dict)  # parameters of the lambda around us

    def add(self, leaf: Leaf, span: Span | None) -> None:
        taken = [name for other in (*self.leaves, *self.gone) for name in other.owners()]
        twice = [name for name in leaf.owners() if any(same_name(other, name, quoted=False) for other in taken)]
        if twice:
            raise ResolutionError(
                "DUPLICATE_ALIAS",
                f'two relations of one FROM clause are called "{twice[0]}"',
                hint="give one of them another name with AS",
                span=span,
            )
        self.leaves.append(leaf)

    def hide(self, leaf: Leaf) -> None:
        """Takes the columns of a relation out of sight, and keeps its name."""
        self.leaves.remove(leaf)
        self.gone.append(leaf)

    def resolve(self, node: exp.Column) -> Resolved:
        """The column that a reference means, or an error with the nearest names."""
        parts = _parts(node)
        found = self._lookup(parts)
        if found is None:
            raise self.unknown(node)
        keep_place(found.tree, node)
        return found

    def find(self, node: exp.Column) -> Resolved | None:
        """As `resolve`, but None where no column fits."""
        return self._lookup(_parts(node))

    def _lookup(self, parts: list[exp.Identifier]) -> Resolved | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.here(parts)
            if found is not None:
                return found
            scope = scope.outer
        return None

    def here(self, parts: list[exp.Identifier]) -> Resolved | None:
        """The column that a name means among the relations of this SELECT alone."""
        first = parts[0]
        if len(parts) > 1:
            for leaf in self.leaves:
                own = leaf.of_owner(first.name, quoted=bool(first.quoted))
                if own is not None:
                    return self._in_leaf(leaf, own, parts[1:])
        name = first.name
        if name in self.locals:
            local = Field(name, self.locals[name])
            return _with_path(Resolved(column(name), local, None), parts[1:])
        merged = self.merged.get(name.casefold())
        if merged is not None and len(parts) == 1:
            inner = merged.copy()
            return Resolved(inner, Field(name, inner.meta.get("penstock_type")), None)
        matches = [(leaf, entry) for leaf in self.leaves for entry in leaf.matching(name, quoted=bool(first.quoted))]
        if len(matches) > 1:
            raise self._ambiguous(first, matches)
        if matches:
            leaf, entry = matches[0]
            return _with_path(Resolved(column_tree(leaf, entry), entry, leaf), parts[1:])
        for leaf in self.leaves:
            if leaf.open:
                return self._open(leaf, parts)
        return None

    def _in_leaf(self, leaf: Leaf, own: list[Field], parts: list[exp.Identifier]) -> Resolved | None:
        name, quoted = parts[0].name, bool(parts[0].quoted)
        matches = [entry for entry in own if not entry.hidden and same_name(leaf.shown(entry), name, quoted=quoted)]
        if matches:
            return _with_path(Resolved(column_tree(leaf, matches[0]), matches[0], leaf), parts[1:])
        return self._open(leaf, parts) if leaf.open else None

    def _open(self, leaf: Leaf, parts: list[exp.Identifier]) -> Resolved:
        entry = Field(parts[0].name, None, qualifier=leaf.alias)
        return _with_path(Resolved(typed(column(entry.name, leaf.alias), None), entry, leaf), parts[1:])

    def _ambiguous(self, name: exp.Identifier, matches: list[tuple[Leaf, Field]]) -> ResolutionError:
        names = [leaf.owner(entry) or leaf.alias for leaf, entry in matches]
        owners = ", ".join(shown_alias(name) for name in names)
        named = next((each for each in names if not each.startswith(HIDDEN_PREFIX)), None)
        which = f"write {named}.{name.name}" if named else f"give a subquery an alias, and write alias.{name.name}"
        return ResolutionError(
            "AMBIGUOUS_COLUMN",
            f'column "{name.name}" stands in more than one relation: {owners}',
            hint=f"{which} to say which",
            span=span_of(name),
        )

    def is_around(self, bound: exp.Column) -> bool:
        """Whether a bound column is one of a query around this one."""
        if any(bound.table == leaf.alias for leaf in (*self.leaves, *self.gone)):
            return False
        scope = self.outer
        while scope is not None:
            if any(bound.table == leaf.alias for leaf in scope.leaves):
                return True
            scope = scope.outer
        return False

    def names(self) -> list[str]:
        """What a * stands for here, by their names."""
        fields = [
            leaf.shown(entry) for leaf in self.leaves for entry in leaf.fields if not (entry.hidden or entry.pseudo)
        ]
        return [name for name in dict.fromkeys(fields) if not name.startswith(HIDDEN_PREFIX)]

    def unknown(self, node: exp.Column) -> ResolutionError:
        """The error for a name that no column has, with the nearest ones."""
        parts = _parts(node)
        name = ".".join(part.name for part in parts)
        names: list[str] = []
        for leaf in self.leaves:
            for entry in leaf.fields:
                if not entry.hidden:
                    names += [leaf.shown(entry), f"{leaf.owner(entry) or leaf.alias}.{leaf.shown(entry)}"]
        pseudo = PSEUDO_HINTS.get(parts[-1].name.upper())
        near = nearest(name, names) or nearest(parts[-1].name, names)
        hint: str | None
        gone = next((leaf for leaf in self.gone if _column_of(leaf, parts)), None)
        if gone is not None:
            hint = f"of {shown_alias(gone.alias)} only the ON of its SEMI or ANTI join sees columns; JOIN shows them"
        elif pseudo is not None and self.leaves:
            hint = pseudo
        elif near:
            hint = f'did you mean "{near}"?'
        elif self.leaves:
            listed = ", ".join(dict.fromkeys(n for n in names if "." not in n))
            hint = f"columns in scope: {listed}" if listed else None
        else:
            hint = "the query has no FROM clause"
        return ResolutionError(
            "UNKNOWN_COLUMN",
            f'column "{name}" is not in any relation of the FROM clause',
            hint=hint,
            span=span_of(node),
        )


def shown_alias(alias: str) -> str:
    """A relation of a FROM clause in a message; one of ours has no name that a user knows."""
    return "the subquery" if alias.startswith(HIDDEN_PREFIX) else f'"{alias}"'


def nearest(name: str, names: list[str]) -> str | None:
    """The known name that a misspelt one most likely means."""
    lowered = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name.casefold(), list(lowered), n=1, cutoff=0.6)
    return lowered[close[0]] if close else None


def _parts(node: exp.Column) -> list[exp.Identifier]:
    return [
        part for key in ("catalog", "db", "table", "this") if isinstance(part := node.args.get(key), exp.Identifier)
    ]


def _column_of(leaf: Leaf, parts: list[exp.Identifier]) -> bool:
    """Whether a name means a column of a relation."""
    own = leaf.of_owner(parts[0].name, quoted=bool(parts[0].quoted)) if len(parts) > 1 else None
    if own is None:
        return bool(leaf.matching(parts[0].name, quoted=bool(parts[0].quoted)))
    return any(same_name(leaf.shown(entry), parts[1].name, quoted=bool(parts[1].quoted)) for entry in own)


def column_tree(leaf: Leaf, entry: Field) -> exp.Expr:
    """A column of a relation as an expression."""
    return typed(field_tree(entry, leaf.alias, leaf.window), entry.type)


def field_tree(entry: Field, alias: str, window: WindowSpec | None) -> exp.Expr:
    """A column of a relation in generated text; a bound of its window is read from the hidden window."""
    if entry.window and not entry.hidden:
        return column(WINDOW_COLUMN, alias)
    if entry.part is None:
        return column(entry.name, alias)
    return window_bound(column(WINDOW_COLUMN, alias), entry.part, window)


def window_bound(window: exp.Expr, part: str, spec: WindowSpec | None) -> exp.Expr:
    """The tree of a bound of a window: its start, its end, or its time, one millisecond before the end."""
    if part == "start":
        return cumulate_start(window, spec) if spec is not None and spec.kind == "CUMULATE" else dot(window, "start")
    upper = dot(window, "end")
    if part == "end":
        return upper
    millisecond = exp.Interval(this=exp.Literal.string("1"), unit=exp.var("MILLISECOND"))
    return exp.Paren(this=exp.Sub(this=upper, expression=millisecond))


def cumulate_start(window: exp.Expr, spec: WindowSpec) -> exp.Expr:
    """Where a cumulating window begins: Spark keeps it as a hopping window, of which only the end is right."""
    last = exp.Paren(this=exp.Sub(this=call("unix_micros", dot(window, "end")), expression=number(1)))
    shifted = exp.Sub(this=last.copy(), expression=number(spec.offset_us)) if spec.offset_us else last.copy()
    return call("timestamp_micros", exp.Sub(this=last, expression=call("pmod", shifted, number(spec.size_us))))


def _with_path(found: Resolved, rest: list[exp.Identifier]) -> Resolved:
    """Follows the fields of structs behind a column: `payload.user.id`."""
    tree, sql_type = found.tree, found.field.type
    for part in rest:
        if found.field.window and part.name.casefold() in _WINDOW_FIELDS:
            tree, sql_type = dot(tree, _WINDOW_FIELDS[part.name.casefold()]), TIMESTAMP
            continue
        if sql_type is not None and sql_type.name == "MAP":
            tree, sql_type = dot(tree, part.name), sql_type.elements[1]
            continue
        inner = struct_field(sql_type, part)
        if sql_type is not None and inner is None:
            raise no_field(found.field.name, sql_type, part)
        tree = dot(tree, inner.name if inner else part.name)
        sql_type = inner.type if inner else None
    if rest:
        found.path = tuple(part.name for part in rest)
    found.tree = typed(tree, sql_type)
    return found


def struct_field(sql_type: SqlType | None, part: exp.Identifier) -> StructField | None:
    """The field of a struct that a name means."""
    if sql_type is None or sql_type.name != "STRUCT":
        return None
    for inner in sql_type.fields:
        if same_name(inner.name, part.name, quoted=bool(part.quoted)):
            return inner
    return None


def no_field(name: str, sql_type: SqlType, part: exp.Identifier, what: str = "column") -> ResolutionError:
    """The error for a field that a value does not have."""
    names = [inner.name for inner in sql_type.fields]
    near = nearest(part.name, names)
    if sql_type.name != "STRUCT":
        hint: str | None = f'"{name}" is a {sql_type.name}, which has no fields'
    else:
        hint = f'did you mean "{near}"?' if near else f"its fields are: {', '.join(names)}"
    return ResolutionError(
        "UNKNOWN_COLUMN", f'{what} "{name}" has no field "{part.name}"', hint=hint, span=span_of(part)
    )
