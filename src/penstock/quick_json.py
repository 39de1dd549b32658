"""JSON records read by DuckDB in Spark's Python processes: several times as fast as Spark's `from_json`, where it may.

DuckDB's parser takes more than Spark's does (a comma before a bracket, infinity by any of its names), takes the first
of two equal names where Spark takes the last, and turns values into other types. So nothing is taken from a record
unless both readers surely agree on it: the record is valid UTF-8 and one JSON object without backslashes, without
doubtful commas and numbers, with no name twice, and each wanted value has the JSON type of its column or is NULL. All
other records are left to `from_json`, which alone says what is bad about them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

QUICK: Final = "__quick"  # the column of what was read
SURE: Final = "__sure"  # its field that says whether anything was

# So few records Spark has read before DuckDB has begun.
FEWEST: Final = 200
# The types of columns that can be read here, and what each is handed over as; times as microseconds.
_HANDED_OVER: Final = {
    "BIGINT": "BIGINT",
    "INT": "INT",
    "SMALLINT": "SMALLINT",
    "BOOLEAN": "BOOLEAN",
    "DOUBLE": "DOUBLE",
    "STRING": "STRING",
    "TIMESTAMP": "BIGINT",
}
_NAME: Final = re.compile(r"[A-Za-z_]\w*", re.ASCII)
# Spark's parser has limits for depth and for the length of numbers. No shorter record reaches them.
_SHORT: Final = 1_000
# Numbers that are none to Spark, or whose sign may get lost.
_NUMBER: Final = r"(?:-0[^.]|[-+]?(?:[iI][nN][fF](?:[iI][nN][iI][tT][yY])?|[nN][aA][nN])\s*[,\]}])"
# Each begins with a plain character, which DuckDB looks for at five times the speed.
_DOUBTS: Final = (rf",\s*(?:[\]}}]|{_NUMBER})", rf":\s*{_NUMBER}", rf"\[\s*{_NUMBER}")
_ISO: Final = r'"(?:19[789]|[2-9]\d\d)\d-\d\d-\d\d[T ](?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?Z?"'
_LATEST_MS: Final = 253_402_300_799_999  # the last moment of the year 9999


def can_read(columns: Mapping[str, str]) -> bool:
    """Whether columns of these types can be read here; they are given by name."""
    return all(kind in _HANDED_OVER and _NAME.fullmatch(name) for name, kind in columns.items())


def handed_over(columns: Mapping[str, str]) -> str:
    """The type of Spark's that holds what was read of a record.

    >>> handed_over({"price": "BIGINT", "at": "TIMESTAMP"})
    'STRUCT<`__sure`: BOOLEAN, `price`: BIGINT, `at`: BIGINT>'
    """
    fields = [(SURE, "BOOLEAN"), *((name, _HANDED_OVER[kind]) for name, kind in columns.items())]
    return f"STRUCT<{', '.join(f'`{name}`: {type_}' for name, type_ in fields)}>"


class QuickJson:
    """Reads records, many at a time. It is sent to workers, so its database is opened where it is used."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = dict(columns)
        self._database: _Database | None = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_database": None}

    def __call__(self, values: pa.Array) -> pa.Array:
        """A struct for each record. Where it is not sure, its other fields mean nothing."""
        import pyarrow as pa

        if len(values) < FEWEST:
            return self._nothing(len(values))
        if self._database is None:
            self._database = _Database(self._columns)
        found = self._database.read(_texts(values))
        return pa.StructArray.from_arrays([column.combine_chunks() for column in found.columns], found.column_names)

    def _nothing(self, count: int) -> pa.Array:
        import pyarrow as pa

        types = {"BIGINT": pa.int64(), "INT": pa.int32(), "SMALLINT": pa.int16(), "BOOLEAN": pa.bool_()}
        types |= {"DOUBLE": pa.float64(), "STRING": pa.string()}
        arrays = [pa.nulls(count, types[_HANDED_OVER[kind]]) for kind in self._columns.values()]
        return pa.StructArray.from_arrays(
            [pa.nulls(count, pa.bool_()).fill_null(False), *arrays], [SURE, *self._columns]
        )


class _Records:
    """The records of the moment, under one name: a query over them is planned once, which takes 4 ms."""

    table: pa.Table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class _Database:
    """The database of a worker, in memory and with nothing in it."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        import duckdb

        self._columns = columns
        self._records = _Records()
        self._usual: list[str] | None = None  # the names in a record, where queries are prepared
        self._connection = duckdb.connect(config={"threads": 1, "autoload_known_extensions": "false"})

    def read(self, texts: pa.Array) -> pa.Table:
        import duckdb
        import pyarrow as pa

        self._records.table = pa.table({"v": texts})
        self._prepare(_names_in(texts))
        try:
            return self._connection.sql("EXECUTE at_once").to_arrow_table()
        except duckdb.Error:
            # DuckDB stops at a text that is no JSON. To look for those first takes longer, so it is not the rule.
            return self._connection.sql("EXECUTE with_care").to_arrow_table()

    def _prepare(self, usual: list[str]) -> None:
        if usual == self._usual:
            return
        if self._usual is None:
            self._connection.register("records", self._records)
        readable = "(SELECT CASE WHEN json_valid(v) THEN v END AS v FROM records)"
        for name, records in (("at_once", "records"), ("with_care", readable)):
            if self._usual is not None:
                self._connection.execute(f"DEALLOCATE {name}")
            self._connection.execute(f"PREPARE {name} AS {_query(self._columns, usual, records)}")
        self._usual = usual


def _texts(values: pa.Array) -> pa.Array:
    """Records as texts; those that are not valid UTF-8 are NULL."""
    import pyarrow as pa

    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_text(value) for value in values.to_pylist()], pa.string())


def _text(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _names_in(texts: pa.Array) -> list[str]:
    """The names in one of the records, which most others will have too."""
    text = texts[0].as_py()
    if text is None or "\\" in text:  # an escape may stand for half a character, which no query can hold
        return []
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return list(found) if isinstance(found, dict) else []


def _query(columns: Mapping[str, str], usual: list[str], records: str) -> str:
    """What is sure, and the columns."""
    values = {name: f"l[{place}]" for place, name in enumerate(columns, 1)}
    made = {name: _value(values[name], kind) for name, kind in columns.items()}
    fitting = [_fits(values[name], made[name], kind) for name, kind in columns.items()]
    shown = [f"coalesce({' AND '.join([*_one_plain_object(usual), *fitting])}, false) AS {SURE}"]
    shown += [f'{value} AS "{name}"' for name, value in made.items()]
    paths = ", ".join(f"'/{name}'" for name in columns)
    taken_apart = f"json_extract(v, [{paths}])::VARCHAR[] AS l, json_keys(v) AS k"
    return f"SELECT {', '.join(shown)} FROM (SELECT v, {taken_apart} FROM {records})"


def _one_plain_object(usual: list[str]) -> Iterator[str]:
    """What makes a record one that both parsers take apart in the same way."""
    yield "starts_with(v, '{')"
    yield r"NOT contains(v, '\')"
    for doubt in _DOUBTS:
        yield f"NOT regexp_matches(v, '{doubt}')"
    long_number = f"contains(translate(v, '123456789.eE+-', '{'0' * 14}'), '{'0' * (_SHORT - 1)}')"
    deep = f"strlen(v) - strlen(translate(v, '[{{', '')) >= {_SHORT}"
    yield f"CASE WHEN strlen(v) < {_SHORT} THEN true ELSE NOT ({long_number} OR {deep}) END"
    names = ", ".join("'" + name.replace("'", "''") + "'" for name in usual)
    yield f"CASE WHEN k = [{names}]::VARCHAR[] THEN true ELSE len(list_distinct(k)) = len(k) END"


def _value(text: str, kind: str) -> str:
    """The value that the JSON text of a member stands for, if it fits."""
    if kind == "STRING":
        return f"CASE WHEN starts_with({text}, '\"') THEN substr({text}, 2, length({text}) - 2) END"
    if kind == "TIMESTAMP":
        iso = f"epoch_us(TRY_CAST(trim({text}, '\"Z') AS TIMESTAMP))"
        number = f"TRY_CAST({text} AS BIGINT)"
        known = f"{number} BETWEEN -{_LATEST_MS} AND {_LATEST_MS}"
        return f"CASE WHEN starts_with({text}, '\"') THEN {iso} WHEN {known} THEN {number} * 1000 END"
    return f"TRY_CAST({text} AS {_HANDED_OVER[kind]})"


def _fits(text: str, value: str, kind: str) -> str:
    """Whether a member is not there, or NULL, or of the JSON type and within the range of its column."""
    if kind == "STRING":
        fits = f"starts_with({text}, '\"')"
    elif kind == "BOOLEAN":
        fits = f"{text} IN ('true', 'false')"
    elif kind == "DOUBLE":
        fits = f"isfinite({value})"
    elif kind == "TIMESTAMP":
        whole = f"CAST(TRY_CAST({text} AS BIGINT) AS VARCHAR) = {text}"
        iso = f"regexp_full_match({text}, '{_ISO}')"
        fits = f"{value} IS NOT NULL AND CASE WHEN starts_with({text}, '\"') THEN {iso} ELSE {whole} END"
    else:
        fits = f"CAST({value} AS VARCHAR) = {text}"  # neither 1.5 nor 1e3 nor a text
    return f"({text} IS NULL OR {text} = 'null' OR coalesce({fits}, false))"
