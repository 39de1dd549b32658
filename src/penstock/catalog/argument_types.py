"""What functions cannot take, as one compact table: types of arguments that Spark's analyzer refuses in every call.

Spark casts much by itself: a text becomes a number or a time where one is asked for, almost anything becomes a text.
What it casts is fine here, too. A line is `takes places names…`: at these places (the first is 0) the functions take
what the word says, see `_REFUSED`. Functions whose arguments depend on each other are not here. A test holds every
entry against Spark.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from penstock.types import SqlType

_NESTED: Final = frozenset({"ARRAY", "MAP", "STRUCT"})
_TIMES: Final = frozenset({"DATE", "TIMESTAMP"})
_NUMBERS: Final = frozenset({"WHOLE", "FRACTION"})

# The word of the table -> the kinds of types that are refused.
_REFUSED: Final = {
    "numbers": _NESTED | _TIMES | {"BOOLEAN", "BINARY", "INTERVAL"},
    "amounts": _NESTED | _TIMES | {"BOOLEAN", "BINARY"},  # numbers and intervals
    "sums": _NESTED | {"BOOLEAN", "BINARY", "DATE"},
    "texts": _NESTED,
    "times": _NESTED | _NUMBERS | {"BOOLEAN", "BINARY", "INTERVAL"},
    "truths": _NESTED | _NUMBERS | _TIMES | {"BINARY", "INTERVAL"},
    "json": _NESTED | _NUMBERS | _TIMES | {"BOOLEAN", "BINARY", "INTERVAL"},
    "arrays": _NUMBERS | _TIMES | {"BOOLEAN", "STRING", "BINARY", "INTERVAL", "MAP", "STRUCT"},
    "maps": _NUMBERS | _TIMES | {"BOOLEAN", "STRING", "BINARY", "INTERVAL", "ARRAY", "STRUCT"},
    "collections": _NUMBERS | _TIMES | {"BOOLEAN", "STRING", "BINARY", "INTERVAL", "STRUCT"},
    "ordered": frozenset({"MAP"}),
}
# What is said of them: a function takes …
_WORDS: Final = {
    "sums": "numbers",
    "amounts": "numbers",
    "truths": "conditions",
    "json": "texts",
    "collections": "arrays and maps",
    "ordered": "values with an order",
}

_TABLE: Final = """
numbers  0    acos acosh asin asinh atan atanh bround cbrt ceil ceiling cos cosh cot csc degrees exp expm1 factorial
numbers  0    floor isnan kurtosis ln log10 log1p log2 radians rint round sec sin sinh skewness sqrt std stddev
numbers  0    stddev_pop stddev_samp tan tanh var_pop var_samp variance
numbers  0,1  atan2 corr covar_pop covar_samp hypot pmod pow power
numbers  1    left lpad repeat right rpad substr substring
amounts  0    abs median negative percentile positive sign signum
sums     0    avg mean sum try_avg try_sum
texts    0    ascii bit_length btrim char_length character_length initcap lcase left length lower lpad ltrim
texts    0    octet_length repeat right rpad rtrim substr substring trim ucase upper
texts    0,1  contains endswith ilike instr like regexp_count regexp_extract regexp_like regexp_substr rlike split
texts    0,1  split_part startswith
texts    0,1,2  regexp_replace replace translate
times    0    add_months date_format day dayofmonth dayofweek dayofyear hour last_day minute month next_day quarter
times    0    second weekday weekofyear year
truths   0    bool_and bool_or count_if every
json     0    get_json_object json_array_length json_object_keys parse_json
arrays   0    array_distinct array_max array_min array_size inline inline_outer sort_array
maps     0    map_entries map_keys map_values
collections  0  cardinality explode explode_outer posexplode posexplode_outer size
ordered  0    max min
"""

_KINDS: Final = {
    "TINYINT": "WHOLE",
    "SMALLINT": "WHOLE",
    "INT": "WHOLE",
    "BIGINT": "WHOLE",
    "UTINYINT": "WHOLE",
    "USMALLINT": "WHOLE",
    "UINT": "WHOLE",
    "UBIGINT": "WHOLE",
    "FLOAT": "FRACTION",
    "DOUBLE": "FRACTION",
    "DECIMAL": "FRACTION",
}


def kind_of(sql_type: SqlType | None) -> str | None:
    """The kind of a type by which Spark decides what fits: all whole numbers are one; None where nothing is known.

    >>> kind_of(SqlType("SMALLINT")), kind_of(SqlType("DATE")), kind_of(SqlType("VARIANT")), kind_of(None)
    ('WHOLE', 'DATE', None, None)
    """
    if sql_type is None or sql_type.name == "VARIANT":
        return None
    return _KINDS.get(sql_type.name, sql_type.name)


def refused_argument(function: str, place: int, given: SqlType | None) -> str | None:
    """What a function takes at a place, in words, where that is not what is given.

    >>> refused_argument("sum", 0, SqlType("BOOLEAN")), refused_argument("sum", 0, SqlType("STRING"))
    ('numbers', None)
    """
    takes = _read_table().get((function, place))
    if takes is None or kind_of(given) not in _REFUSED[takes]:
        return None
    return _WORDS.get(takes, takes)


def checked_functions() -> tuple[tuple[str, int], ...]:
    """Every function that is checked, with the place of the argument."""
    return tuple(_read_table())


@cache
def _read_table() -> dict[tuple[str, int], str]:
    found: dict[tuple[str, int], str] = {}
    for line in filter(None, _TABLE.splitlines()):
        takes, places, *names = line.split()
        found.update({(name, int(place)): takes for name in names for place in places.split(",")})
    return found
