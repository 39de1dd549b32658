"""JSON records.

Most records are read by a class of our own in Spark's JVM, which says nothing about those that it has any doubt about.
These are read by `from_json`, with Spark's own types and only the wanted columns; a stream only learns from it whether
a record is good. Why one is bad is told when its range is read again as a batch: then bad records are read once more,
with every column as text.

Spark stops at the end of the first value and would not see what stands behind it. So a field of ours is put before the
last brace of the record: where it is not found in the value, the record does not end with it.

Names match exactly, in upper and lower case; of a name that comes twice the last one counts. Numbers in quotes are
texts, except for DECIMAL and BIGINT UNSIGNED, which do not fit into every program's numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.formats.json_schemas import is_framed
from penstock.formats.quick_records import QUICK, QuicklyRead, with_quick
from penstock.formats.texts import NESTED, RANGES, in_range, misfit, value_of
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import ColumnDefinition, SourceDefinition
    from penstock.types import SqlType

_CORRUPT: Final = "__corrupt"
_END: Final = "__end"
_OPTIONS: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "allowSingleQuotes": "false"}
_MARK: Final = f',"{_END}":true}}'
_BLANKS: Final = " \t\r\n"
_UNKNOWN: Final = "\N{REPLACEMENT CHARACTER}"
_MARKED: Final = "__marked"
_READ: Final = "__read"
_BYTES: Final = "__bytes"
_TEXTS: Final = "__texts"
_GOOD: Final = "__good"
_STEPS: Final = (QUICK, _MARKED, _READ, _BYTES)
_PREFIX: Final = 5  # a zero byte and the schema's number, before records that a schema registry knows


def decode_json(
    frame: DataFrame,
    definition: SourceDefinition,
    wanted: Sequence[ColumnDefinition],
    *,
    family: str = "json",
    inside: str | None = None,
) -> DataFrame:
    """The frame with the wanted columns and `__error`.

    `family` is what the names of the options begin with, `inside` the member that holds the record proper.
    """
    from pyspark.sql import functions as f

    options = definition.options.values
    value = f.col("__value")
    if is_framed(options):
        value = f.expr(f"substring(__value, {_PREFIX + 1})")
    text = value.cast("string")
    empty = f.coalesce(f.btrim(text, f.lit(_BLANKS)), f.lit("")) == ""
    valid = f.is_valid_utf8(text)
    if options.get("json.unstructured") is True:
        columns = {column.name: f.when(valid, text) for column in wanted}
        error = f.when(empty, f.lit("empty record")).when(~valid, f.lit("not valid UTF-8"))
        return frame.withColumns({**columns, "__error": error})
    record = _Record(text, "payload" if options.get("json.include_schema") is True else inside)
    types = {column.name: column.type or STRING for column in wanted}
    missing_is_bad = options.get(f"{family}.fail_on_missing_field") is True
    if not missing_is_bad:
        frame = with_quick(frame, value, types, record.inside)
    quick = QuicklyRead(record.inside) if QUICK in frame.columns else None
    # Each step is a column of its own, so that no expression is written out, planned and worked out twice. The marked
    # text is used twice, which keeps Spark from working it out inside `from_json`, where no code is generated for it.
    marked = _marked(value)
    frame = frame.withColumn(_MARKED, marked if quick is None else f.when(~quick.sure, marked))
    reading = _Reading(record, types)
    frame = reading.made(frame)
    good = reading.whole() | record.is_empty(_READ)
    values = {name: reading.value(name) for name in types}
    if options.get("bad_data") == "null":
        # Of two records in one nothing is taken, and of texts with broken characters only those.
        one = f.col(_READ)[_END]
        values = {name: f.when(one & reading.is_whole(name), value) for name, value in values.items()}
    if quick is not None:
        values = {name: quick.value_or(name, value) for name, value in values.items()}
    frame = frame.withColumns(values)
    for name in reading.can_fail:
        good = good & (reading.is_missing(name) | f.col(_name(name)).isNotNull())
    if missing_is_bad:
        good = good & record.has_all(types)
    good = f.coalesce(good, f.lit(False)) if quick is None else quick.sure | f.coalesce(good, f.lit(False))
    if frame.isStreaming:
        return frame.withColumn("__error", f.when(~good, f.lit("bad record"))).drop(*_STEPS)
    frame = frame.withColumn(_GOOD, good)
    frame = frame.withColumn(
        _TEXTS, f.when(~f.col(_GOOD), record.read(f.col(_MARKED), dict.fromkeys(types, _Way(STRING))))
    )
    errors = [_column_error(name, record.field(_TEXTS, name), type_) for name, type_ in types.items()]
    if missing_is_bad:
        errors += [record.missing(name) for name in types]
    no_object = ~f.ltrim(text, f.lit(_BLANKS)).startswith("{")
    error = (
        f.when(empty, f.lit("empty record"))
        .when(~valid, f.lit("not valid UTF-8"))
        .when(
            f.coalesce(record.whole(_TEXTS), f.lit(False)),
            f.coalesce(*errors, f.lit("a value does not fit its column")),
        )
        .when(no_object, f.lit("not a json object"))
        .otherwise(f.lit("malformed json"))
    )
    return frame.withColumn("__error", f.when(~f.col(_GOOD), error)).drop(*_STEPS, _TEXTS, _GOOD)


class _Record:
    """The record with a field of ours at its end, and where its own fields are in what was read."""

    def __init__(self, text: Column, inside: str | None) -> None:
        self.inside = inside
        self.text = text

    def read(self, marked: Column, fields: Mapping[str, _Way]) -> Column:
        from pyspark.sql import functions as f

        # A record of which no column is wanted is still looked at.
        inner = "".join(f"{_name(name)} {way.read_as}, " for name, way in fields.items())
        if self.inside is not None:
            inner = f"{_name(self.inside)} STRUCT<{inner.removesuffix(', ')}>, "
        return f.from_json(marked, f"{inner}{_END} BOOLEAN, {_CORRUPT} STRING", _OPTIONS)

    def _struct(self, column: str) -> Column:
        from pyspark.sql import functions as f

        return f.col(column) if self.inside is None else f.col(column)[self.inside]

    def field(self, column: str, name: str) -> Column:
        return self._struct(column).getField(name)

    def _keys(self) -> Column:
        from pyspark.sql import functions as f

        text = self.text if self.inside is None else f.get_json_object(self.text, f"$.{self.inside}")
        return f.json_object_keys(text)

    def has_all(self, names: Iterable[str]) -> Column:
        """Whether the record has a field for every name."""
        from pyspark.sql import functions as f

        wanted = f.array(*[f.lit(name) for name in names])
        return f.size(f.array_except(wanted, self._keys())) == 0

    def missing(self, name: str) -> Column:
        from pyspark.sql import functions as f

        return f.when(~f.array_contains(self._keys(), name), f.lit(f'column "{name}" is missing'))

    def whole(self, column: str) -> Column:
        """Whether the text was one JSON object whose fields have the types that were asked for."""
        from pyspark.sql import functions as f

        read = f.col(column)
        return read[_CORRUPT].isNull() & read[_END] & self._struct(column).isNotNull()

    def is_empty(self, column: str) -> Column:
        """Whether the text was an object without fields, which our field behind a comma has made none."""
        from pyspark.sql import functions as f

        if self.inside is not None:
            return f.lit(False)
        marked = f.col(column)[_CORRUPT]
        return marked.isNotNull() & marked.rlike(f"^[{_BLANKS}]*\\{{[{_BLANKS}]*{_MARK}$")


def _marked(value: Column) -> Column:
    """The record with our field before its last brace; one that does not end with a brace stays as it is."""
    from pyspark.sql import functions as f

    text = value.cast("string")
    trimmed = f.rtrim(text, f.lit(_BLANKS))
    return (
        f.when(text.endswith("}"), _with_mark(value))
        .when(trimmed.endswith("}"), _with_mark(trimmed.cast("binary")))
        .otherwise(text)
    )


def _with_mark(value: Column) -> Column:
    from pyspark.sql import functions as f

    # Bytes, not characters, are cut: nobody has to count them.
    return f.concat(f.substring(value, f.lit(1), f.octet_length(value) - 1).cast("string"), f.lit(_MARK))


class _Reading:
    """A record as it was read by `from_json`."""

    def __init__(self, record: _Record, types: Mapping[str, SqlType]) -> None:
        self._record = record
        self._types = types
        self._ways = {name: _Way(type_) for name, type_ in types.items()}
        self.can_fail = tuple(name for name, way in self._ways.items() if way.can_fail)

    def made(self, frame: DataFrame) -> DataFrame:
        """The frame with what was read. The number of bytes is there to have two uses of the text, see above."""
        from pyspark.sql import functions as f

        read = self._record.read(f.col(_MARKED), self._ways)
        return frame.withColumns({_READ: read, _BYTES: f.octet_length(_MARKED)})

    def value(self, name: str) -> Column:
        """A column's value; NULL where what was read is none."""
        return self._ways[name].value(self._record.field(_READ, name), self._record.text)

    def is_missing(self, name: str) -> Column:
        return self._record.field(_READ, name).isNull()

    def whole(self) -> Column:
        """Whether the text was one JSON object whose fields have the types that were asked for."""
        from pyspark.sql import functions as f

        whole = (f.col(_BYTES) > 0) & self._record.whole(_READ)
        for name in self._types:
            whole = whole & self.is_whole(name)
        return whole

    def is_whole(self, name: str) -> Column:
        """Whether the text that was read for a column is what stands in the record.

        Spark puts a character for "unknown" where bytes are none in UTF-8. It may also stand there in its own right, so
        only where it is found are all bytes looked at. Bytes that no wanted column is made of are not, as little as
        what they say.
        """
        from pyspark.sql import functions as f

        valid = f.is_valid_utf8(f.col(_MARKED))
        kind = self._types[name].name
        if kind in NESTED or kind == "VARIANT":
            return valid
        if kind != "STRING":
            return f.lit(True)
        return ~f.coalesce(self._record.field(_READ, name).contains(_UNKNOWN), f.lit(False)) | valid


class _Way:
    """How a column is read by `from_json`, and what is made of it then."""

    def __init__(self, type_: SqlType) -> None:
        self._type = type_
        self.read_as = _read_as(type_)
        self.can_fail = _changes(type_) or type_.name in {"DOUBLE", "FLOAT"}

    def value(self, read: Column, record: Column) -> Column:
        """The column's value; NULL where what was read is none."""
        from pyspark.sql import functions as f

        if self._type.name in {"DOUBLE", "FLOAT"}:
            # What is too large becomes infinite, which is a value only where it is written so.
            return f.when((f.abs(read) != f.lit(float("inf"))) | record.contains("Infinity"), read)
        return _converted(read, self._type) if self.can_fail else read


def _read_as(type_: SqlType) -> str:
    if type_.temporal:
        # Spark reads a number in a TIMESTAMP as seconds, and in a DATE as days.
        return "STRING"
    if type_.name in RANGES:
        return RANGES[type_.name][0]
    inner = [_read_as(element) for element in type_.elements]
    if type_.name == "ARRAY":
        return f"ARRAY<{inner[0]}>"
    if type_.name == "MAP":
        return f"MAP<{type_.elements[0].spark()}, {inner[1]}>"
    if type_.name == "STRUCT":
        parts = [f"{_name(part.name)}: {_read_as(part.type)}" for part in type_.fields]
        return f"STRUCT<{', '.join(parts)}>"
    return type_.spark()


def _converted(read: Column, type_: SqlType) -> Column:
    """What was read, in the column's own type; NULL where any part of it does not fit."""
    from pyspark.sql import functions as f

    if type_.temporal:
        return value_of(read, type_)
    if type_.name in RANGES:
        return in_range(read, type_)
    if not _changes(type_):
        return read
    if type_.name == "STRUCT":
        parts = {part.name: read.getField(part.name) for part in type_.fields}
        made = {part.name: _converted(parts[part.name], part.type) for part in type_.fields}
        fits = f.lit(True)
        for name, part in parts.items():
            fits = fits & (part.isNull() | made[name].isNotNull())
        return f.when(fits & read.isNotNull(), f.struct(*[made[name].alias(name) for name in made]))
    item = type_.elements[-1]
    read = _keys_once(read) if type_.name == "MAP" else read
    if not _changes(item):
        return read
    items = read if type_.name == "ARRAY" else f.map_values(read)
    good = f.forall(items, lambda one: one.isNull() | _converted(one, item).isNotNull())
    if type_.name == "ARRAY":
        return f.when(good, f.transform(read, lambda one: _converted(one, item)))
    return f.when(good, f.transform_values(read, lambda _, one: _converted(one, item)))


def _keys_once(read: Column) -> Column:
    """A map with the last value of each key: `from_json` keeps a name as often as it comes."""
    from pyspark.sql import functions as f

    names = f.array_distinct(f.map_keys(read))
    values = f.transform(
        names, lambda name: f.element_at(f.filter(f.map_entries(read), lambda entry: entry["key"] == name), -1)["value"]
    )
    return f.when(f.size(names) < f.size(read), f.map_from_arrays(names, values)).otherwise(read)


def _changes(type_: SqlType) -> bool:
    """Whether anything in a value of this type is made of what is read first: of another type, or of a map."""
    if type_.name in {"TIMESTAMP", "DATE", "MAP", *RANGES}:
        return True
    return any(map(_changes, type_.elements)) or any(_changes(part.type) for part in type_.fields)


def nested_value(text: Column, type_: SqlType) -> Column:
    """The nested value whose JSON a text is; NULL where it is none of this type."""
    from pyspark.sql import functions as f

    schema = f"v {_read_as(type_)}, {_CORRUPT} STRING"
    read = f.from_json(f.concat(f.lit('{"v":'), text, f.lit("}")), schema, _OPTIONS)
    return f.when(read[_CORRUPT].isNull(), _converted(read["v"], type_))


def _column_error(name: str, text: Column, type_: SqlType) -> Column:
    """Why what stands in the record for a column is not its value; NULL where it is, or nothing is there."""
    from pyspark.sql import functions as f

    if type_.name in NESTED:
        return f.when(text.isNotNull() & nested_value(text, type_).isNull(), misfit(name, text, type_))
    if type_.name == "STRING":
        return f.lit(None).cast("string")
    quoted = f.concat(f.lit(f'column "{name}": "'), text, f.lit(f'" is a text, not {type_}'))
    error = f.when(value_of(text, type_).isNotNull(), quoted).otherwise(misfit(name, text, type_))
    return f.when(text.isNotNull() & f.col(_name(name)).isNull(), error)


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
