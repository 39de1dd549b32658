"""ksqlDB's CREATE STREAM and CREATE TABLE over a topic, as relations of ours.

CREATE TABLE t (id STRING PRIMARY KEY, v INT) WITH (KAFKA_TOPIC = 't', VALUE_FORMAT = 'JSON')
-> CREATE TABLE t (id STRING, v INT, ROWTIME …, ROWPARTITION …, ROWOFFSET …, PRIMARY KEY (id) NOT ENFORCED)
   WITH (connector = 'upsert-kafka', topic = 't', format = 'json', 'key.fields' = 'id', …)

ROWTIME is the time of the record, or the column that TIMESTAMP names; it is the event time of a stream.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.errors import OptionError
from penstock.sql.dialects import ksql_options
from penstock.sql.dialects.ksql_options import Clause, KeyColumns, text
from penstock.sql.dialects.ksqldb import refuse_at
from penstock.sql.statements import Column, CreateRelation, Name, Option
from penstock.types import BIGINT, INT, TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.errors import Span

TIME: Final = "ROWTIME"
_PLACES: Final = (("ROWPARTITION", INT, "partition"), ("ROWOFFSET", BIGINT, "offset"))
_BARE: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", "DOUBLE", "DECIMAL", "BOOLEAN"})


def over_topic(statement: CreateRelation, keys: Sequence[Name], *, table: bool) -> CreateRelation:
    """The statement in our words; `keys` are the columns marked KEY, and rows of a `table` replace each other."""
    clause = ksql_options.read(statement.options, "upsert-kafka" if table else "kafka")
    if clause.topic is None:
        return statement
    named = statement.primary_key or tuple(keys)
    made = (*clause.options, *ksql_options.key_options(clause, _key_columns(statement, named), _place(named, clause)))
    time, event_time = _time(statement, clause)
    if event_time is not None and statement.watermark is None and (clause.timestamp is not None or not table):
        made += (event_time,)
    added = [time, *(Column(Name(name), kind, metadata=key, virtual=True) for name, kind, key in _PLACES)]
    declared = {column.name.text.upper() for column in statement.columns}
    return replace(
        statement,
        columns=(*statement.columns, *(column for column in added if column.name.text not in declared)),
        options=made,
    )


def _place(keys: Sequence[Name], clause: Clause) -> Span:
    assert clause.topic is not None
    return keys[0].span if keys else clause.topic.key_span


def _key_columns(statement: CreateRelation, keys: Sequence[Name]) -> KeyColumns:
    names = tuple(name.text for name in keys)
    of_key = [column for column in statement.columns if column.name.text.lower() in {name.lower() for name in names}]
    bare = len(of_key) == 1 and of_key[0].type is not None and of_key[0].type.name in _BARE
    return KeyColumns(names, bare)


def _time(statement: CreateRelation, clause: Clause) -> tuple[Column, Option | None]:
    """ROWTIME, and the option that names the event time."""
    option = clause.timestamp
    if option is None:
        assert clause.topic is not None
        _refuse_format(clause)
        named = Option("event_time_field", text(TIME), clause.topic.key_span, clause.topic.key_span)
        return Column(Name(TIME), TIMESTAMP, metadata="timestamp", virtual=True), named
    written = option.value.reveal()
    found = next((column for column in statement.columns if column.name.text.lower() == written.lower()), None)
    if found is None:
        raise OptionError(
            "INVALID_OPTION",
            f"TIMESTAMP names a column that {statement.name} does not have",
            hint=f"columns: {', '.join(column.name.text for column in statement.columns)}",
            span=option.value_span,
        )
    computed = _as_time(found, clause)
    own = found.name.text if isinstance(computed, exp.Column) else TIME
    return Column(Name(TIME), TIMESTAMP, computed=computed), replace(option, key="event_time_field", value=text(own))


def _as_time(column: Column, clause: Clause) -> exp.Expr:
    """The time in a column: itself, milliseconds since 1970, or a text of the format that TIMESTAMP_FORMAT says."""
    value = exp.column(exp.to_identifier(column.name.text, quoted=column.name.quoted))
    kind = column.type.name if column.type is not None else ""
    if kind == "STRING":
        pattern = clause.timestamp_format
        more = [exp.Literal.string(pattern.value.reveal())] if pattern is not None else []
        return exp.Anonymous(this="TO_TIMESTAMP", expressions=[value, *more])
    _refuse_format(clause)
    if kind == "BIGINT":
        return exp.Anonymous(this="TO_TIMESTAMP_LTZ", expressions=[value, exp.Literal.number(3)])
    return value


def _refuse_format(clause: Clause) -> None:
    if clause.timestamp_format is not None:
        hint = "leave it out; it says how the STRING column that TIMESTAMP names is written"
        refuse_at("TIMESTAMP_FORMAT without a text", hint, clause.timestamp_format.key_span)
