"""Under which conditions the parts of an expression are computed.

    CASE WHEN kind = 1 AND b.w IS NOT NULL THEN CAST(text AS INT) + b.w END

casts no text but that of rows of one kind. Spark, which computes parts of expressions below the cut for each row that
comes, must not fail for a row that the query keeps away from them.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from sqlglot import exp

from penstock.frozen import frozen
from penstock.plan.null_rows import is_strict, null_of_nulls
from penstock.plan.trees import call, type_of, typed
from penstock.types import BOOLEAN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# What has a value for each row, whatever the row holds.
_NEVER_FAILS: Final = (
    exp.Column, exp.Identifier, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Not, exp.And, exp.Or, exp.Is,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In, exp.Like,
    exp.ILike, exp.DPipe, exp.Case, exp.If, exp.Coalesce, exp.Nullif, exp.Trim, exp.Substring, exp.StrPosition,
    exp.Dot, exp.TryCast, exp.DataType, exp.Struct, exp.PropertyEQ, exp.Array, exp.Tuple,
)  # fmt: skip
_SAFE_CALLS: Final = frozenset({
    "array_contains", "array_distinct", "array_join", "ascii", "base64", "btrim", "char_length", "character_length",
    "coalesce", "concat", "concat_ws", "crc32", "date_format", "date_trunc", "endswith", "get_json_object", "greatest",
    "hash", "hex", "if", "ifnull", "initcap", "instr", "isnotnull", "isnull", "lcase", "least", "left", "length",
    "levenshtein", "lower", "lpad", "ltrim", "map_keys", "map_values", "md5", "named_struct", "nullif", "nvl", "nvl2",
    "octet_length", "replace", "reverse", "right", "rpad", "rtrim", "sha", "sha1", "sha2", "size", "soundex", "split",
    "startswith", "struct", "substr", "substring", "substring_index", "to_json", "translate", "trim", "try_add",
    "try_divide", "try_element_at", "try_multiply", "try_subtract", "try_to_timestamp", "ucase", "upper", "window",
    "xxhash64",
})  # fmt: skip


_TRIED_CALLS: Final = {
    "element_at": "try_element_at",
    "parse_json": "try_parse_json",
    "parse_url": "try_parse_url",
    "to_number": "try_to_number",
    "to_timestamp": "try_to_timestamp",
}
_TRIED_OPERATORS: Final[dict[type[exp.Expr], str]] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
    exp.Div: "try_divide",
    exp.Mod: "try_mod",
}
_FIRST_KNOWN: Final = frozenset({"coalesce", "ifnull", "nvl"})


@frozen
class Guard:
    """A part is computed where none of `before` holds, and `when` does, if there is one."""

    before: tuple[exp.Expr, ...]
    when: exp.Expr | None = None

    @property
    def conditions(self) -> tuple[exp.Expr, ...]:
        return self.before if self.when is None else (*self.before, self.when)

    def around(self, value: exp.Expr, moved: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
        """The value where the part is computed, and NULL elsewhere."""
        arms = [exp.If(this=moved(each), true=exp.Null()) for each in self.before]
        if self.when is None:
            return exp.Case(ifs=arms, default=value)
        return exp.Case(ifs=[*arms, exp.If(this=moved(self.when), true=value)])


def guarded_parts(node: exp.Expr) -> Iterator[tuple[exp.Expr, Guard]]:
    """The parts directly below a node that are not computed whenever it is. The conditions are copies."""
    if isinstance(node, exp.Case):
        yield from _of_case(node)
    elif isinstance(node, exp.If) and not isinstance(node.parent, exp.Case):
        yield node.args["true"], Guard((), node.this.copy())
        if node.args.get("false") is not None:
            yield node.args["false"], Guard((node.this.copy(),))
    elif isinstance(node, exp.Anonymous) and node.name.lower() in _FIRST_KNOWN:
        before: list[exp.Expr] = []
        for one, following in zip(node.expressions, node.expressions[1:], strict=False):
            before.append(_holds(exp.Not(this=exp.Is(this=_whole(one), expression=exp.Null()))))
            yield following, Guard(tuple(before))
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "if":
        when, *parts = node.expressions
        yield from zip(parts, (Guard((), when.copy()), Guard((when.copy(),))), strict=False)
    elif isinstance(node, exp.And):  # what is NULL AND FALSE is FALSE
        yield node.expression, Guard((_holds(exp.Not(this=_whole(node.this))),))
    elif isinstance(node, exp.Or):
        yield node.expression, Guard((node.this.copy(),))
    elif isinstance(node, exp.Filter):
        yield node.this, Guard((), node.expression.this.copy())


def _of_case(node: exp.Case) -> Iterator[tuple[exp.Expr, Guard]]:
    operand = node.args.get("this")
    before: list[exp.Expr] = []
    for arm in node.args["ifs"]:
        when = arm.this.copy()
        if operand is not None:
            when = _holds(exp.EQ(this=_whole(operand), expression=_whole(arm.this)))
        if before:
            yield arm.this, Guard(tuple(before))
        yield arm.args["true"], Guard(tuple(before), when)
        before.append(when)
    if node.args.get("default") is not None:
        yield node.args["default"], Guard(tuple(before))


def _whole(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy())


def _holds(condition: exp.Expr) -> exp.Expr:
    return typed(condition, BOOLEAN)


def loose_conjunctions(condition: exp.Expr) -> set[int]:
    """The ids of the ANDs of WHERE and ON: they have no order, and Spark may compute any of them first."""
    found: set[int] = set()
    nodes = [condition]
    while nodes:
        node = nodes.pop()
        if isinstance(node, exp.And | exp.Paren):
            found.add(id(node))
            nodes += [node.this, *([node.expression] if isinstance(node, exp.And) else [])]
    return found


def may_fail(value: exp.Expr) -> bool:
    """Whether there may be rows for which the value cannot be computed."""
    return any(_may_fail(node) for node in value.walk())


def _may_fail(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
        return not node.to.is_type(*exp.DataType.TEXT_TYPES)
    if isinstance(node, exp.Anonymous):
        return node.name.lower() not in _SAFE_CALLS
    return not isinstance(node, _NEVER_FAILS) and not isinstance(node, exp.Where | exp.Var | exp.DataTypeParam)


def tried(value: exp.Expr) -> exp.Expr | None:
    """The value, and NULL where it fails; None where that cannot be written, or NULL would not show it."""
    if not null_of_nulls(value):
        return None
    made = exp.Paren(this=value.copy())
    for node in [node for node in made.walk(bfs=False) if node is not made and _may_fail(node)][::-1]:
        other = _other_form(node)
        if other is None or not _shows_null(node, made):
            return None
        other.meta.update(node.meta)
        node.replace(other)
    return typed(made.this.copy(), type_of(value))


def where_it_failed(value: exp.Expr, computed: exp.Expr) -> exp.Expr:
    """The value by itself where `computed`, what `tried` made of it, is NULL and not all that it reads is."""
    read = {(each.table, each.name): each for each in value.find_all(exp.Column)}
    given: list[exp.Expr] = [
        exp.Not(this=exp.Paren(this=exp.Is(this=each.copy(), expression=exp.Null()))) for each in read.values()
    ]
    there = reduce(lambda one, other: exp.Or(this=one, expression=other), given)
    failed = exp.And(this=exp.Is(this=computed.copy(), expression=exp.Null()), expression=exp.Paren(this=there))
    made = exp.Case(ifs=[exp.If(this=_holds(failed), true=value.copy())], default=computed)
    return typed(made, type_of(computed))


def _other_form(node: exp.Expr) -> exp.Expr | None:
    """What Spark has for an operation that fails, and is NULL instead."""
    if isinstance(node, exp.Cast):
        return exp.TryCast(this=node.this.copy(), to=node.to.copy(), safe=True)
    name = node.name.lower() if isinstance(node, exp.Anonymous) else None
    if name in _TRIED_CALLS:
        return exp.Anonymous(this=_TRIED_CALLS[name], expressions=[each.copy() for each in node.expressions])
    operator = next((tried_as for kind, tried_as in _TRIED_OPERATORS.items() if type(node) is kind), None)
    return None if operator is None else call(operator, node.this.copy(), node.expression.copy())


def _shows_null(node: exp.Expr, root: exp.Expr) -> bool:
    """Whether the whole is NULL where a part of it is."""
    around = node.parent
    while around is not None and around is not root:
        if not is_strict(around):
            return False
        around = around.parent
    return True
