"""CSV records: one line each, its values in the order of the declared columns.

A value without quotes that is empty is NULL; in quotes it is an empty text. The items of an array are separated by
`csv.array_delimiter` (`;` when not given); other nested values are JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.formats.json_records import nested_value
from penstock.formats.texts import NESTED, first_error, misfit, value_of
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import ColumnDefinition, SourceDefinition
    from penstock.types import SqlType

_CORRUPT: Final = "__corrupt"
_READ: Final = "__read"
_LAST: Final = "__last"


def decode_csv(frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition]) -> DataFrame:
    """The frame with the wanted columns and `__error`."""
    from pyspark.sql import functions as f

    values = definition.options.values
    text = f.regexp_replace(f.col("__value").cast("string"), r"(\r?\n)+\z", "")
    if values.get("csv.comments") is True:
        frame = frame.filter(~f.coalesce(f.ltrim(text).startswith("#"), f.lit(False)))
    physical = [column for column in definition.columns if column.physical]
    # Columns are told apart by their place: their names may be anything.
    places = {column.name: f"c{place}" for place, column in enumerate(physical)}
    schema = ", ".join(f"{place} STRING" for place in (*places.values(), _LAST))
    options = _csv_options(values)
    # One value more than is declared: a quote that is never closed swallows it, and then there is one too few.
    marked = f.concat(text, f.lit(f"{options['sep']}."))
    read = f.from_csv(marked, f"{schema}, {_CORRUPT} STRING", options)
    frame = frame.withColumn(_READ, f.when(~_blank(text), read))

    valid = f.is_valid_utf8(f.col("__value").cast("string"))
    one_line = ~text.contains("\n") | text.contains(str(values.get("csv.quote", '"')))
    read_well = f.col(_READ).isNotNull() & f.col(_READ)[_CORRUPT].isNull()  # nothing was read of an empty record
    sense = f.coalesce(read_well & valid & one_line, f.lit(False))
    texts: dict[str, Column] = {}
    found: dict[str, Column] = {}
    for column in wanted:
        type_ = column.type or STRING
        field = f.col(_READ)[places[column.name]]
        if type_.name not in {"STRING", "BINARY"}:
            field = f.nullif(f.trim(field), f.lit(""))
        texts[column.name] = field
        value = _value(field, type_, str(values.get("csv.array_delimiter") or ";"))
        found[column.name] = f.when(sense, value).cast(type_.spark())
    frame = frame.withColumns(found)
    misfits = {name: text.isNotNull() & f.col(_name(name)).isNull() for name, text in texts.items()}
    if frame.isStreaming:
        # A stream only learns whether a record is bad; why is told when it is read again.
        bad = ~sense
        for fails in misfits.values():
            bad = bad | fails
        return frame.withColumn("__error", f.when(bad, f.lit("bad record"))).drop(_READ)
    errors = [
        f.when(misfits[column.name], misfit(column.name, texts[column.name], column.type or STRING))
        for column in wanted
    ]
    error = (
        f.when(_blank(text), f.lit("empty record"))
        .when(~valid, f.lit("not valid UTF-8"))
        .when(~one_line, f.lit("more than one line"))
        .when(~sense, f.concat(f.lit(f"malformed csv: {len(physical)} values expected"), _quotes(text, values)))
        .otherwise(first_error(errors))
    )
    return frame.withColumn("__error", error).drop(_READ)


def _name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _blank(text: Column) -> Column:
    return text.isNull() | (text == "")


def _quotes(text: Column, values: Mapping[str, object]) -> Column:
    """What else may be wrong with a record that has a quote in it."""
    from pyspark.sql import functions as f

    quoted = text.contains(str(values.get("csv.quote", '"'))) & f.lit(values.get("csv.no_quote") is not True)
    return f.when(quoted, f.lit(", and every quote closed")).otherwise(f.lit(""))


def _csv_options(values: object) -> dict[str, str]:
    assert hasattr(values, "get")
    delimiter, null = str(values.get("csv.delimiter", ",")), values.get("csv.null_literal")
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "sep": "\t" if delimiter == "\\t" else delimiter,
        # No quotes at all is, for Spark, a quote that never comes.
        "quote": "\0" if values.get("csv.no_quote") is True else str(values.get("csv.quote", '"')),
        # A quote inside quotes is written twice, unless an escape is declared.
        "escape": str(values.get("csv.escape") or values.get("csv.quote", '"')),
        "multiLine": "true",
        # Spark puts this in place of an empty value without quotes: it must differ from an empty text.
        "nullValue": "\0" if null is None else str(null),
    }


def _value(text: Column, type_: SqlType, delimiter: str) -> Column:
    from pyspark.sql import functions as f

    if type_.name == "ARRAY":
        item = type_.elements[0]
        parts = f.split(text, f.concat(f.lit("\\Q"), f.lit(delimiter), f.lit("\\E")))
        good = f.forall(parts, lambda part: value_of(part, item).isNotNull())
        return f.when(good, f.transform(parts, lambda part: value_of(part, item)))
    return nested_value(text, type_) if type_.name in NESTED else value_of(text, type_)
