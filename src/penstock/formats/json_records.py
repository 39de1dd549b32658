"""JSON records.

Every record is read once by `from_json`, with Spark's own types and only the wanted columns. Where that does not work
out (a number in quotes, a number too large, text that is no JSON) the record is read a second time with every column as
text, to take what can be taken and to say which column is wrong. Records are rarely bad, so the second look costs
nothing that can be measured.

The record is put into brackets before it is read: Spark stops at the end of the first value and would not see what
stands behind it. Names match exactly, in upper and lower case; of a name that comes twice the last one counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.formats.texts import (
    NESTED,
    RANGES,
    first_error,
    in_range,
    misfit,
    timestamp_of,
    timestamp_of_ms,
    value_of,
)
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import ColumnDefinition, SourceDefinition
    from penstock.types import SqlType

_CORRUPT: Final = "__corrupt"
_OPTIONS: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
_BLANKS: Final = " \t\r\n"
_READ: Final = "__read"
_TEXTS: Final = "__texts"
_GOOD: Final = "__good"
_SENSE: Final = "__sense"
_PREFIX: Final = 5  # a zero byte and the schema's number, before records that a schema registry knows


def decode_json(frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition]) -> DataFrame:
    """The frame with the wanted columns and `__error`."""
    from pyspark.sql import functions as f

    options = definition.options.values
    value = f.col("__value")
    if options.get("json.confluent_schema_registry") is True:
        value = f.expr(f"substring(__value, {_PREFIX + 1})")
    text = value.cast("string")
    empty = f.coalesce(f.btrim(text, f.lit(_BLANKS)), f.lit("")) == ""
    valid = f.is_valid_utf8(text)
    if options.get("json.unstructured") is True:
        columns = {column.name: f.when(valid, text) for column in wanted}
        error = f.when(empty, f.lit("empty record")).when(~valid, f.lit("not valid UTF-8"))
        return frame.withColumns({**columns, "__error": error})
    milliseconds = options.get("json.timestamp_format") == "epoch_ms"
    inside = "payload" if options.get("json.include_schema") is True else None
    missing_is_bad = options.get("json.fail_on_missing_field") is True
    record = _Record(text, inside)
    types = {column.name: column.type or STRING for column in wanted}
    # Each step is a column of its own, so that no expression is written out, planned and worked out twice.
    fast = {name: _Fast(type_, milliseconds=milliseconds) for name, type_ in types.items()}
    frame = frame.withColumn(_READ, record.read({name: how.read_as for name, how in fast.items()}))
    values = {name: record.field(_READ, name) for name in types}
    made = {name: f"__made{place}" for place, name in enumerate(types) if fast[name].can_fail}
    frame = frame.withColumns({hidden: fast[name].value(values[name]) for name, hidden in made.items()})

    good = record.whole(_READ) & valid & f.lit(not (missing_is_bad and types))
    for name, hidden in made.items():
        good = good & (values[name].isNull() | f.col(hidden).isNotNull())
    frame = frame.withColumn(_GOOD, f.coalesce(good, f.lit(False)))
    frame = frame.withColumn(_TEXTS, f.when(~f.col(_GOOD), record.read(dict.fromkeys(types, "STRING"))))

    frame = frame.withColumn(_SENSE, f.col(_GOOD) | f.coalesce(record.whole(_TEXTS) & valid, f.lit(False)))
    chosen: dict[str, Column] = {}
    for name, type_ in types.items():
        # What was read at first is exact, where the text of a number need not be; of a nested value it may be a part.
        first = f.col(made[name]) if name in made else values[name]
        slow = _slow_value(record.field(_TEXTS, name), type_)
        if type_.name in NESTED:
            chosen[name] = f.when(f.col(_GOOD) | (f.col(_SENSE) & slow.isNotNull()), first).cast(type_.spark())
        else:
            chosen[name] = f.when(f.col(_SENSE), f.coalesce(first, slow)).cast(type_.spark())
    frame = frame.withColumns(chosen)
    errors = [_column_error(name, record.field(_TEXTS, name), type_) for name, type_ in types.items()]
    if missing_is_bad:
        errors += [_missing(name, record) for name in types]
    no_object = ~f.ltrim(text, f.lit(_BLANKS)).startswith("{")
    error = (
        f.when(f.col(_GOOD), f.lit(None).cast("string"))
        .when(empty, f.lit("empty record"))
        .when(~valid, f.lit("not valid UTF-8"))
        .when(~f.col(_SENSE), f.when(no_object, f.lit("not a json object")).otherwise(f.lit("malformed json")))
        .otherwise(first_error(errors))
    )
    return frame.withColumn("__error", error).drop(_READ, _TEXTS, _GOOD, _SENSE, *made.values())


class _Record:
    """The record in brackets, and where its fields are in what was read."""

    def __init__(self, text: Column, inside: str | None) -> None:
        from pyspark.sql import functions as f

        self.inside = inside
        self.text = text
        self._bracketed = f.concat(f.lit('{"r":['), text, f.lit("]}"))

    def read(self, fields: dict[str, str]) -> Column:
        from pyspark.sql import functions as f

        # A record of which no column is wanted is still looked at.
        inner = ", ".join(f"{_name(name)}: {type_}" for name, type_ in fields.items())
        struct = f"STRUCT<{inner}>"
        if self.inside is not None:
            struct = f"STRUCT<{_name(self.inside)}: {struct}>"
        return f.from_json(self._bracketed, f"r ARRAY<{struct}>, {_CORRUPT} STRING", _OPTIONS)

    def _struct(self, column: str) -> Column:
        from pyspark.sql import functions as f

        found = f.get(f.col(column)["r"], f.lit(0))
        return found if self.inside is None else found[self.inside]

    def field(self, column: str, name: str) -> Column:
        return self._struct(column).getField(name)

    def whole(self, column: str) -> Column:
        """Whether the text was one JSON object whose fields have the types that were asked for."""
        from pyspark.sql import functions as f

        read = f.col(column)
        return read[_CORRUPT].isNull() & (f.size(read["r"]) == 1) & self._struct(column).isNotNull()


class _Fast:
    """How a column is read by `from_json`, and what is made of it then."""

    def __init__(self, type_: SqlType, *, milliseconds: bool) -> None:
        self._type = type_
        self._milliseconds = milliseconds
        self.read_as = _read_as(type_, milliseconds=milliseconds)
        self.can_fail = _changes(type_) or type_.name in {"DOUBLE", "FLOAT"}

    def value(self, read: Column) -> Column:
        """The column's value; NULL where what was read is none."""
        from pyspark.sql import functions as f

        if self._type.name in {"DOUBLE", "FLOAT"}:
            # What overflows becomes infinite: the second look tells whether it was written so.
            return f.when(f.abs(read) != f.lit(float("inf")), read)
        return _converted(read, self._type, milliseconds=self._milliseconds) if self.can_fail else read


def _read_as(type_: SqlType, *, milliseconds: bool) -> str:
    if type_.name == "TIMESTAMP":
        # Spark reads a number in a TIMESTAMP as seconds.
        return "BIGINT" if milliseconds else "STRING"
    if type_.name == "DATE":
        return "STRING"
    if type_.name in RANGES:
        return RANGES[type_.name][0]
    inner = [_read_as(element, milliseconds=milliseconds) for element in type_.elements]
    if type_.name == "ARRAY":
        return f"ARRAY<{inner[0]}>"
    if type_.name == "MAP":
        return f"MAP<{type_.elements[0].spark()}, {inner[1]}>"
    if type_.name == "STRUCT":
        parts = [f"{_name(part.name)}: {_read_as(part.type, milliseconds=milliseconds)}" for part in type_.fields]
        return f"STRUCT<{', '.join(parts)}>"
    return type_.spark()


def _converted(read: Column, type_: SqlType, *, milliseconds: bool) -> Column:
    """What was read, in the column's own type; NULL where any part of it does not fit."""
    from pyspark.sql import functions as f

    if type_.name == "TIMESTAMP":
        return timestamp_of_ms(read) if milliseconds else timestamp_of(read)
    if type_.name == "DATE":
        return value_of(read, type_)
    if type_.name in RANGES:
        return in_range(read, type_)
    if not _changes(type_):
        return read
    if type_.name == "STRUCT":
        parts = {part.name: read.getField(part.name) for part in type_.fields}
        made = {part.name: _converted(parts[part.name], part.type, milliseconds=milliseconds) for part in type_.fields}
        fits = f.lit(True)
        for name, part in parts.items():
            fits = fits & (part.isNull() | made[name].isNotNull())
        return f.when(fits & read.isNotNull(), f.struct(*[made[name].alias(name) for name in made]))
    item = type_.elements[-1]
    items = read if type_.name == "ARRAY" else f.map_values(read)
    good = f.forall(items, lambda one: one.isNull() | _converted(one, item, milliseconds=milliseconds).isNotNull())
    if type_.name == "ARRAY":
        return f.when(good, f.transform(read, lambda one: _converted(one, item, milliseconds=milliseconds)))
    return f.when(good, f.transform_values(read, lambda _, one: _converted(one, item, milliseconds=milliseconds)))


def _changes(type_: SqlType) -> bool:
    """Whether anything in a value of this type is read in another type first."""
    if type_.name in {"TIMESTAMP", "DATE", *RANGES}:
        return True
    return any(map(_changes, type_.elements)) or any(_changes(part.type) for part in type_.fields)


def _slow_value(text: Column, type_: SqlType) -> Column:
    return nested_value(text, type_) if type_.name in NESTED else value_of(text, type_)


def nested_value(text: Column, type_: SqlType) -> Column:
    """The nested value whose JSON a text is; NULL where it is none of this type."""
    from pyspark.sql import functions as f

    schema = f"v {_read_as(type_, milliseconds=False)}, {_CORRUPT} STRING"
    read = f.from_json(f.concat(f.lit('{"v":'), text, f.lit("}")), schema, _OPTIONS)
    return f.when(read[_CORRUPT].isNull(), _converted(read["v"], type_, milliseconds=False))


def _column_error(name: str, text: Column, type_: SqlType) -> Column:
    """Why a column is NULL that has a text in the record."""
    from pyspark.sql import functions as f

    return f.when(text.isNotNull() & f.col(_name(name)).isNull(), misfit(name, text, type_))


def _missing(name: str, record: _Record) -> Column:
    from pyspark.sql import functions as f

    text = record.text if record.inside is None else f.get_json_object(record.text, f"$.{record.inside}")
    has = f.array_contains(f.json_object_keys(text), name)
    return f.when(~has, f.lit(f'column "{name}" is missing'))


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
