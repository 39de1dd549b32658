"""From the bytes of a record to the columns of its relation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import NotYetError
from penstock.formats.avro_confluent import decode_confluent
from penstock.formats.avro_records import decode_avro
from penstock.formats.csv_records import decode_csv
from penstock.formats.debezium_records import decode_changes, decode_debezium
from penstock.formats.json_records import decode_json
from penstock.formats.keys import key_columns, key_format, key_options, key_relation, value_relation
from penstock.formats.operation_records import decode_operations, names_operations
from penstock.formats.outside import Outside
from penstock.formats.protobuf_records import decode_protobuf
from penstock.formats.raw_records import decode_raw
from penstock.formats.registry import uses_registry
from penstock.formats.texts import first_error, misfit, value_of
from penstock.plan.changed_rows import DELETED
from penstock.types import BINARY, STRING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import SourceDefinition
    from penstock.types import SqlType


_ERROR: Final = "__error"
_VALUE: Final = "__value"
_KEPT: Final = "__kept"
_KEY_ERROR: Final = "__key_error"


def decode(
    frame: DataFrame,
    definition: SourceDefinition,
    columns: tuple[str, ...],
    outside: Outside | None = None,
) -> DataFrame:
    """The frame with the wanted columns read from `__value`, and `__error`: why a record cannot be read, else NULL.

    What can be read of a bad record is there, too: a column that does not fit is NULL, and all of them are where the
    record as a whole makes no sense. With `bad_data = 'null'` that is the result and `__error` stays NULL.
    A record is looked at only as far as the wanted columns go. Of a stream, `__error` says only that a record is bad:
    the reasons would cost every good record time, and a batch over the same range tells them.
    A record of upserts without a value deletes the row of its key, which is all that is read of it. Of Debezium's
    records read as rows, and of rows that name their operation, `__deleted` says as much.
    """
    from pyspark.sql import functions as f

    reach = outside or Outside()
    keyed = {name: inner for name, inner in key_columns(definition).items() if name in columns}
    if keyed:
        decoded = _with_key(frame, definition, columns, keyed, reach)
    else:
        decoded = _decoded(frame, value_relation(definition), columns, reach)
        if definition.mode == "upsert":
            decoded = decoded.withColumn(_ERROR, f.when(f.col(_VALUE).isNotNull(), f.col(_ERROR)))
    if definition.options.values.get("bad_data") == "null" and not _waits_for_schemas(definition):
        return decoded.withColumn(_ERROR, f.lit(None).cast("string"))
    return decoded


def _with_key(
    frame: DataFrame,
    definition: SourceDefinition,
    columns: tuple[str, ...],
    keyed: dict[str, str],
    outside: Outside,
) -> DataFrame:
    """Key and value one after the other. What is in both is the value's, and the key's where the value has none."""
    from pyspark.sql import functions as f

    names = list(keyed)
    before = [_quoted(name) for name in frame.columns if name not in (*columns, _ERROR)]
    spare = {name: f"__key{place}" for place, name in enumerate(names)}
    types = {column.name: column.type or STRING for column in definition.columns}
    key = key_relation(definition)
    frame = frame.withColumn(_KEPT, f.col(_VALUE)).withColumn(_VALUE, f.col("__key"))
    frame = _decoded(frame, key, tuple(keyed[name] for name in names), outside)
    made = {spare[name]: f.col(_quoted(keyed[name])) for name in names}
    errors = [f.col(_ERROR)]
    if key.options.format == "raw":
        texts, made = made, {spare[name]: _of_text(made[spare[name]], types[name]) for name in names}
        errors += [
            f.when(texts[spare[name]].isNotNull() & made[spare[name]].isNull(), misfit(name, texts[spare[name]], type_))
            for name, type_ in types.items()
            if name in keyed and type_ not in (STRING, BINARY)
        ]
    error = f.when(f.col("__key").isNotNull(), f.concat(f.lit("key: "), first_error(errors)))
    frame = frame.withColumns({**made, _KEY_ERROR: error}).withColumn(_VALUE, f.col(_KEPT))
    frame = frame.select(*before, *spare.values(), _KEY_ERROR)
    value = value_relation(definition)
    inside = tuple(name for name in columns if any(one.name == name for one in value.columns))
    frame = _decoded(frame, value, inside, outside)
    both = {
        name: f.coalesce(f.col(_quoted(name)), f.col(spare[name])) if name in inside else f.col(spare[name])
        for name in names
    }
    error = f.coalesce(f.col(_ERROR), f.col(_KEY_ERROR))
    if definition.mode == "upsert":
        error = f.when(f.col(_VALUE).isNull(), f.col(_KEY_ERROR)).otherwise(error)
    frame = frame.withColumns(both).withColumn(_ERROR, error)
    more = [DELETED] if DELETED in frame.columns else []
    return frame.select(*before, *[_quoted(name) for name in columns], *more, _ERROR)


def _of_text(text: Column, type_: SqlType) -> Column:
    return text if type_ in (STRING, BINARY) else value_of(text, type_)


def _decoded(
    frame: DataFrame,
    definition: SourceDefinition,
    columns: tuple[str, ...],
    outside: Outside,
) -> DataFrame:
    named = {column.name: column for column in definition.columns}
    wanted = [named[name] for name in columns]
    format_name = definition.options.format
    if uses_registry(format_name, definition.options.values):
        return decode_confluent(frame, definition, wanted, outside)
    if names_operations(definition):
        return decode_operations(frame, definition, wanted)
    if format_name == "json":
        return decode_json(frame, definition, wanted)
    if format_name == "debezium-json":
        if definition.mode != "append":
            return decode_changes(frame, definition, wanted)
        return decode_debezium(frame, definition, wanted)
    if format_name == "protobuf":
        return decode_protobuf(frame, definition, wanted, outside)
    if format_name == "csv":
        return decode_csv(frame, definition, wanted)
    if format_name == "raw":
        return decode_raw(frame, definition, wanted)
    if format_name == "avro":
        return decode_avro(frame, definition, wanted, outside)
    raise NotYetError(
        "QUERY_NOT_YET",
        f"format {format_name} of {definition.name} is not read yet",
        hint="use json, csv, avro, protobuf, debezium-json or raw",
    )


def _waits_for_schemas(definition: SourceDefinition) -> bool:
    """Whether a record may be bad for now only: its errors are then told whatever else is asked for."""
    options = definition.options
    return uses_registry(options.format, options.values) or (
        bool(key_columns(definition)) and uses_registry(key_format(options.values), key_options(options.values))
    )


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
