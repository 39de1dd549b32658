"""Avro records: the bytes of one value each, with the schema of the relation or one made of its columns.

Spark reads them with `from_avro`, which stops where the schema ends and says nothing of what stands behind. So a mark
is put behind each record, and a field for it at the end of the schema: it comes out as it went in where the record has
exactly the length that its schema gives it, and only there. Only the wanted columns are made; the others are skipped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from penstock.errors import NotYetError, OptionError
from penstock.formats.avro_schemas import (
    END,
    END_MARK,
    columns_of,
    field_of,
    given_schema,
    marked,
    narrowed,
    nullable,
    schema_of,
)
from penstock.formats.fitting import fits_always, fitted_value
from penstock.formats.texts import first_error, misfit
from penstock.stores.arrow_types import sql_type_of_arrow
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType

    from penstock.catalog.model import ColumnDefinition, SourceDefinition
    from penstock.formats.avro_schemas import Schema
    from penstock.formats.outside import Outside

_READ: Final = "__read"


def decode_avro(
    frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition], outside: Outside
) -> DataFrame:
    """The frame with the wanted columns and `__error`."""
    from pyspark.sql import functions as f

    refuse_options(definition.options.values, str(definition.name))
    schema = source_schema(definition, outside)
    fields = fields_for(definition, wanted, schema)
    frame = frame.withColumn(_READ, read_avro(f.col("__value"), schema, schema, list(fields.values())))
    empty = f.coalesce(f.octet_length("__value"), f.lit(0)) == 0
    why = f.when(empty, f.lit("empty record")).otherwise(f.lit("malformed avro: not a record of the schema"))
    return with_columns(frame, wanted, {_READ: fields}, why).drop(_READ)


def refuse_options(options: Mapping[str, object], what: str) -> None:
    """What other systems have and we do not."""
    for key, usual in (("avro.raw_datums", True), ("avro.into_unstructured_json", False)):
        if options.get(key, usual) is not usual:
            raise NotYetError(
                "QUERY_NOT_YET", f"{key} = {str(not usual).lower()} of {what} is not there yet", hint="leave it out"
            )
    codec = options.get("avro.codec")
    if codec not in (None, "null"):
        raise NotYetError(
            "QUERY_NOT_YET",
            f"avro.codec = '{codec}' of {what} is not there yet: records are bare, and not compressed by themselves",
            hint="leave it out, or compress what is around them: compression.type of Kafka, compression of files",
        )


def source_schema(definition: SourceDefinition, outside: Outside) -> Schema:
    """The schema that the records of a relation are written with."""
    what = str(definition.name)
    given = given_schema(what, definition.options.values, outside)
    if given is not None:
        return given
    return schema_of([(entry.name, entry.type) for entry in definition.columns if entry.physical], what)


def fields_for(definition: SourceDefinition, wanted: Sequence[ColumnDefinition], schema: Schema) -> dict[str, str]:
    """The field of each wanted column; INVALID_OPTION where the schema has none for it."""
    names = [field["name"] for field in schema["fields"]]
    found: dict[str, str] = {}
    for column in wanted:
        field = field_of(column.name, names)
        if field is None:
            raise OptionError(
                "INVALID_OPTION",
                f'column "{column.name}" of {definition.name} is not in its Avro schema',
                hint=f"the fields of {schema['name']}: {', '.join(names)}",
            )
        found[column.name] = field
    return found


def read_avro(value: Column, writer: Schema, reader: Schema, fields: Sequence[str]) -> Column:
    """What is read of a record: a struct of these fields, and our mark where the record was whole."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro

    # The names of the records need not agree, their fields do.
    named: Schema = {key: writer[key] for key in ("name", "namespace") if key in writer}
    seen: Schema = {**narrowed(reader, fields), **named}
    options = {"mode": "PERMISSIVE", "avroSchema": json.dumps(marked(seen))}
    return from_avro(f.concat(value, f.lit(END_MARK)), json.dumps(marked(writer)), options)


def with_columns(
    frame: DataFrame, wanted: Sequence[ColumnDefinition], readings: Mapping[str, Mapping[str, str]], why: Column
) -> DataFrame:
    """The frame with the wanted columns, and `__error`: `why` where a record is not whole, or the column that misfits.

    A reading is a column of what was read of a record, with the field of each wanted column that it has; of several
    readings at most one is not NULL.
    """
    from pyspark.sql import functions as f

    marks = [f.col(reading)[END] for reading in readings]
    whole = f.coalesce(f.coalesce(*marks) == f.lit(END_MARK), f.lit(False)) if marks else f.lit(False)
    made: dict[str, Column] = {}
    fails: dict[str, Column] = {}
    errors: list[Column] = []
    for column in wanted:
        type_ = column.type or STRING
        values: list[Column] = [f.lit(None).cast(type_.spark())]
        for reading, fields in readings.items():
            if column.name not in fields:
                continue
            found, have = f.col(reading).getField(fields[column.name]), _type_of(frame, reading, fields[column.name])
            values.insert(0, fitted_value(found, have, type_).cast(type_.spark()))
            if not fits_always(have, type_):
                unfit = whole & found.isNotNull() & f.col(_quoted(column.name)).isNull()
                fails[f"{reading}.{column.name}"] = unfit
                errors.append(f.when(unfit, misfit(column.name, _shown(found, have), type_)))
        made[column.name] = f.when(whole, f.coalesce(*values))
    frame = frame.withColumns(made)
    if not frame.isStreaming:
        return frame.withColumn("__error", f.when(~whole, why).otherwise(first_error(errors)))
    bad = ~whole
    for unfit in fails.values():
        bad = bad | unfit
    return frame.withColumn("__error", f.when(bad, f.lit("bad record")))


def _type_of(frame: DataFrame, reading: str, field: str) -> DataType:
    read = frame.schema[reading].dataType
    return read[field].dataType  # type: ignore[index, no-any-return]


def sink_schema(rows: pa.Schema, options: Mapping[str, object], outside: Outside) -> Schema:
    """The schema that rows are written with: the one of the options, or one made of their columns."""
    refuse_options(options, "the sink")
    given = given_schema("the sink", options, outside)
    return given or schema_of([(field.name, sql_type_of_arrow(field.type)) for field in rows], "the sink")


def avro_record(frame: DataFrame, schema: Schema) -> Column:
    """The columns of a frame as one record."""
    from pyspark.sql import functions as f
    from pyspark.sql.avro.functions import from_avro, to_avro

    text = json.dumps(schema)
    empty = frame.sparkSession.range(0).select(from_avro(f.lit(None).cast("binary"), text).alias("r"))
    types: StructType = empty.schema["r"].dataType  # type: ignore[assignment]
    sources = columns_of(schema, frame.columns, "the sink")
    columns: list[Column] = []
    for field in schema["fields"]:
        name, source = field["name"], sources[field["name"]]
        value = f.lit(_default(field)) if source is None else f.col(_quoted(source))
        columns.append(value.cast(types[name].dataType).alias(name))
    return to_avro(f.struct(*columns), text)


def _default(field: Mapping[str, object]) -> object:
    found = field.get("default")
    if found is None or isinstance(found, bool | int | float | str):
        return found
    if nullable(field["type"]):
        return None
    raise NotYetError(
        "QUERY_NOT_YET",
        f'the default of field "{field["name"]}" is nested, and such a one cannot be written yet',
        hint="give the sink a column for it",
    )


def _shown(found: Column, have: DataType) -> Column:
    from pyspark.sql import functions as f
    from pyspark.sql import types as t

    if isinstance(have, t.StructType | t.ArrayType | t.MapType):
        return f.to_json(found)
    return f.hex(found) if isinstance(have, t.BinaryType) else found.cast("string")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
