"""From the column list of a CREATE statement to column definitions."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import replace

from sqlglot import exp

from penstock.catalog.metadata import check_header, check_metadata
from penstock.catalog.model import ColumnDefinition
from penstock.errors import CatalogError, ResolutionError, Span
from penstock.options.resolved import ResolvedOptions
from penstock.sql.spans import span_of
from penstock.sql.statements import Column, Name
from penstock.sql.typenames import sql_type
from penstock.types import STRING, TIMESTAMP, SqlType

# Functions of the dialects that always give an instant.
_INSTANTS = frozenset(
    {
        "CURRENT_TIMESTAMP",
        "FROM_MILLIS",
        "LOCALTIMESTAMP",
        "NOW",
        "PROCTIME",
        "TIMESTAMP_MICROS",
        "TIMESTAMP_MILLIS",
        "TIMESTAMP_SECONDS",
        "TO_TIMESTAMP",
        "TO_TIMESTAMP_LTZ",
        "TO_TIMESTAMP_MICROS",
        "TO_TIMESTAMP_MILLIS",
        "TO_TIMESTAMP_SECONDS",
        "TRY_TO_TIMESTAMP",
    }
)


def define_columns(
    columns: tuple[Column, ...], connector: str, primary_key: tuple[Name, ...], *, sink: bool = False
) -> tuple[ColumnDefinition, ...]:
    """The columns in order, each checked; those of the primary key are never NULL."""
    _refuse_reserved(columns)
    _refuse_twice(columns)
    keys = {name.text.lower() for name in primary_key}
    by_name = {column.name.text.lower(): column for column in columns}
    done: dict[str, ColumnDefinition] = {}
    for column in columns:
        defined = _define_column(column, connector, by_name, done, sink=sink)
        if column.name.text.lower() in keys:
            defined = replace(defined, nullable=False)
        done[column.name.text.lower()] = defined
    return tuple(done.values())


def _refuse_reserved(columns: tuple[Column, ...]) -> None:
    for column in columns:
        if column.name.text.startswith("__"):
            raise CatalogError(
                "INVALID_DEFINITION",
                f"column {column.name} begins with __, which is kept for hidden columns",
                hint="choose a name that begins with a letter or a single underscore",
                span=column.name.span,
            )


def _refuse_twice(columns: tuple[Column, ...]) -> None:
    # Also for quoted names: Spark finds the columns of a row without regard to case.
    seen: set[str] = set()
    for column in columns:
        folded = column.name.text.lower()
        if folded in seen:
            raise CatalogError(
                "DUPLICATE_COLUMN",
                f"column {column.name} is defined twice",
                hint="column names differ in more than case; rename one of them",
                span=column.name.span,
            )
        seen.add(folded)


def _define_column(
    column: Column,
    connector: str,
    by_name: Mapping[str, Column],
    done: Mapping[str, ColumnDefinition],
    *,
    sink: bool,
) -> ColumnDefinition:
    plain = ColumnDefinition(
        column.name.text, column.type, nullable=column.nullable, virtual=column.virtual, comment=column.comment
    )
    if column.computed is not None:
        tree = _inline(column, by_name, done)
        return replace(plain, computed=tree, type=column.type or infer_type(tree, done))
    if column.metadata is not None:
        key, type_ = check_metadata(column, connector, sink=sink)
        return replace(plain, metadata=key, type=type_)
    if column.header is not None:
        return replace(plain, header=column.header, type=check_header(column, connector))
    if column.type is None:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"column {column.name} has no type",
            hint=f"say what it holds, such as {column.name} STRING",
            span=column.span,
        )
    return plain


def _inline(column: Column, by_name: Mapping[str, Column], done: Mapping[str, ColumnDefinition]) -> exp.Expr:
    """The expression of a computed column over columns that are not computed."""
    assert column.computed is not None
    tree = column.computed.copy()
    forbidden = tree.find(exp.Query, exp.Star)
    if forbidden is not None:
        what = "a subquery" if isinstance(forbidden, exp.Query) else "*"
        raise CatalogError(
            "INVALID_DEFINITION",
            f"computed column {column.name} cannot hold {what}",
            hint="compute it from the other columns of the row",
            span=column.span,
        )
    # A name such as person.name may be a field of the column person, so the outermost name decides.
    for node in list(tree.find_all(exp.Column)):
        if _is_parameter(node):
            continue
        outermost = node.parts[0]
        defined = _referred(column, outermost, by_name, done)
        if defined is None or defined.computed is None:
            continue
        inner: exp.Expr = exp.Paren(this=defined.computed.copy())
        for part in node.parts[1:]:
            inner = exp.Dot(this=inner, expression=part.copy())
        if node is tree:
            return inner
        node.replace(inner)
    return tree


def _is_parameter(node: exp.Column) -> bool:
    """Whether a name is the parameter of a lambda around it."""
    outermost = node.parts[0].name.lower()
    ancestor = node.find_ancestor(exp.Lambda)
    while ancestor is not None:
        if any(parameter.name.lower() == outermost for parameter in ancestor.expressions):
            return True
        ancestor = ancestor.find_ancestor(exp.Lambda)
    return False


def _referred(
    column: Column, identifier: exp.Expr, by_name: Mapping[str, Column], done: Mapping[str, ColumnDefinition]
) -> ColumnDefinition | None:
    name = Name(identifier.name, bool(identifier.args.get("quoted")), span_of(identifier) or column.span)
    other = by_name.get(name.text.lower())
    if other is None:
        raise unknown_column(name, [item.name.text for item in by_name.values()], f"computed column {column.name}")
    found = done.get(name.text.lower())
    if found is None and other.computed is not None:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"computed column {column.name} uses {other.name}, which is computed after it",
            hint=f"define {other.name} before {column.name}",
            span=name.span,
        )
    return found


def unknown_column(name: Name, known: Iterable[str], where: str) -> ResolutionError:
    """UNKNOWN_COLUMN with the nearest name as a hint."""
    names = {item.lower(): item for item in known}
    close = difflib.get_close_matches(name.text.lower(), names, n=1)
    hint = f"did you mean {names[close[0]]}?" if close else f"columns: {', '.join(names.values()) or 'none'}"
    return ResolutionError("UNKNOWN_COLUMN", f"{where} names unknown column {name}", hint=hint, span=name.span)


def option_span(options: ResolvedOptions, key: str, otherwise: Span) -> Span:
    """Where the statement gives the value of an option, by its canonical key."""
    return next((option.value_span for option in options.canonical if option.key == key), otherwise)


def find_column(columns: Iterable[ColumnDefinition], name: Name) -> ColumnDefinition | None:
    """The column of a name: quoted exactly, else without regard to case."""
    for column in columns:
        if column.name == name.text or (not name.quoted and column.name.lower() == name.text.lower()):
            return column
    return None


def infer_type(tree: exp.Expr, columns: Mapping[str, ColumnDefinition]) -> SqlType | None:
    """The type of an expression where it is plain to see; None leaves it to Spark's analyzer."""
    if isinstance(tree, exp.Paren):
        return infer_type(tree.this, columns)
    if isinstance(tree, exp.Column) and len(tree.parts) == 1:
        found = columns.get(tree.name.lower())
        return found.type if found else None
    if isinstance(tree, exp.Cast):
        return sql_type(tree.to)
    if isinstance(tree, exp.Literal):
        return STRING if tree.is_string else None
    if isinstance(tree, exp.CurrentTimestamp | exp.Localtimestamp):
        return TIMESTAMP
    if isinstance(tree, exp.Anonymous) and str(tree.this).upper() in _INSTANTS:
        return TIMESTAMP
    if isinstance(tree, exp.Add | exp.Sub) and isinstance(tree.expression, exp.Interval):
        return TIMESTAMP if infer_type(tree.this, columns) == TIMESTAMP else None
    return None
