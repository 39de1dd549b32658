"""The text that Spark is given, generated from a bound tree.

Three things in Spark's own reading of text are closed here. It substitutes `${…}` anywhere in a statement, also inside
strings and quoted names, before it parses: a `$` is therefore written as an escape in strings and refused in names.
A backslash in a string is an escape for Spark and an ordinary character for us. And every name is quoted, so that none
is read as a keyword.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator

from penstock.errors import ResolutionError
from penstock.plan.correlation import correlation

if TYPE_CHECKING:
    from sqlglot.dialects.dialect import DialectType


class _Generator(SparkGenerator):
    """Spark's text, with `$` made harmless."""

    SUPPORTS_WINDOW_EXCLUDE = True

    def literal_sql(self, expression: exp.Literal) -> str:
        text = super().literal_sql(expression)
        return text.replace("$", "\\u0024") if expression.is_string else text

    def identifier_sql(self, expression: exp.Identifier) -> str:
        if "${" in expression.name:
            raise ResolutionError(
                "INVALID_DEFINITION",
                f'the name "{expression.name}" holds "${{", which Spark would replace',
                hint="choose another name",
            )
        return super().identifier_sql(expression)

    def lateral_sql(self, expression: exp.Lateral) -> str:
        if not expression.args.get("view"):
            return super().lateral_sql(expression)
        # sqlglot writes the name of the view as it is; ours may be any name
        alias = expression.args["alias"]
        columns = ", ".join(self.sql(name) for name in alias.args.get("columns") or [])
        outer = " OUTER" if expression.args.get("outer") else ""
        return f"{self.sep()}LATERAL VIEW{outer} {self.sql(expression, 'this')} {self.sql(alias, 'this')} AS {columns}"

    def filter_sql(self, expression: exp.Filter) -> str:
        found = correlation(expression)
        return super().filter_sql(expression) if found is None else self.sql(found)

    def window_sql(self, expression: exp.Window) -> str:
        found = correlation(expression)
        return super().window_sql(expression) if found is None else self.sql(found)

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        # a function of the user's may have any name; ours and Spark's are plain words
        found = correlation(expression)
        if found is not None:
            return self.sql(found)
        name = expression.name
        plain = name if name.isidentifier() and name.isascii() else f"`{name.replace('`', '``')}`"
        return self.func(plain, *expression.expressions, normalize=False)


class _SparkText(Spark):
    """Spark's dialect with our generator."""

    Generator = _Generator


def spark_sql(tree: exp.Expr, *, pretty: bool = True) -> str:
    """The Spark SQL of a bound tree."""
    dialect: DialectType = _SparkText
    return tree.sql(dialect=dialect, pretty=pretty, comments=False, identify=False)
