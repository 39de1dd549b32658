"""What becomes of an expression where an outer join finds no row: which columns are NULL there, and which values are.

A value that Spark computes for each row of a relation is not there for the rows that an outer join makes up. Where it
would be NULL of NULLs, that is the same; COALESCE(UPPER(b.name), 'none') would not be.
"""

from __future__ import annotations

from typing import Final

from sqlglot import exp

# Operators that are NULL where a part of them is.
_STRICT: Final = (
    exp.Paren, exp.Neg, exp.Not, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.DPipe,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike,
    exp.Cast, exp.TryCast, exp.Dot, exp.Trim, exp.Substring, exp.StrPosition, exp.AtTimeZone,
    exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseNot, exp.BitwiseLeftShift, exp.BitwiseRightShift,
)  # fmt: skip
_STRICT_CALLS: Final = frozenset({
    "abs", "acos", "add_months", "array_contains", "array_distinct", "array_join", "array_max", "array_min",
    "array_position", "array_sort", "ascii", "asin", "atan", "base64", "bin", "bround", "btrim", "cbrt", "ceil",
    "ceiling", "char_length", "character_length", "chr", "concat", "conv", "cos", "cosh", "cot", "crc32", "date_add",
    "date_diff", "date_format", "date_part", "date_sub", "date_trunc", "dateadd", "datediff", "day", "dayname",
    "dayofmonth", "dayofweek", "dayofyear", "degrees", "element_at", "endswith", "exp", "expm1", "extract",
    "factorial", "flatten", "floor", "format_number", "from_json", "from_unixtime", "from_utc_timestamp", "get",
    "get_json_object", "hex", "hour", "initcap", "instr", "json_array_length", "last_day", "lcase", "left", "length",
    "levenshtein", "ln", "locate", "log", "log10", "log1p", "log2", "lower", "lpad", "ltrim", "make_date", "map_keys",
    "map_values", "md5", "minute", "mod", "month", "monthname", "months_between", "next_day", "octet_length",
    "parse_json", "parse_url", "pmod", "position", "pow", "power", "quarter", "radians", "regexp_count",
    "regexp_extract", "regexp_extract_all", "regexp_instr", "regexp_like", "regexp_replace", "regexp_substr",
    "repeat", "replace", "reverse", "right", "rint", "rlike", "round", "rpad", "rtrim", "second", "sequence", "sha",
    "sha1", "sha2", "sign", "signum", "sin", "sinh", "slice", "sort_array", "soundex", "split", "split_part", "sqrt",
    "startswith", "substr", "substring", "substring_index", "tan", "tanh", "timestamp_micros", "timestamp_millis",
    "timestamp_seconds", "timestampadd", "timestampdiff", "to_date", "to_json", "to_timestamp", "to_unix_timestamp",
    "to_utc_timestamp", "translate", "trim", "trunc", "try_add", "try_divide", "try_element_at", "try_multiply",
    "try_subtract", "try_to_timestamp", "ucase", "unbase64", "unhex", "unix_date", "unix_micros", "unix_millis",
    "unix_seconds", "unix_timestamp", "upper", "url_decode", "url_encode", "weekday", "weekofyear", "year",
})  # fmt: skip


def made_up(block: exp.Select) -> frozenset[str]:
    """The relations of a SELECT that have a row of NULLs wherever an outer join finds none."""
    first = block.args.get("from_")
    before = [first.this.alias_or_name] if isinstance(first, exp.From) else []
    found: set[str] = set()
    for join in block.args.get("joins") or []:
        side, alias = join.side.upper(), join.this.alias_or_name
        if side in ("LEFT", "FULL") and join.kind.upper() not in ("SEMI", "ANTI"):
            found.add(alias)
        if side in ("RIGHT", "FULL"):
            found.update(before)
        before.append(alias)
    return frozenset(found)


def left_out(block: exp.Select, alias: str) -> bool:
    """Whether a join may find nothing for a row of a relation, and leave it out."""
    first = block.args.get("from_")
    before = [first.this.alias_or_name] if isinstance(first, exp.From) else []
    for join in block.args.get("joins") or []:
        side, other = join.side.upper(), join.this.alias_or_name
        if (alias in before and side not in ("LEFT", "FULL")) or (alias == other and side not in ("RIGHT", "FULL")):
            return True
        before.append(other)
    return False


def null_of_nulls(tree: exp.Expr) -> bool:
    """Whether an expression is surely NULL where every column in it is.

    >>> from sqlglot import parse_one
    >>> null_of_nulls(parse_one("a + 1")), null_of_nulls(parse_one("a IS NULL"))
    (True, False)
    """
    if isinstance(tree, exp.Column):
        return True
    return is_strict(tree) and any(null_of_nulls(inner) for inner in tree.iter_expressions())


def is_strict(node: exp.Expr) -> bool:
    """Whether an expression is NULL where any part of it is."""
    return isinstance(node, _STRICT) or (isinstance(node, exp.Anonymous) and node.name.lower() in _STRICT_CALLS)
