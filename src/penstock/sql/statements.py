"""What a script says: one frozen value for each statement.

Two statements that mean the same are equal, however they were spelt: spans, comments and the spelling of a window are
not compared. Queries and expressions inside are sqlglot trees with the extra nodes of `penstock.sql.nodes`; nothing
changes a tree once it stands in a statement (whoever needs another one copies it first).
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Literal

from penstock.errors import Span
from penstock.frozen import frozen
from penstock.secrets import Secret
from penstock.types import SqlType

if TYPE_CHECKING:
    from sqlglot import exp

NOWHERE = Span(1, 1, 0)


def span_field() -> Span:
    """A span that takes no part in equality."""
    value: Span = field(default=NOWHERE, compare=False, repr=False)
    return value


@frozen
class Name:
    """An identifier as written. An unquoted one is found without regard to case, a quoted one exactly."""

    text: str
    quoted: bool = field(default=False, compare=False)
    span: Span = span_field()

    def __str__(self) -> str:
        return self.text


class Emit(Enum):
    """When results leave a query."""

    FINAL = "FINAL"  # once, when a window closes
    CHANGES = "CHANGES"  # every change


@frozen
class OptionValue:
    """The value of an option or setting. The text is wrapped: which options are secret is known only later."""

    kind: Literal["text", "number", "boolean", "interval", "secret"]
    text: Secret  # for 'secret': the name of the secret, for 'interval': microseconds

    def reveal(self) -> str:
        return self.text.reveal()


@frozen
class Option:
    """One `key = value` of a WITH clause, the key as written."""

    key: str
    value: OptionValue
    key_span: Span = span_field()
    value_span: Span = span_field()


@frozen
class Watermark:
    """`WATERMARK FOR column AS column - delay`; the delay is in microseconds and constant."""

    column: Name
    delay_us: int
    span: Span = span_field()


@frozen
class Column:
    """A column of a CREATE statement.

    Exactly one of these makes it up: a plain `type`; `computed` (an expression, its type declared or inferred);
    `metadata` (a key of the source such as 'offset'); `header` (the key of a message header).
    """

    name: Name
    type: SqlType | None
    nullable: bool = True
    computed: exp.Expr | None = None
    metadata: str | None = None
    virtual: bool = False
    header: str | None = None
    comment: str | None = None
    span: Span = span_field()
    type_span: Span = span_field()


@frozen
class Format:
    """RisingWave's `FORMAT UPSERT ENCODE AVRO (…)` after the WITH clause; `key_encode` is `KEY ENCODE …`."""

    envelope: str  # 'plain' | 'upsert' | 'debezium' | …, lower case as written
    encode: str | None  # 'json' | 'avro' | …, lower case
    options: tuple[Option, ...] = ()
    key_encode: str | None = None
    span: Span = span_field()


@frozen
class Query:
    """A SELECT (or VALUES, or set operation) with its emission, if the statement says one."""

    tree: exp.Query
    emit: Emit | None = None
    emit_span: Span = span_field()
    span: Span = span_field()


@frozen(kw_only=True)
class Statement:
    """The root of all statements; `span` covers the statement without its semicolon."""

    span: Span = span_field()


RelationKind = Literal["STREAM", "TABLE", "SOURCE"]


@frozen(kw_only=True)
class CreateRelation(Statement):
    """CREATE STREAM, TABLE or SOURCE with columns and options. `type = 'sink'` among the options makes it a sink."""

    kind: RelationKind
    name: Name
    columns: tuple[Column, ...]
    options: tuple[Option, ...]
    watermark: Watermark | None = None
    primary_key: tuple[Name, ...] = ()
    partitioned_by: tuple[Name, ...] = ()
    format: Format | None = None
    or_replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    with_span: Span = span_field()


@frozen(kw_only=True)
class CreateSink(Statement):
    """CREATE SINK k [(columns)] [INTO table] [FROM relation | AS SELECT …] WITH (…). INTO a table is RisingWave's."""

    name: Name
    options: tuple[Option, ...]
    query: Query | None = None  # FROM r is SELECT * FROM r
    columns: tuple[Column, ...] = ()
    primary_key: tuple[Name, ...] = ()
    into: Name | None = None
    format: Format | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    with_span: Span = span_field()


@frozen(kw_only=True)
class CreateView(Statement):
    """CREATE [TEMPORARY] VIEW v [(names)] AS SELECT …: a name for a query, inlined where it is used."""

    name: Name
    query: Query
    columns: tuple[Name, ...] = ()
    comment: str | None = None
    or_replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False


@frozen(kw_only=True)
class CreateMaterializedView(Statement):
    """CREATE MATERIALIZED VIEW v [(names)] [WITH (…)] AS SELECT …: a job, and a table kept up to date by it."""

    name: Name
    query: Query
    columns: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False


@frozen(kw_only=True)
class Parameter:
    """A parameter of a user function."""

    name: str | None
    type: SqlType


@frozen(kw_only=True)
class CreateFunction(Statement):
    """CREATE FUNCTION f(args) RETURNS type LANGUAGE python AS 'module.function' | AS $$ source $$; in SQL its body is
    `expression`."""

    name: Name
    parameters: tuple[Parameter, ...]
    returns: SqlType | None
    language: str
    body: str
    aggregate: bool = False
    or_replace: bool = False
    temporary: bool = False
    if_not_exists: bool = False
    options: tuple[Option, ...] = ()
    expression: exp.Expr | None = None


@frozen(kw_only=True)
class CreateSecret(Statement):
    """CREATE SECRET name AS 'value' (or a `${env:X}` reference)."""

    name: Name
    value: Secret
    options: tuple[Option, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    value_span: Span = span_field()


@frozen(kw_only=True)
class CreateConnection(Statement):
    """CREATE CONNECTION name WITH (type = 'kafka', …), or Materialize's TO KAFKA (…): options that relations share."""

    name: Name
    options: tuple[Option, ...]
    or_replace: bool = False
    if_not_exists: bool = False
    with_span: Span = span_field()


ObjectKind = Literal[
    "STREAM", "TABLE", "SOURCE", "SINK", "VIEW", "MATERIALIZED VIEW", "FUNCTION", "SECRET", "CONNECTION"
]


@frozen(kw_only=True)
class Drop(Statement):
    """DROP kind [IF EXISTS] name [CASCADE | RESTRICT]."""

    kind: ObjectKind
    name: Name
    if_exists: bool = False
    cascade: bool = False


@frozen(kw_only=True)
class Alter(Statement):
    """ALTER kind name: SET (options), RESET (keys) or RENAME TO name. Other actions are not there yet."""

    kind: ObjectKind
    name: Name
    action: Literal["set", "reset", "rename"]
    options: tuple[Option, ...] = ()
    keys: tuple[str, ...] = ()
    new_name: Name | None = None
    if_exists: bool = False


@frozen(kw_only=True)
class Insert(Statement):
    """INSERT INTO target [(columns)] [WITH (…)] SELECT … | VALUES …. VALUES is a Query whose tree is exp.Values."""

    target: Name
    query: Query
    columns: tuple[Name, ...] = ()
    options: tuple[Option, ...] = ()


@frozen(kw_only=True)
class StatementSet(Statement):
    """EXECUTE STATEMENT SET BEGIN insert; … END: several inserts as one job."""

    inserts: tuple[Insert, ...]


@frozen(kw_only=True)
class Select(Statement):
    """A bare query."""

    query: Query


@frozen(kw_only=True)
class Subscribe(Statement):
    """SUBSCRIBE TO v [WITH (changes = …)] [SINCE n]."""

    target: Name
    options: tuple[Option, ...] = ()
    since: int | None = None


@frozen(kw_only=True)
class SubscribeQuery(Statement):
    """SUBSCRIBE TO (query) [WITH (changes = …)]."""

    query: Query
    options: tuple[Option, ...] = ()


@frozen(kw_only=True)
class Explain(Statement):
    """EXPLAIN [PHYSICAL | (FORMAT JSON)] statement."""

    statement: Statement
    physical: bool = False
    json: bool = False


@frozen(kw_only=True)
class ExplainWatermark(Statement):
    """EXPLAIN WATERMARK FOR view-or-job."""

    name: Name


@frozen(kw_only=True)
class ShowRewrite(Statement):
    """SHOW REWRITE statement: its canonical text and the Spark SQL that would run."""

    statement: Statement


ShowKind = Literal[
    "STREAMS",
    "TABLES",
    "SOURCES",
    "VIEWS",
    "MATERIALIZED VIEWS",
    "SINKS",
    "JOBS",
    "FUNCTIONS",
    "SECRETS",
    "SETTINGS",
]


@frozen(kw_only=True)
class Show(Statement):
    """SHOW kind."""

    kind: ShowKind


@frozen(kw_only=True)
class ShowCreate(Statement):
    """SHOW CREATE [kind] name."""

    name: Name
    kind: ObjectKind | None = None


@frozen(kw_only=True)
class Describe(Statement):
    """DESCRIBE [EXTENDED] name."""

    name: Name
    extended: bool = False


@frozen(kw_only=True)
class ControlJob(Statement):
    """PAUSE | RESUME | RESTART | STOP JOB name [WITH DRAIN], DROP JOB [IF EXISTS] name. Savepoints are refused by the
    parser as not there yet."""

    action: Literal["PAUSE", "RESUME", "RESTART", "STOP", "DROP"]
    name: Name
    drain: bool = False
    if_exists: bool = False


@frozen(kw_only=True)
class AdvanceWatermark(Statement):
    """ADVANCE WATERMARK FOR stream TO TIMESTAMP '…'; the time in microseconds since 1970, UTC."""

    stream: Name
    timestamp_us: int


@frozen(kw_only=True)
class RetryDeadLetters(Statement):
    """RETRY DEAD LETTERS [FOR job] [WHERE …]; of every job where none is named.

    `chosen` finds the job, stream, partition and offset of those that the condition holds for.
    """

    job: Name | None = None
    chosen: Query | None = None


@frozen(kw_only=True)
class SetSetting(Statement):
    """SET key = value."""

    key: str
    value: OptionValue
    key_span: Span = span_field()
    value_span: Span = span_field()


@frozen(kw_only=True)
class ResetSetting(Statement):
    """RESET key, or RESET for all."""

    key: str | None
    key_span: Span = span_field()
