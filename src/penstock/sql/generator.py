"""Canonical text of queries and expressions: the one way we write a tree.

What is printed parses to the same tree. Strings double their quotes and escape nothing else; a name keeps its quotes,
because a quoted name is matched exactly; keywords and the names of functions are upper case.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.generator import Generator

from penstock.sql import nodes
from penstock.sql.durations import interval_text
from penstock.sql.moments import is_moment
from penstock.sql.nodes import ReadOption, ReadOptions, SystemTime, WindowCall, WindowPart, WindowTable, Within
from penstock.sql.tokens import RESERVED
from penstock.sql.typenames import sql_type

_PLAIN = re.compile(r"[^\W\d]\w*\Z")

_DURATIONS = {
    nodes.TUMBLE: ("size", "offset"),
    nodes.HOP: ("slide", "size", "offset"),
    nodes.SESSION: ("gap",),
    nodes.CUMULATE: ("step", "size", "offset"),
}


def plain_name(text: str) -> bool:
    """Whether a name can stand without quotes.

    >>> plain_name("price"), plain_name("unit price"), plain_name("select")
    (True, False, False)
    """
    return _PLAIN.match(text) is not None and text.upper() not in RESERVED


def quoted_name(text: str) -> str:
    """A name in quotes."""
    return '"' + text.replace('"', '""') + '"'


def quoted_text(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


class CanonicalGenerator(Generator):
    """Writes a tree the one way we write it."""

    SUPPORTS_WINDOW_EXCLUDE = True

    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **Generator.TRANSFORMS,
        exp.CurrentTimestamp: lambda _, __: "CURRENT_TIMESTAMP",
        exp.CurrentDate: lambda _, __: "CURRENT_DATE",
        exp.CurrentTime: lambda _, __: "CURRENT_TIME",
        exp.Localtime: lambda _, __: "LOCALTIME",
        exp.Localtimestamp: lambda _, __: "LOCALTIMESTAMP",
        exp.JSONExtract: lambda self, e: self.binary(e, "->"),
        exp.JSONExtractScalar: lambda self, e: self.binary(e, "->>"),
        exp.JSONBExtract: lambda self, e: self.binary(e, "#>"),
        exp.JSONBExtractScalar: lambda self, e: self.binary(e, "#>>"),
        exp.RegexpLike: lambda self, e: self.binary(e, "RLIKE"),
        exp.IntDiv: lambda self, e: self.binary(e, "DIV"),
        exp.Array: lambda self, e: f"ARRAY[{self.expressions(e, flat=True)}]",
        exp.HexString: lambda _, e: f"X'{e.this}'",
        exp.VarMap: lambda self, e: self.varmap_sql(e),
        # sqlglot finds the methods of its own nodes by their names, those of ours it must be told
        WindowCall: lambda self, e: self.windowcall_sql(e),
        WindowPart: lambda self, e: self.windowpart_sql(e),
        WindowTable: lambda self, e: self.windowtable_sql(e),
        SystemTime: lambda self, e: self.systemtime_sql(e),
        ReadOptions: lambda self, e: f"/*+ OPTIONS({self.expressions(e, flat=True)}) */",
        ReadOption: lambda self, e: self.binary(e, "="),
        Within: lambda _, e: (
            f"WITHIN ({e.args['before'] // 1000} MILLISECONDS, {e.args['after'] // 1000} MILLISECONDS)"
            + (f" GRACE PERIOD {e.args['grace'] // 1000} MILLISECONDS" if e.args.get("grace") is not None else "")
        ),
    }

    # names, literals, types

    def identifier_sql(self, expression: exp.Identifier) -> str:
        text = str(expression.this)
        if expression.args.get("quoted") or not _PLAIN.match(text):
            return quoted_name(text)
        return quoted_name(text) if text.upper() in RESERVED and not _dotted(expression) else text

    def literal_sql(self, expression: exp.Literal) -> str:
        text = str(expression.this)
        if not expression.is_string:
            return text
        text = quoted_text(text)
        return text.replace("\n", self.SENTINEL_LINE_BREAK) if self.pretty else text

    def datatype_sql(self, expression: exp.DataType) -> str:
        return str(sql_type(expression))

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        kind = self.sql(expression, "to")
        value = expression.this
        # What cannot be read stays a cast, which fails on the row that meets it: as a literal it would be refused.
        literal = isinstance(value, exp.Literal) and value.is_string and is_moment(str(value.this), kind)
        if type(expression) is exp.Cast and literal:
            return f"{kind} {self.sql(value)}"
        name = "TRY_CAST" if isinstance(expression, exp.TryCast) else "CAST"
        return f"{name}({self.sql(value)} AS {kind})"

    def trycast_sql(self, expression: exp.TryCast) -> str:
        return self.cast_sql(expression)

    def interval_sql(self, expression: exp.Interval) -> str:
        return f"INTERVAL {self.sql(expression, 'this')} {self.sql(expression, 'unit')}"

    # calls

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        name = str(expression.this)
        plain = plain_name(name) or (name.upper() == "UNNEST" and not _relation(expression))
        shown = name.upper() if plain else quoted_name(name)
        return f"{shown}({self.format_args(*expression.expressions)})"

    def if_sql(self, expression: exp.If) -> str:
        parts = [expression.this, expression.args.get("true"), expression.args.get("false")]
        return f"IF({self.format_args(*(part for part in parts if part is not None))})"

    def struct_sql(self, expression: exp.Struct) -> str:
        fields = [
            f"{self.sql(field, 'expression')} AS {self.sql(field, 'this')}"
            if isinstance(field, exp.PropertyEQ)
            else self.sql(field)
            for field in expression.expressions
        ]
        return f"STRUCT({', '.join(fields)})"

    def varmap_sql(self, expression: exp.VarMap) -> str:
        pairs = zip(expression.args["keys"].expressions, expression.args["values"].expressions, strict=True)
        return f"MAP[{', '.join(self.sql(part) for pair in pairs for part in pair)}]"

    def substring_sql(self, expression: exp.Substring) -> str:
        length = self.sql(expression, "length")
        tail = f" FOR {length}" if length else ""
        return f"SUBSTRING({self.sql(expression, 'this')} FROM {self.sql(expression, 'start')}{tail})"

    def strposition_sql(self, expression: exp.StrPosition) -> str:
        return f"POSITION({self.sql(expression, 'substr')} IN {self.sql(expression, 'this')})"

    def trim_sql(self, expression: exp.Trim) -> str:
        what = self.sql(expression, "expression")
        what = f" {what}" if what else ""
        return f"TRIM({expression.args.get('position') or 'BOTH'}{what} FROM {self.sql(expression, 'this')})"

    def filter_sql(self, expression: exp.Filter) -> str:
        return f"{self.sql(expression, 'this')} FILTER (WHERE {self.sql(expression.expression, 'this')})"

    def any_sql(self, expression: exp.Any) -> str:
        return f"ANY {self.sql(expression, 'this')}"

    def all_sql(self, expression: exp.All) -> str:
        return f"ALL {self.sql(expression, 'this')}"

    def paren_sql(self, expression: exp.Paren) -> str:
        return f"({self.sql(expression, 'this')})"

    def bracket_sql(self, expression: exp.Bracket) -> str:
        return f"{self.sql(expression, 'this')}[{self.expressions(expression, flat=True)}]"

    def ordered_sql(self, expression: exp.Ordered) -> str:
        desc = bool(expression.args.get("desc"))
        first = bool(expression.args.get("nulls_first"))
        nulls = "" if first is not desc else f" NULLS {'FIRST' if first else 'LAST'}"
        return f"{self.sql(expression, 'this')}{' DESC' if desc else ''}{nulls}"

    def not_sql(self, expression: exp.Not) -> str:
        inner = expression.this
        if isinstance(inner, exp.Is):
            return f"{self.sql(inner, 'this')} IS NOT {self.sql(inner, 'expression')}"
        if isinstance(inner, exp.In | exp.Between):
            operand = self.sql(inner, "this")
            return f"{operand} NOT {self.sql(inner)[len(operand) + 1 :]}"
        return f"NOT {self.sql(inner)}"

    # windows

    def windowcall_sql(self, expression: WindowCall) -> str:
        return f"{expression.kind}({self._window_arguments(expression)})"

    def windowpart_sql(self, expression: WindowPart) -> str:
        call = expression.this
        return f"{call.kind}_{expression.part.upper()}({self._window_arguments(call)})"

    def windowtable_sql(self, expression: WindowTable) -> str:
        window: WindowCall = expression.args["window"]
        source = self.sql(expression, "this")
        source = source if isinstance(expression.this, exp.Subquery) else f"TABLE {source}"
        keys = window.args.get("keys")
        if keys:
            source += f" PARTITION BY {', '.join(self.sql(key) for key in keys)}"
        time = f"DESCRIPTOR({self.sql(window, 'time')})"
        text = f"{window.kind}({', '.join([source, time, *self._durations(window)])})"
        alias = self.sql(expression, "alias")
        joins = self.expressions(expression, key="joins", sep="", flat=True)
        return f"{text} AS {alias}{joins}" if alias else f"{text}{joins}"

    def _window_arguments(self, call: WindowCall) -> str:
        time = [self.sql(call, "time")] if call.args.get("time") is not None else []
        grace = call.args.get("grace")
        last = [f"GRACE => {interval_text(grace)}"] if grace is not None else []
        return ", ".join([*time, *self._durations(call), *last])

    def _durations(self, call: WindowCall) -> list[str]:
        values = [call.args.get(name) for name in _DURATIONS[call.kind]]
        return [interval_text(value) for value in values if value is not None]

    # relations

    def systemtime_sql(self, expression: SystemTime) -> str:
        return f"FOR SYSTEM_TIME AS OF {self.sql(expression, 'this')}"

    def windowspec_sql(self, expression: exp.WindowSpec) -> str:
        if expression.args.get("kind") != "SESSION":
            return super().windowspec_sql(expression)
        exclude = self.sql(expression, "exclude")
        return f"SESSION WITH GAP {self.sql(expression, 'start')}{f' EXCLUDE {exclude}' if exclude else ''}"

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        text = self.table_parts(expression)
        hints = self.sql(expression, "hints")
        text += f" {hints}" if hints else ""
        system_time = self.sql(expression, "system_time")
        text += f" {system_time}" if system_time else ""
        text += " WITH ORDINALITY" if expression.args.get("ordinality") else ""
        alias = self.sql(expression, "alias")
        text += f"{sep}{alias}" if alias else ""
        return text + self.expressions(expression, key="joins", sep="", flat=True)

    def unnest_sql(self, expression: exp.Unnest) -> str:
        text = f"UNNEST({self.expressions(expression, flat=True)})"
        text += " WITH ORDINALITY" if expression.args.get("offset") else ""
        alias = self.sql(expression, "alias")
        return f"{text} AS {alias}" if alias else text

    def lateral_sql(self, expression: exp.Lateral) -> str:
        alias = expression.args.get("alias")
        if not expression.args.get("view"):
            text = f"LATERAL {self.sql(expression, 'this')}"
            text += " WITH ORDINALITY" if expression.args.get("ordinality") else ""
            return f"{text} AS {self.sql(alias)}" if alias is not None else text
        text = self.seg("LATERAL VIEW OUTER" if expression.args.get("outer") else "LATERAL VIEW")
        text += f" {self.sql(expression, 'this')}"
        if alias is not None:
            text += f" {self.sql(alias, 'this')}" if alias.this is not None else ""
            columns = self.expressions(alias, key="columns", flat=True)
            text += f" AS {columns}" if columns else ""
        return text

    def values_sql(self, expression: exp.Values, values_as_table: bool = True) -> str:
        text = f"VALUES{self.seg('')}{self.expressions(expression)}"
        alias = self.sql(expression, "alias")
        if isinstance(expression.parent, exp.From | exp.Join | exp.Table):
            text = f"({text})"
        text = self.query_modifiers(expression, text)
        return f"{text} AS {alias}" if alias else text


def _relation(call: exp.Anonymous) -> bool:
    """Whether a call stands where the word UNNEST would begin a relation of its own kind."""
    parent = call.parent
    return isinstance(parent, exp.Table) or (isinstance(parent, exp.Lateral) and not parent.args.get("view"))


def _dotted(identifier: exp.Identifier) -> bool:
    """Whether a dot stands in front, behind which every word is a name."""
    parent = identifier.parent
    if isinstance(parent, exp.Dot):
        return identifier is parent.expression
    return isinstance(parent, exp.Column) and identifier is parent.this and bool(parent.args.get("table"))
