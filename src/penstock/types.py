"""The data types of our SQL, and what each is called in Spark.

One table, used by the parser (which names are types), the planner (which columns can be an event time or a key) and the
text generators. `TIMESTAMP` is an instant kept in microseconds; every spelling with or without a zone means it, because
sessions run in UTC. `DECIMAL` without precision is `DECIMAL(38, 18)`, so that money keeps its cents. Unsigned integers
are kept in the next wider type, so that no value turns negative.
"""

from __future__ import annotations

from typing import Final

from penstock.frozen import frozen

DEFAULT_DECIMAL: Final = (38, 18)


@frozen
class Field:
    """A named field of a STRUCT."""

    name: str
    type: SqlType


@frozen
class SqlType:
    """A data type: a canonical name, its parameters, and the types inside it.

    >>> str(SqlType("DECIMAL", (10, 2)))
    'DECIMAL(10, 2)'
    >>> SqlType("UBIGINT").spark()
    'DECIMAL(20, 0)'
    """

    name: str
    parameters: tuple[int, ...] = ()
    elements: tuple[SqlType, ...] = ()
    fields: tuple[Field, ...] = ()

    def __deepcopy__(self, memo: object) -> SqlType:
        return self  # frozen; trees that carry their types are copied often

    def __str__(self) -> str:
        if self.name == "ARRAY":
            return f"ARRAY<{self.elements[0]}>"
        if self.name == "MAP":
            return f"MAP<{self.elements[0]}, {self.elements[1]}>"
        if self.name == "STRUCT":
            inner = ", ".join(f"{quote_name(field.name)} {field.type}" for field in self.fields)
            return f"STRUCT<{inner}>"
        if self.name in UNSIGNED_SPELLING:
            return UNSIGNED_SPELLING[self.name]
        if self.parameters:
            return f"{self.name}({', '.join(map(str, self.parameters))})"
        return self.name

    def spark(self) -> str:
        """The type in Spark's DDL."""
        if self.name == "ARRAY":
            return f"ARRAY<{self.elements[0].spark()}>"
        if self.name == "MAP":
            return f"MAP<{self.elements[0].spark()}, {self.elements[1].spark()}>"
        if self.name == "STRUCT":
            inner = ", ".join(f"{quote_name(field.name)}: {field.type.spark()}" for field in self.fields)
            return f"STRUCT<{inner}>"
        if self.name == "DECIMAL":
            return f"DECIMAL({self.parameters[0]}, {self.parameters[1]})"
        return SPARK_NAMES[self.name]

    @property
    def integral(self) -> bool:
        return self.name in INTEGRAL

    @property
    def numeric(self) -> bool:
        return self.name in INTEGRAL or self.name in {"FLOAT", "DOUBLE", "DECIMAL"}

    @property
    def temporal(self) -> bool:
        return self.name in {"TIMESTAMP", "DATE"}

    @property
    def has_equality(self) -> bool:
        """Whether two values of it are equal or not; of maps and variants, also inside others, nobody says so."""
        inner = (*self.elements, *(field.type for field in self.fields))
        return self.name not in {"MAP", "VARIANT"} and all(each.has_equality for each in inner)


UNSIGNED_SPELLING: Final = {
    "UTINYINT": "TINYINT UNSIGNED",
    "USMALLINT": "SMALLINT UNSIGNED",
    "UINT": "INT UNSIGNED",
    "UBIGINT": "BIGINT UNSIGNED",
}

INTEGRAL: Final = frozenset({"TINYINT", "SMALLINT", "INT", "BIGINT", *UNSIGNED_SPELLING})

SPARK_NAMES: Final = {
    "STRING": "STRING",
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "UTINYINT": "SMALLINT",
    "USMALLINT": "INT",
    "UINT": "BIGINT",
    "UBIGINT": "DECIMAL(20, 0)",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "BINARY": "BINARY",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP",
    "VARIANT": "VARIANT",
    "INTERVAL": "INTERVAL",
}

STRING: Final = SqlType("STRING")
BOOLEAN: Final = SqlType("BOOLEAN")
INT: Final = SqlType("INT")
BIGINT: Final = SqlType("BIGINT")
DOUBLE: Final = SqlType("DOUBLE")
BINARY: Final = SqlType("BINARY")
DATE: Final = SqlType("DATE")
TIMESTAMP: Final = SqlType("TIMESTAMP")
INTERVAL: Final = SqlType("INTERVAL")
DECIMAL: Final = SqlType("DECIMAL", DEFAULT_DECIMAL)


def quote_name(name: str) -> str:
    """A name as it may stand in generated text: bare where that is safe, else in backquotes.

    >>> quote_name("price"), quote_name("unit price"), quote_name("a`b")
    ('price', '`unit price`', '`a``b`')
    """
    if name.isascii() and name.isidentifier():
        return name
    return "`" + name.replace("`", "``") + "`"
