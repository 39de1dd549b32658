"""What the catalog holds: one frozen definition for each object.

Names are kept as they were written (`Name` remembers whether it was quoted). `text` is the canonical statement without
any secret; it is what the store keeps and SHOW CREATE prints, and takes no part in equality: two statements that are
spelt differently but mean the same make equal definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, TypeAlias

from penstock.frozen import frozen
from penstock.sql.statements import Name
from penstock.types import SqlType

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.options.resolved import ResolvedOptions, ResolvedViewOptions
    from penstock.secrets import Reference, Secret
    from penstock.sql.statements import Option, Parameter, Query

Space = Literal["relation", "function", "secret"]
SourceKind = Literal["stream", "table", "source"]
ChangeMode = Literal["append", "upsert", "retract"]
# What an aggregate in parts can give in the view store as it does in Spark.
MERGED_TYPES = frozenset({"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING"})


@dataclass(frozen=True, slots=True, order=True)
class ObjectKey:
    """What tells one object from every other: relations, functions and secrets have names of their own."""

    space: Space
    name: str

    def __str__(self) -> str:
        return self.name


@frozen
class ColumnDefinition:
    """A column of a relation.

    `type` is None where only Spark's analyzer can tell: a computed column without a declared type, or a column of a
    view. At most one of `computed`, `metadata` and `header` is set; a column with none of them comes with the data.
    The tree in `computed` names no other computed column: those it was written with are put in its place.
    """

    name: str
    type: SqlType | None
    nullable: bool = True
    computed: exp.Expr | None = None
    metadata: str | None = None
    header: str | None = None
    virtual: bool = False
    comment: str | None = None

    @property
    def physical(self) -> bool:
        """Whether the value comes with the data itself."""
        return self.computed is None and self.metadata is None and self.header is None


@frozen
class EventTime:
    """The event-time column of a relation, and how far behind the latest row its watermark stays."""

    column: str
    delay_us: int
    declared: Literal["watermark", "option", "default"]


@frozen
class InlineSecret:
    """A secret that was written into a WITH clause: its name in the secret files, and the value where it is known.

    The value is there so that a second CREATE with another password is not taken for the same definition.
    """

    name: str
    value: Secret | None


class _Object:
    """What every definition has: its place in the catalog, a word for its kind, and what it is built on.

    A definition that can be temporary, or built on others, has a field of that name; for the others it is fixed here.
    """

    __slots__ = ()
    space: ClassVar[Space] = "relation"
    name: Name

    @property
    def object_key(self) -> ObjectKey:
        """The object's place in the catalog."""
        return ObjectKey(self.space, self.name.text)


@frozen(kw_only=True)
class SourceDefinition(_Object):
    """A STREAM, TABLE or SOURCE that rows are read from."""

    name: Name
    kind: SourceKind
    columns: tuple[ColumnDefinition, ...]
    options: ResolvedOptions
    event_time: EventTime | None = None
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    temporary: bool = False
    comment: str | None = None
    secrets: tuple[InlineSecret, ...] = ()
    depends_on: tuple[ObjectKey, ...] = ()
    text: str = field(default="", compare=False)

    @property
    def bounded(self) -> bool:
        """Whether the rows come to an end."""
        return self.options.bounded

    @property
    def mode(self) -> ChangeMode:
        """How the rows change."""
        return self.options.changes

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which later rows replace earlier ones; empty for an append-only source."""
        return () if self.options.changes == "append" else self.primary_key


@frozen(kw_only=True)
class SinkDefinition(_Object):
    """A place that rows are written to; without columns it takes those of the query.

    `query` is that of CREATE SINK … AS; `into` the table that a sink of its own kind writes to.
    """

    kind: ClassVar[Literal["sink"]] = "sink"
    name: Name
    columns: tuple[ColumnDefinition, ...]
    options: ResolvedOptions
    primary_key: tuple[str, ...] = ()
    partitioned_by: tuple[str, ...] = ()
    query: Query | None = None
    into: Name | None = None
    created_as: Literal["sink", "stream", "table", "source"] = "sink"
    temporary: bool = False
    comment: str | None = None
    secrets: tuple[InlineSecret, ...] = ()
    depends_on: tuple[ObjectKey, ...] = ()
    text: str = field(default="", compare=False)


@frozen(kw_only=True)
class ViewDefinition(_Object):
    """A name for a query, put in its place wherever it is used."""

    kind: ClassVar[Literal["view"]] = "view"
    name: Name
    columns: tuple[ColumnDefinition, ...]
    query: Query
    event_time: EventTime | None = None
    mode: ChangeMode | None = None
    bounded: bool = False
    temporary: bool = False
    depends_on: tuple[ObjectKey, ...] = ()
    text: str = field(default="", compare=False)


@frozen(kw_only=True)
class MaterializedViewDefinition(_Object):
    """A job, and the table that it keeps up to date. `key` are the columns its rows are told apart by."""

    kind: ClassVar[Literal["materialized view"]] = "materialized view"
    name: Name
    columns: tuple[ColumnDefinition, ...]
    query: Query
    options: ResolvedViewOptions
    mode: ChangeMode
    key: tuple[str, ...] = ()
    event_time: EventTime | None = None
    depends_on: tuple[ObjectKey, ...] = ()
    text: str = field(default="", compare=False)

    @property
    def temporary(self) -> bool:
        """Never: a job outlives the connection that started it."""
        return False


@frozen(kw_only=True)
class DimensionDefinition(_Object):
    """A table handed over through the Python interface; with `broadcast` it is sent whole to every reader.

    No two rows have the same values in the columns of `primary_key`, where there are some.
    """

    kind: ClassVar[Literal["dimension"]] = "dimension"
    temporary: ClassVar[bool] = False
    depends_on: ClassVar[tuple[ObjectKey, ...]] = ()
    name: Name
    columns: tuple[ColumnDefinition, ...]
    broadcast: bool = True
    primary_key: tuple[str, ...] = ()
    text: str = field(default="", compare=False)


@frozen(kw_only=True)
class FunctionDefinition(_Object):
    """A function of the user's: `body` is a `module.function` path, source text, or the text of `expression`, which is
    what a function in SQL means."""

    kind: ClassVar[Literal["function"]] = "function"
    space: ClassVar[Space] = "function"
    name: Name
    parameters: tuple[Parameter, ...]
    returns: SqlType | None
    language: str
    body: str
    aggregate: bool = False
    temporary: bool = False
    options: tuple[tuple[str, str], ...] = ()
    expression: exp.Expr | None = None
    depends_on: tuple[ObjectKey, ...] = ()
    text: str = field(default="", compare=False)

    @property
    def merges(self) -> bool:
        """Whether the view store can keep the aggregate: it is in parts, gives a plain value, and no NULL on errors."""
        given = dict(self.options)
        plain = self.returns is not None and self.returns.name in MERGED_TYPES
        return self.aggregate and plain and given.get("merge") == "true" and given.get("on_error") != "null"


@frozen(kw_only=True)
class SecretDefinition(_Object):
    """A named secret: a reference to where its value is, or None where the value is kept in the secret files.

    `value` is known in the process that created it and is never stored with the definition.
    """

    kind: ClassVar[Literal["secret"]] = "secret"
    space: ClassVar[Space] = "secret"
    temporary: ClassVar[bool] = False
    depends_on: ClassVar[tuple[ObjectKey, ...]] = ()
    name: Name
    reference: Reference | None
    value: Secret | None = None
    text: str = field(default="", compare=False)


@frozen(kw_only=True)
class ConnectionDefinition(_Object):
    """Options that relations share: where a broker or a schema registry is, and how to log in. Its name is one among
    those of relations, although nothing can be read from it; `options` have canonical keys."""

    kind: ClassVar[Literal["connection"]] = "connection"
    temporary: ClassVar[bool] = False
    name: Name
    options: tuple[Option, ...]
    depends_on: tuple[ObjectKey, ...] = ()
    text: str = field(default="", compare=False)


@frozen
class SystemTable:
    """A read-only relation of the engine itself, such as `penstock.jobs`; its name is dotted."""

    kind: ClassVar[Literal["system table"]] = "system table"
    name: str
    columns: tuple[ColumnDefinition, ...]


Relation: TypeAlias = (
    SourceDefinition | SinkDefinition | ViewDefinition | MaterializedViewDefinition | DimensionDefinition
)
Unreadable: TypeAlias = FunctionDefinition | SecretDefinition | ConnectionDefinition
Definition: TypeAlias = Relation | Unreadable


def columns_of(definition: Definition | SystemTable) -> tuple[ColumnDefinition, ...]:
    """The columns of a relation; none of anything else."""
    if isinstance(definition, Unreadable):
        return ()
    return definition.columns
