"""Avro records with the number of their schema before them, which a schema registry keeps.

Each record is read with the schema it was written with, and then fitted to the columns. Where its schema lacks a field
that the newest one has, that one's default is read; without a default the column is NULL. So schemas may come and go as
long as their values fit the columns.

A running stream knows the schemas that were there when it started. A record with another one is bad to it; the range is
read again as a batch, which asks the registry for the numbers it finds. If there is such a schema, the job starts again
and knows it from then on; if there is none, the record is a dead letter.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import OptionError, PenstockError
from penstock.formats.avro_records import read_avro, refuse_options, sink_schema, with_columns
from penstock.formats.avro_schemas import field_of, given_schema, read_schema
from penstock.formats.registry import HEAD, MAGIC, head, subject_to_write, subjects_of, uses_registry
from penstock.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import ColumnDefinition, SourceDefinition
    from penstock.formats.avro_schemas import Schema
    from penstock.formats.outside import Outside
    from penstock.formats.registry import Registry


@frozen
class Known:
    """The schemas of a relation by their numbers, why some cannot be used, and the newest, for its defaults."""

    schemas: Mapping[int, Schema]
    unusable: Mapping[int, str]
    newest: Schema | None


_BODY: Final = f"substring(__value, {HEAD + 1})"


def decode_confluent(
    frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition], outside: Outside
) -> DataFrame:
    """The frame with the wanted columns and `__error`."""
    from pyspark.sql import functions as f

    options = definition.options.values
    refuse_options(options, str(definition.name))
    registry = registry_for(options, outside)
    known = known_schemas(definition, registry, outside)
    front = f.substring("__value", 1, HEAD)
    if not frame.isStreaming:
        known = _with_found(frame, known, definition, registry)
    readings: dict[str, dict[str, str]] = {}
    made: dict[str, Column] = {}
    for number, schema in known.schemas.items():
        reader, fields = reader_for(schema, known.newest, [column.name for column in wanted])
        name = f"__read{number}"
        read = read_avro(f.expr(_BODY), schema, reader, list(fields.values()))
        made[name] = f.when(front == f.lit(head(number)), read)
        readings[name] = fields
    _refuse_unknown_columns(definition, wanted, readings)
    frame = with_columns(frame.withColumns(made), wanted, readings, _why(known)).drop(*made)
    if options.get("bad_data") != "null":
        return frame
    # A schema that is not known yet may become known: only that stays an error.
    listed = [f.lit(head(number)) for number in known.schemas]
    strange = (f.substring("__value", 1, 1) == f.lit(MAGIC)) & (f.octet_length("__value") >= HEAD)
    strange = strange & ~front.isin(*listed) if listed else strange
    return frame.withColumn("__error", f.when(f.coalesce(strange, f.lit(False)), f.col("__error")))


def registry_for(options: Mapping[str, object], outside: Outside) -> Registry:
    """The registry of a relation."""
    if outside.registry is None:
        raise OptionError("INVALID_OPTION", "a schema registry cannot be reached from here")
    return outside.registry(options)


def known_schemas(definition: SourceDefinition, registry: Registry, outside: Outside) -> Known:
    """What is known before a record is read: the schemas of the subjects, and those that records had before."""
    options = definition.options.values
    schemas: dict[int, Schema] = {}
    unusable: dict[int, str] = {}
    newest = given_schema(str(definition.name), options, outside)
    last: Schema | None = None
    for subject in subjects_of(options):
        for number, text in registry.versions(subject):
            _take(number, text, schemas, unusable)
            last = schemas.get(number, last)
    for number in registry.learned(_scope(definition)):
        known = registry.by_id(number)
        if known is not None and number not in schemas:
            _take(number, known, schemas, unusable)
    return Known(schemas, unusable, newest or last)


def reader_for(writer: Schema, newest: Schema | None, columns: Sequence[str]) -> tuple[Schema, dict[str, str]]:
    """How records of a schema are read: with the newest one's fields that they lack, where these have a default.

    Also the field of each column that there is one for.
    """
    own = [field["name"] for field in writer["fields"]]
    later = [
        field for field in (newest or writer)["fields"] if "default" in field and field_of(field["name"], own) is None
    ]
    names = [*own, *(field["name"] for field in later)]
    fields = {column: name for column in columns if (name := field_of(column, names)) is not None}
    added = [field for field in later if field["name"] in fields.values()]
    return {**writer, "fields": [*writer["fields"], *added]}, fields


def sink_writing(
    rows: pa.Schema, format_name: str, options: Mapping[str, object], outside: Outside
) -> tuple[Schema, bytes]:
    """The schema that rows are written with, and what stands before each record: the number under which the registry
    has it, where there is one."""
    if not uses_registry(format_name, options):
        return sink_schema(rows, options, outside), b""
    registry = registry_for(options, outside)
    asked = options.get("avro.schema_id")
    if isinstance(asked, int):
        found = registry.by_id(asked)
        if found is None:
            raise OptionError("INVALID_OPTION", f"the schema registry has no schema {asked}")
        return read_schema(found, f"schema {asked}"), head(asked)
    schema = sink_schema(rows, options, outside)
    space, name = schema.get("namespace"), str(schema["name"])
    full = f"{space}.{name}" if space and "." not in name else name
    return schema, head(registry.register(subject_to_write(options, full), json.dumps(schema)))


def _take(number: int, text: str, schemas: dict[int, Schema], unusable: dict[int, str]) -> None:
    try:
        schemas[number] = read_schema(text, f"schema {number}")
    except PenstockError as error:
        unusable[number] = error.message


def _with_found(frame: DataFrame, known: Known, definition: SourceDefinition, registry: Registry) -> Known:
    """What is known, with the numbers in a batch that were not: its records are read twice, but all can be."""
    from pyspark.sql import functions as f

    listed = [f.lit(head(number)) for number in (*known.schemas, *known.unusable)]
    front = f.substring("__value", 1, HEAD)
    looked = frame.filter((f.substring("__value", 1, 1) == f.lit(MAGIC)) & (f.octet_length("__value") >= HEAD))
    if listed:
        looked = looked.filter(~front.isin(*listed))
    schemas, unusable = dict(known.schemas), dict(known.unusable)
    for row in looked.select(front.alias("front")).distinct().collect():
        number = int.from_bytes(bytes(row["front"])[1:], "big")
        text = registry.by_id(number)
        if text is not None:
            _take(number, text, schemas, unusable)
            registry.learn(_scope(definition), number)
    return Known(schemas, unusable, known.newest)


def _why(known: Known) -> Column:
    """Why a record is not whole."""
    from pyspark.sql import functions as f

    front = f.substring("__value", 1, HEAD)
    number = f.conv(f.hex(f.substring("__value", 2, HEAD - 1)), 16, 10)
    empty = f.coalesce(f.octet_length("__value"), f.lit(0)) == 0
    plain = (f.substring("__value", 1, 1) != f.lit(MAGIC)) | (f.octet_length("__value") < HEAD)
    error = f.when(empty, f.lit("empty record")).when(plain, f.lit("no schema number before the record"))
    for schema, reason in known.unusable.items():
        error = error.when(front == f.lit(head(schema)), f.lit(reason))
    broken = f.concat(f.lit("malformed avro: not a record of schema "), number)
    if known.schemas:
        error = error.when(front.isin(*[f.lit(head(one)) for one in known.schemas]), broken)
    return error.otherwise(f.concat(f.lit("schema "), number, f.lit(" is not in the registry")))


def _refuse_unknown_columns(
    definition: SourceDefinition, wanted: Sequence[ColumnDefinition], readings: Mapping[str, Mapping[str, Any]]
) -> None:
    if not readings:
        return
    for column in wanted:
        if not any(column.name in fields for fields in readings.values()):
            raise OptionError(
                "INVALID_OPTION",
                f'column "{column.name}" of {definition.name} is in no schema that the registry has for it',
                hint="look at its name, or at schema_registry.subject",
            )


def _scope(definition: SourceDefinition) -> str:
    options = definition.options.values
    return f"{options.get('topic')} {options.get('topic_pattern')} {options.get('bootstrap_servers')}"
