"""Options and clauses that name columns, and connectors for which they mean something."""

from __future__ import annotations

from penstock.catalog.columns import find_column, unknown_column
from penstock.catalog.model import ColumnDefinition
from penstock.errors import CatalogError
from penstock.options.registry import connector_named, known_connectors
from penstock.options.resolved import ResolvedOptions
from penstock.options.schema import ConnectorSpec
from penstock.sql.statements import CreateRelation, Name


def check_column_options(options: ResolvedOptions, columns: tuple[ColumnDefinition, ...]) -> None:
    """UNKNOWN_COLUMN for an option such as `fields.<column>.kind` whose column is not there."""
    connector = connector_named(options.connector)
    for family in connector.families if connector is not None else ():
        if family.name != "column":
            continue
        prefix = f"{family.prefix}."
        tails = [f".{member.key}" for member in family.members]
        for option in options.canonical:
            if not option.key.startswith(prefix):
                continue
            # The longest tail is the option's own: a column may itself have a name with a dot.
            tail = max((tail for tail in tails if option.key.endswith(tail)), key=len, default="")
            path = option.key[len(prefix) : len(option.key) - len(tail)]
            # What is behind the first dot may be a field of a STRUCT column, or an element of an ARRAY.
            known = any(find_column(columns, Name(name)) is not None for name in (path, path.partition(".")[0]))
            if not known:
                name = Name(path, span=option.key_span)
                raise unknown_column(name, [column.name for column in columns], f"option {option.key}")


def check_partitions(statement: CreateRelation, options: ResolvedOptions) -> None:
    """INVALID_DEFINITION for PARTITIONED BY where the connector keeps its rows in no directories."""
    connector = connector_named(options.connector)
    if not statement.partitioned_by or connector is None or _has_partitions(connector):
        return
    those = " and ".join(f"'{spec.name}'" for spec in known_connectors() if _has_partitions(spec))
    raise CatalogError(
        "INVALID_DEFINITION",
        f"{statement.kind.lower()} {statement.name} cannot be partitioned: its connector is '{connector.name}'",
        hint=f"leave PARTITIONED BY out; only connectors {those} have partitions of columns",
        span=statement.partitioned_by[0].span,
    )


def _has_partitions(connector: ConnectorSpec) -> bool:
    return any(option.key == "partition_by" for option in connector.options)
