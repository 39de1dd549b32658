"""Type names: every spelling of the dialects, mapped to the types of `penstock.types`, and types as tree nodes."""

from __future__ import annotations

import difflib
from typing import Final

from sqlglot import exp

from penstock.types import BINARY, DECIMAL, STRING, TIMESTAMP, Field, SqlType

# Spelling -> type. Lengths of strings and precisions of times are read and dropped: both are kept in full.
NAMES: Final[dict[str, SqlType]] = {
    **dict.fromkeys(("STRING", "TEXT", "VARCHAR", "CHAR", "CHARACTER", "CHARACTER VARYING", "BPCHAR", "UTF8"), STRING),
    **dict.fromkeys(("JSON", "JSONB", "UUID"), STRING),
    **dict.fromkeys(("BYTES", "BYTEA", "BINARY", "VARBINARY", "BLOB"), BINARY),
    **dict.fromkeys(("BOOLEAN", "BOOL"), SqlType("BOOLEAN")),
    **dict.fromkeys(("TINYINT", "BYTE", "INT1"), SqlType("TINYINT")),
    **dict.fromkeys(("SMALLINT", "SHORT", "INT2", "INT16"), SqlType("SMALLINT")),
    **dict.fromkeys(("INT", "INTEGER", "INT4", "INT32"), SqlType("INT")),
    **dict.fromkeys(("BIGINT", "LONG", "INT8", "INT64"), SqlType("BIGINT")),
    **dict.fromkeys(("UINT", "UINT32"), SqlType("UINT")),
    **dict.fromkeys(("UBIGINT", "UINT64"), SqlType("UBIGINT")),
    **dict.fromkeys(("FLOAT", "REAL", "FLOAT4"), SqlType("FLOAT")),
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "FLOAT8", "FLOAT64"), SqlType("DOUBLE")),
    **dict.fromkeys(("DECIMAL", "NUMERIC", "DEC"), DECIMAL),
    "DATE": SqlType("DATE"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "TIMESTAMP_TZ"), TIMESTAMP),
    **dict.fromkeys(("TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME"), TIMESTAMP),
    "VARIANT": SqlType("VARIANT"),
    "INTERVAL": SqlType("INTERVAL"),
}

NESTED: Final = ("ARRAY", "MAP", "STRUCT", "ROW")

UNSIGNED: Final = {"TINYINT": "UTINYINT", "SMALLINT": "USMALLINT", "INT": "UINT", "BIGINT": "UBIGINT"}

# How many numbers may stand in brackets behind a name.
PARAMETERS: Final = {
    **dict.fromkeys(("VARCHAR", "CHAR", "CHARACTER", "CHARACTER VARYING", "BPCHAR", "STRING"), 1),
    **dict.fromkeys(("BINARY", "VARBINARY", "BYTES"), 1),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT"), 1),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ", "DATETIME"), 1),
    "FLOAT": 1,
    **dict.fromkeys(("DECIMAL", "NUMERIC", "DEC"), 2),
}

MAX_PRECISION: Final = 38

_DTYPES: Final = {
    "STRING": exp.DType.TEXT,
    "BOOLEAN": exp.DType.BOOLEAN,
    "TINYINT": exp.DType.TINYINT,
    "SMALLINT": exp.DType.SMALLINT,
    "INT": exp.DType.INT,
    "BIGINT": exp.DType.BIGINT,
    "UTINYINT": exp.DType.UTINYINT,
    "USMALLINT": exp.DType.USMALLINT,
    "UINT": exp.DType.UINT,
    "UBIGINT": exp.DType.UBIGINT,
    "FLOAT": exp.DType.FLOAT,
    "DOUBLE": exp.DType.DOUBLE,
    "DECIMAL": exp.DType.DECIMAL,
    "BINARY": exp.DType.BINARY,
    "DATE": exp.DType.DATE,
    "TIMESTAMP": exp.DType.TIMESTAMP,
    "VARIANT": exp.DType.VARIANT,
    "INTERVAL": exp.DType.INTERVAL,
}
_NAMES_OF: Final = {dtype: name for name, dtype in _DTYPES.items()}


def nearest_type(word: str) -> str | None:
    """The type name most like a misspelt word.

    >>> nearest_type("VARCHR")
    'VARCHAR'
    """
    found = difflib.get_close_matches(word.upper()[:40], [*NAMES, *NESTED], n=1, cutoff=0.6)
    return found[0] if found else None


def data_type(sql_type: SqlType) -> exp.DataType:
    """A type as a node of the tree, the same node for every spelling of the type."""
    if sql_type.name == "STRUCT":
        fields = [
            exp.ColumnDef(this=exp.Identifier(this=field.name, quoted=False), kind=data_type(field.type))
            for field in sql_type.fields
        ]
        return exp.DataType(this=exp.DType.STRUCT, expressions=fields, nested=True)
    if sql_type.name in {"ARRAY", "MAP"}:
        inner = [data_type(element) for element in sql_type.elements]
        return exp.DataType(this=exp.DType[sql_type.name], expressions=inner, nested=True)
    parameters = [exp.DataTypeParam(this=exp.Literal.number(number)) for number in sql_type.parameters]
    return exp.DataType(this=_DTYPES[sql_type.name], expressions=parameters or None, nested=False)


def sql_type(node: exp.DataType) -> SqlType:
    """The type behind a node made by `data_type`.

    >>> sql_type(data_type(SqlType("DECIMAL", (10, 2))))
    SqlType(name='DECIMAL', parameters=(10, 2), elements=(), fields=())
    """
    inner = node.expressions
    if node.this is exp.DType.STRUCT:
        return SqlType("STRUCT", fields=tuple(Field(part.name, sql_type(part.args["kind"])) for part in inner))
    if node.this in {exp.DType.ARRAY, exp.DType.MAP}:
        return SqlType(node.this.name, elements=tuple(sql_type(part) for part in inner))
    return SqlType(_NAMES_OF[node.this], tuple(int(part.this.name) for part in inner))
