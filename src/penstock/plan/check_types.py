"""Expressions over types that can never fit, told where they stand instead of when their job starts.

What is refused here is what Spark's analyzer surely refuses; a random test holds the two against each other. A type
that is not known fits everywhere, and whatever Spark casts by itself does, too: `text + 1` is fine for texts that are
numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.catalog.argument_types import kind_of, refused_argument
from penstock.catalog.functions import is_sparks
from penstock.errors import ResolutionError
from penstock.plan.trees import keep_place, type_of, typed
from penstock.sql.spans import span_of
from penstock.types import BIGINT, DOUBLE, STRING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from penstock.types import SqlType

_COMPARED: Final = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_SIGNS: Final[dict[type[exp.Expr], str]] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%"}
_TEXTS: Final[dict[type[exp.Expr], str]] = {exp.Like: "LIKE", exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE"}

# Names of other systems for a function of Spark's that takes the same.
_ALIKE: Final = {"unnest": "explode"}
_SUMS: Final = frozenset({"sum", "avg", "mean"})

_NUMBERS: Final = frozenset({"WHOLE", "FRACTION"})
_TIMES: Final = frozenset({"DATE", "TIMESTAMP"})
_NESTED: Final = frozenset({"ARRAY", "MAP", "STRUCT"})
_NEVER_COMPUTED: Final = _NESTED | {"BOOLEAN", "BINARY"}
# A text beside one of these is read as one.
_LIKE_TEXT: Final = _NUMBERS | _TIMES | {"BOOLEAN", "BINARY"}

_NEVER_TRUE: Final = _NUMBERS | _TIMES | _NESTED | {"BINARY", "INTERVAL"}  # a text beside a condition is read as one

_MOMENT: Final = "write a time as TIMESTAMP '2026-01-31 12:00:00', a number of milliseconds as timestamp_millis(…)"
_SHIFT: Final = "a time is moved by an interval: ts + INTERVAL '5' SECOND"
_SCALE: Final = "an interval is divided by a number: INTERVAL '1' HOUR / 4"
_JOINED: Final = "|| joins texts; CAST them to compute with them"
_CAST: Final = "CAST one of them"
SPLIT_HINT: Final = "SPLIT(text, ',') makes an array of a text"
_TRUTH: Final = "a condition is TRUE or FALSE: compare the value with something"


def check_types(bound: exp.Expr, written: exp.Expr) -> None:
    """Raise TYPE_MISMATCH at an expression whose parts can never fit; the parts themselves are checked already."""
    for left, right in _compared(bound):
        if not _comparable(kind_of(left), kind_of(right)):
            hint = _MOMENT if _moment_and_number(left, right) else _CAST
            raise _mismatch(f"{left} and {right} cannot be compared", hint, written)
    sign = _SIGNS.get(type(bound))
    if sign is not None:
        _check_computed(sign, type_of(bound.this), type_of(bound.expression), written)
    elif isinstance(bound, exp.Neg) and kind_of(type_of(bound.this)) in _NEVER_COMPUTED | _TIMES:
        raise _mismatch(f"- takes numbers, not {type_of(bound.this)}", "CAST it", written)
    elif isinstance(bound, exp.And | exp.Or | exp.Not):
        _check_parts(bound, bound.key.upper(), "conditions", _NEVER_TRUE, _TRUTH)
    elif isinstance(bound, exp.Case) and bound.this is None:
        for branch in bound.args["ifs"]:
            check_condition(branch.this, "CASE WHEN")
    elif type(bound) in _TEXTS:
        _check_parts(bound, _TEXTS[type(bound)], "texts", _NESTED, "take a part of it")


def _check_parts(bound: exp.Expr, word: str, takes: str, refused: frozenset[str], hint: str) -> None:
    for part in (bound.this, bound.args.get("expression")):
        if part is not None and kind_of(type_of(part)) in refused:
            raise _mismatch(f"{word} takes {takes}, not {type_of(part)}", hint, part)


def text_as_number(bound: exp.Expr) -> str | None:
    """What to tell of a computation that reads texts as numbers, as Spark does by itself; None where it does not."""
    if type(bound) in _SIGNS:
        what, parts = _SIGNS[type(bound)], [bound.this, bound.expression]
    elif isinstance(bound, exp.Anonymous) and bound.name.lower() in _SUMS:
        what, parts = bound.name.upper(), bound.expressions
    else:
        return None
    texts = [part for part in parts if type_of(part) == STRING and not isinstance(part, exp.Literal)]
    if not texts or any(_number_type(part) is None for part in parts if type_of(part) != STRING):
        return None
    return f"{what} reads texts as numbers, and fails at one that is none; TRY_CAST(… AS DOUBLE) gives NULL for it"


def with_numbers(bound: exp.Expr) -> SqlType | None:
    """Puts the cast that Spark adds by itself into a computation with a text for a number; its type, which is known
    then, or None where there is nothing to add."""
    if _sums_texts(bound):
        bound.set("expressions", [_cast(bound.expressions[0], DOUBLE)])
        return DOUBLE
    if isinstance(bound, exp.Neg) and type_of(bound.this) == STRING and not isinstance(bound.this, exp.Literal):
        bound.set("this", _cast(bound.this, DOUBLE))
        return DOUBLE
    if type(bound) not in _SIGNS:
        return None
    parts = {name: bound.args[name] for name in ("this", "expression")}
    numbers = [_number_type(part) for part in parts.values() if type_of(part) != STRING]
    if len(numbers) != 1 or numbers[0] is None:
        return None
    # an unsigned BIGINT is one of Spark's decimals
    target = BIGINT if numbers[0].name != "UBIGINT" and kind_of(numbers[0]) == "WHOLE" else DOUBLE
    for name, part in parts.items():
        if type_of(part) == STRING and not isinstance(part, exp.Literal):
            bound.set(name, _cast(part, target))
            return DOUBLE if isinstance(bound, exp.Div) else target
    return None


def _number_type(part: exp.Expr) -> SqlType | None:
    """The type of a number; 1.5 is one of Spark's decimals, and beside a text a DOUBLE."""
    if isinstance(part, exp.Literal) and not part.is_string:
        return type_of(part) or DOUBLE
    return type_of(part) if kind_of(type_of(part)) in _NUMBERS else None


def _sums_texts(bound: exp.Expr) -> bool:
    if not isinstance(bound, exp.Anonymous) or bound.name.lower() not in _SUMS or len(bound.expressions) != 1:
        return False
    value = bound.expressions[0]
    return type_of(value) == STRING and not isinstance(value, exp.Literal | exp.Distinct)


def _cast(part: exp.Expr, target: SqlType) -> exp.Expr:
    cast = exp.Cast(this=part, to=exp.DataType.build(target.spark(), dialect="spark"))
    return typed(keep_place(cast, part), target)


def check_condition(bound: exp.Expr, clause: str) -> None:
    """Raise TYPE_MISMATCH for a condition that is neither true nor false."""
    if kind_of(type_of(bound)) not in (None, "BOOLEAN"):
        raise _mismatch(f"{clause} takes a condition, not {type_of(bound)}", _TRUTH, bound)


def check_arguments(name: str, bound: Sequence[exp.Expr], written: Sequence[exp.Expr]) -> None:
    """Raise TYPE_MISMATCH at an argument that a function of Spark's can never take."""
    function = _ALIKE.get(name.lower(), name.lower())
    for place, argument in enumerate(bound if is_sparks(function) else ()):
        takes = refused_argument(function, place, type_of(argument))
        if takes is not None:
            said = f"function {name} takes {takes}, not {type_of(argument)}"
            raise _mismatch(said, _hint(function, argument), written[place])


def _hint(function: str, argument: exp.Expr) -> str:
    if "explode" in function and type_of(argument) == STRING:
        return SPLIT_HINT
    return "CAST it, or give it a part of the value"


def _mismatch(message: str, hint: str, node: exp.Expr) -> ResolutionError:
    return ResolutionError("TYPE_MISMATCH", message, hint=hint, span=span_of(node))


def _compared(node: exp.Expr) -> Iterator[tuple[SqlType | None, SqlType | None]]:
    """The types of values that are compared with each other."""
    subject = node.args.get("this")
    if not isinstance(subject, exp.Expr):
        return
    others: list[exp.Expr] = []
    if isinstance(node, _COMPARED):
        others = [node.expression]
    elif isinstance(node, exp.Between):
        others = [node.args["low"], node.args["high"]]
    elif isinstance(node, exp.Case):
        others = [branch.this for branch in node.args["ifs"]]
    elif isinstance(node, exp.In) and node.args.get("query") is None:
        others = list(node.expressions)
    kinds = {kind_of(type_of(other)) for other in others}
    if len(kinds) == 1:  # of several, Spark finds a type for all of them together
        yield from ((type_of(subject), type_of(other)) for other in others)


def _comparable(left: str | None, right: str | None) -> bool:
    if left is None or right is None:
        return True
    if left == right:
        return left != "MAP"
    both = {left, right}
    return both <= _NUMBERS or both <= _TIMES or ("STRING" in both and both - {"STRING"} <= _LIKE_TEXT)


def _moment_and_number(left: SqlType | None, right: SqlType | None) -> bool:
    kinds = {kind_of(left), kind_of(right)}
    return bool(kinds & _TIMES) and bool(kinds & _NUMBERS)


def _check_computed(sign: str, left: SqlType | None, right: SqlType | None, written: exp.Expr) -> None:
    one, two = kind_of(left), kind_of(right)
    never = next((given for given in (left, right) if kind_of(given) in _NEVER_COMPUTED), None)
    if never is not None:
        raise _mismatch(f"{sign} takes numbers, not {never}", "CAST it", written)
    if one is None or two is None or _computable(sign, one, two):
        return
    hint = _JOINED if {one, two} == {"STRING"} else _SHIFT if {one, two} & _TIMES else _CAST
    if sign == "/" and two == "INTERVAL":
        hint = _SCALE
    raise _mismatch(f"{sign} does not take {left} and {right}", hint, written)


def _computable(sign: str, one: str, two: str) -> bool:
    """Whether Spark computes with these kinds, none of which is one that it never computes with."""
    both = {one, two}
    if both <= _NUMBERS:
        return True
    if both == {"STRING"}:
        return False
    if sign in ("+", "-"):
        if both & _TIMES:
            return _movable(sign, one, two)
        return both == {"INTERVAL"} or ("STRING" in both and (sign, one) != ("-", "INTERVAL"))
    if both & _TIMES or (sign == "%" and "INTERVAL" in both):
        return False
    return both != {"INTERVAL"} and (sign, two) != ("/", "INTERVAL")


def _movable(sign: str, one: str, two: str) -> bool:
    """Whether Spark adds or subtracts kinds of which at least one is a time. DATE + 1 is the next day; a text beside -
    is read as a time, or as an interval, and beside + as neither."""
    both = {one, two}
    if "FRACTION" in both or both == {"TIMESTAMP", "WHOLE"}:
        return False
    if sign == "+":
        return "STRING" not in both and not both <= _TIMES
    return one not in ("WHOLE", "INTERVAL")
