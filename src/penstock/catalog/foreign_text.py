"""Strings, regular expressions, hashes and arrays of other systems, written for Spark."""

from __future__ import annotations

import re

from sqlglot import exp

from penstock.catalog.foreign_call import (
    POSTGRES_LIKE,
    Arguments,
    Builder,
    ForeignFunction,
    call,
    constant_number,
    constant_text,
    foreign,
    grouped,
    invalid,
    number,
    renamed,
    required_text,
    text,
)


def _split_literally(value: exp.Expr, delimiter: exp.Expr) -> exp.Expr:
    """SPLIT by a plain text: Spark's takes a regular expression."""
    constant = constant_text(delimiter)
    if constant is None:
        return call("split", value, call("concat", text("\\Q"), delimiter, text("\\E")))
    return call("split", value, text(re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", constant)))


def _split_index(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("get", _split_literally(args[0], args[1]), args[2])


def _string_to_array(args: Arguments, _dialect: str | None) -> exp.Expr:
    return _split_literally(args[0], args[1])


def _split(args: Arguments, dialect: str | None) -> exp.Expr:
    return _split_literally(*args) if dialect == "flink" and len(args) == 2 else call("split", *args)


def _trimmed(name: str) -> Builder:
    """LTRIM(text, characters): Spark alone takes the characters first."""
    return lambda args, _dialect: call(name, *reversed(args))


def _concat(args: Arguments, dialect: str | None) -> exp.Expr:
    """PostgreSQL's family leaves NULLs out, the others make the result NULL."""
    return call("concat_ws", text(""), *args) if dialect in POSTGRES_LIKE else call("concat", *args)


def _extreme(name: str) -> Builder:
    """GREATEST and LEAST: in Flink a NULL among the arguments makes the result NULL."""

    def build(args: Arguments, dialect: str | None) -> exp.Expr:
        if dialect != "flink":
            return call(name, *args)
        missing = exp.or_(*[exp.Is(this=grouped(arg.copy()), expression=exp.null()) for arg in args], copy=False)
        return call("if", missing, exp.null(), call(name, *args))

    return build


def _log(args: Arguments, dialect: str | None) -> exp.Expr:
    """One argument: base 10 in PostgreSQL's family, base e in the others."""
    return call("log10", *args) if len(args) == 1 and dialect in POSTGRES_LIKE else call("log", *args)


def _lower_hex(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("lower", call("hex", *args))


def _from_base64(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("string", call("unbase64", *args))


def _encode(args: Arguments, _dialect: str | None) -> exp.Expr:
    """ENCODE(bytes, 'hex') of PostgreSQL beside ENCODE(text, 'UTF-8') of Spark."""
    form = (constant_text(args[1]) or "").lower()
    if form == "hex":
        return _lower_hex(args[:1], None)
    return call("base64", args[0]) if form == "base64" else call("encode", *args)


def _decode(args: Arguments, _dialect: str | None) -> exp.Expr:
    form = (constant_text(args[1]) or "").lower() if len(args) == 2 else ""
    if form in {"hex", "base64"}:
        return call("unhex" if form == "hex" else "unbase64", args[0])
    return call("decode", *args)


def _sha(bits: int) -> Builder:
    return lambda args, _dialect: call("sha2", args[0], number(bits))


def _rand_integer(args: Arguments, _dialect: str | None) -> exp.Expr:
    seed = args[:-1]
    return call("int", call("floor", exp.Mul(this=call("rand", *seed), expression=grouped(args[-1]))))


def _all_characters(pattern: str) -> Builder:
    return lambda args, _dialect: call("coalesce", call("rlike", args[0], text(pattern)), exp.false())


def _is_decimal(args: Arguments, _dialect: str | None) -> exp.Expr:
    tried = exp.TryCast(this=args[0], to=exp.DataType.build("DOUBLE"), safe=True)
    return call("isnotnull", tried)


def _bitwise(node: type[exp.Binary]) -> Builder:
    return lambda args, _dialect: exp.Paren(this=node(this=grouped(args[0]), expression=grouped(args[1])))


def _bit_not(args: Arguments, _dialect: str | None) -> exp.Expr:
    return exp.Paren(this=exp.BitwiseNot(this=grouped(args[0])))


def _pattern_with_flags(function: str, pattern: exp.Expr, flags: exp.Expr | None, allowed: str) -> exp.Expr:
    """The pattern with PostgreSQL's flags in front of it, as Java writes them."""
    if flags is None:
        return pattern
    given = required_text(function, "flags", flags)
    if set(given) - set(allowed):
        raise invalid(
            function, f"the flags can be {', '.join(allowed)} only", flags, "write other flags into the pattern"
        )
    inline = "".join(flag for flag in "ismx" if flag in given)
    if not inline:
        return pattern
    constant = constant_text(pattern)
    if constant is not None:
        return text(f"(?{inline}){constant}")
    return call("concat", text(f"(?{inline})"), pattern)


def _regexp_like(args: Arguments, _dialect: str | None) -> exp.Expr:
    flags = args[2] if len(args) > 2 else None
    return call("rlike", args[0], _pattern_with_flags("regexp_like", args[1], flags, "is"))


def _regexp_extract(args: Arguments, dialect: str | None) -> exp.Expr:
    """Without a group number Flink returns the whole match, Spark the first group."""
    group = [number(0)] if len(args) == 2 and dialect == "flink" else []
    return call("regexp_extract", *args, *group)


def _regexp_replace(args: Arguments, dialect: str | None) -> exp.Expr:
    """PostgreSQL's family replaces the first match unless the flags have `g`; the others replace all."""
    flags = args[3] if len(args) == 4 and constant_text(args[3]) is not None else None
    if flags is None and dialect not in POSTGRES_LIKE:
        return call("regexp_replace", *args)
    if flags is None or "g" not in (constant_text(flags) or ""):
        raise invalid(
            "regexp_replace",
            "replacing the first match only is not offered",
            flags or args[0],
            "add the flag 'g' to replace all",
        )
    pattern = _pattern_with_flags("regexp_replace", args[1], flags, "gis")
    replacement = required_text("regexp_replace", "replacement", args[2])
    return call("regexp_replace", args[0], pattern, text(_java_replacement(replacement)))


def _java_replacement(value: str) -> str:
    r"""`\1` and `\&` of PostgreSQL as `$1` and `$0` of Java, with Java's own signs kept as they are."""
    escaped = value.replace("$", r"\$")
    return re.sub(r"\\([0-9&\\])", lambda found: {"&": "$0", "\\": r"\\"}.get(found[1], f"${found[1]}"), escaped)


def _regexp_match(args: Arguments, _dialect: str | None) -> exp.Expr:
    """The groups of the first match as an array, the whole match where the pattern has none, NULL without a match."""
    pattern = required_text("regexp_match", "pattern", args[1])
    try:
        groups = re.compile(pattern).groups
    except re.error:
        raise invalid("regexp_match", "the pattern is no regular expression", args[1], "check its brackets") from None
    flagged = _pattern_with_flags("regexp_match", args[1], args[2] if len(args) > 2 else None, "is")
    wanted = range(1, groups + 1) if groups else range(1)
    parts = [call("regexp_extract", args[0].copy(), flagged.copy(), number(group)) for group in wanted]
    return call("if", call("rlike", args[0], flagged), call("array", *parts), exp.null())


def _format(args: Arguments, _dialect: str | None) -> exp.Expr:
    template = required_text("format", "template", args[0])
    if re.search(r"%(?![s%])", template):
        raise invalid("format", "only %s and %% can be used", args[0], "use FORMAT_STRING for other forms")
    return call("format_string", *args)


def _array_length(args: Arguments, _dialect: str | None) -> exp.Expr:
    if len(args) > 1 and constant_number(args[1]) != 1:
        raise invalid("array_length", "only the first dimension can be asked for", args[1], "leave the dimension out")
    return call("array_size", args[0])


def _element(args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("get", args[0], number(0))


def _decimal(args: Arguments, _dialect: str | None) -> exp.Expr:
    # Spark's DECIMAL(x) cuts the fraction off; ours keeps cents.
    return exp.Cast(this=args[0], to=exp.DataType.build("DECIMAL(38, 18)"))


def _uuid(_args: Arguments, _dialect: str | None) -> exp.Expr:
    return call("uuid")


def _generate_series(args: Arguments, _dialect: str | None) -> exp.Expr:
    """Spark's sequence counts down where the end comes before the start, and this makes no rows then."""
    first, last = args[:2]
    series = call("sequence", *args)
    written_out = all(isinstance(end, exp.Literal) and not end.is_string for end in (first, last))
    if len(args) > 2 or (written_out and int(first.name) <= int(last.name)):
        return call("explode", series)
    upwards = exp.LTE(this=first.copy(), expression=last.copy())
    return call("explode", call("if", upwards, series, call("array")))


def _range(args: Arguments, dialect: str | None) -> exp.Expr:
    """RANGE(end) and RANGE(start, end): whole numbers up to the end, which is not among them."""
    start, end = args if len(args) == 2 else (exp.Literal.number(0), args[0])
    kind = exp.DataType.build("BIGINT")
    last = exp.Sub(this=exp.Cast(this=end, to=kind.copy()), expression=exp.Literal.number(1))
    return _generate_series([exp.Cast(this=start, to=kind), last], dialect)


TEXT: dict[str, ForeignFunction] = {
    **foreign("3 STRING split_index", _split_index, "Flink", "the n-th part, counted from 0; NULL where there is none"),
    **foreign("2..3 ARRAY<STRING> split", _split, "Flink", "by a pattern; by plain text for dialect 'flink'"),
    **foreign("2 ARRAY<STRING> string_to_array", _string_to_array, "PostgreSQL", "split by plain text"),
    **foreign("2 ARRAY<STRING> regexp_split_to_array", renamed("split"), "PostgreSQL", "split"),
    **foreign("2..3 STRING array_to_string", renamed("array_join"), "PostgreSQL, Arroyo", "array_join"),
    **foreign(
        "1..2 STRING ltrim",
        _trimmed("ltrim"),
        "all",
        "the second argument is the characters, as everywhere but in Spark",
    ),
    **foreign(
        "1..2 STRING rtrim",
        _trimmed("rtrim"),
        "all",
        "the second argument is the characters, as everywhere but in Spark",
    ),
    **foreign(
        "1..2 STRING trim", _trimmed("trim"), "all", "the second argument is the characters, as everywhere but in Spark"
    ),
    **foreign("0.. concat concat", _concat, "all", "leaves NULLs out for dialects 'risingwave' and 'arroyo'"),
    **foreign("2.. common greatest", _extreme("greatest"), "all", "NULL beside a NULL for dialect 'flink'"),
    **foreign("2.. common least", _extreme("least"), "all", "NULL beside a NULL for dialect 'flink'"),
    **foreign("1..2 DOUBLE log", _log, "all", "LOG(x) is base e; base 10 for dialects 'risingwave' and 'arroyo'"),
    **foreign("2 INT strpos", renamed("instr"), "PostgreSQL, Arroyo", "instr"),
    **foreign("2 BOOLEAN starts_with", renamed("startswith"), "PostgreSQL, Arroyo", "startswith"),
    **foreign("2 BOOLEAN ends_with", renamed("endswith"), "Arroyo", "endswith"),
    **foreign("1 STRING to_hex", _lower_hex, "PostgreSQL, Arroyo", "lower(hex(x))"),
    **foreign("1 STRING to_base64", renamed("base64"), "Flink", "base64"),
    **foreign("1 STRING from_base64", _from_base64, "Flink", "unbase64, as text"),
    **foreign("2 unknown encode", _encode, "PostgreSQL", "hex and base64 beside Spark's character sets"),
    **foreign("2.. decoded decode", _decode, "PostgreSQL", "hex and base64 beside Spark's character sets"),
    **foreign("2 STRING convert_from", renamed("decode"), "PostgreSQL", "decode"),
    **foreign("2 BINARY convert_to", renamed("encode"), "PostgreSQL", "encode"),
    **foreign("1 STRING sha224", _sha(224), "Flink", "sha2(x, 224)"),
    **foreign("1 STRING sha256", _sha(256), "Flink", "sha2(x, 256)"),
    **foreign("1 STRING sha384", _sha(384), "Flink", "sha2(x, 384)"),
    **foreign("1 STRING sha512", _sha(512), "Flink", "sha2(x, 512)"),
    **foreign("1..2 INT rand_integer~", _rand_integer, "Flink", "int(floor(rand() * n))"),
    **foreign("0 STRING gen_random_uuid~", _uuid, "PostgreSQL", "uuid"),
    **foreign("1 BOOLEAN is_alpha", _all_characters(r"^\p{L}+$"), "Flink", "letters only"),
    **foreign("1 BOOLEAN is_digit", _all_characters(r"^\p{Nd}+$"), "Flink", "digits only"),
    **foreign("1 BOOLEAN is_decimal", _is_decimal, "Flink", "can be read as a number"),
    **foreign("2 common bitand", _bitwise(exp.BitwiseAnd), "Flink", "a & b"),
    **foreign("2 common bitor", _bitwise(exp.BitwiseOr), "Flink", "a | b"),
    **foreign("2 common bitxor", _bitwise(exp.BitwiseXor), "Flink", "a ^ b"),
    **foreign("1 arg0 bitnot", _bit_not, "Flink", "~a"),
    **foreign("2..3 BOOLEAN regexp_like", _regexp_like, "Arroyo", "rlike; flags i and s"),
    **foreign(
        "2..3 STRING regexp_extract", _regexp_extract, "Flink", "the first group; the whole match for dialect 'flink'"
    ),
    **foreign(
        "3..4 STRING regexp_replace", _regexp_replace, "PostgreSQL", "all matches; PostgreSQL's flag g is understood"
    ),
    **foreign("2..3 ARRAY<STRING> regexp_match", _regexp_match, "PostgreSQL, Arroyo", "the groups of the first match"),
    **foreign("1.. STRING format", _format, "PostgreSQL", "format_string, with %s only"),
    **foreign("1..2 INT array_length", _array_length, "PostgreSQL, Arroyo", "array_size"),
    **foreign("2.. arg0 array_cat array_concat", renamed("concat"), "PostgreSQL, Flink, Arroyo", "concat"),
    **foreign("1 reverse array_reverse", renamed("reverse"), "Flink, Arroyo", "reverse"),
    **foreign("2 BOOLEAN array_has", renamed("array_contains"), "Arroyo", "array_contains"),
    **foreign("2 element array_element", renamed("try_element_at"), "Arroyo", "try_element_at"),
    **foreign("0.. array_of_all make_array", renamed("array"), "Arroyo", "array"),
    **foreign("1 element element", _element, "Flink", "the only element of an array"),
    **foreign("1 DECIMAL decimal", _decimal, "Spark", "CAST(x AS DECIMAL(38, 18)), as everywhere here"),
    **foreign("1 element unnest", renamed("explode"), "PostgreSQL, Arroyo", "explode", kind="generator"),
    **foreign(
        "2..3 unknown generate_series", _generate_series, "PostgreSQL", "explode(sequence(a, b))", kind="generator"
    ),
    **foreign("1..2 unknown range", _range, "Spark", "explode(sequence(a, b - 1))", kind="generator"),
}
