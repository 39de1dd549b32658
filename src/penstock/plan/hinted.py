"""What hints in a query say: of one reading of a stream, and what is not needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.catalog.model import SourceDefinition
from penstock.errors import NotYetError, UnsupportedError
from penstock.options import with_options_of_reading
from penstock.secrets import Secret
from penstock.sql.hints import advised
from penstock.sql.nodes import ReadOptions
from penstock.sql.spans import span_of
from penstock.sql.statements import NOWHERE, Option, OptionValue

if TYPE_CHECKING:
    from sqlglot import exp

    from penstock.catalog.model import Relation
    from penstock.plan.context import PlanContext


def note_advice(context: PlanContext, select: exp.Select) -> None:
    """Tells of the hints behind SELECT that are read and not needed."""
    for name in advised(select):
        context.notice(f"the hint {name} changes nothing here: how rows are joined and found is chosen by itself")


def options_of_reading(context: PlanContext, table: exp.Table, definition: Relation) -> tuple[Option, ...]:
    """The options that a hint gives for this reading of a relation; checked."""
    hint = table.args.get("hints")
    if not isinstance(hint, ReadOptions):
        hint = ReadOptions(expressions=[])
    given = tuple(_options(hint))
    name = definition.name.text
    if given and not isinstance(definition, SourceDefinition):
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f'OPTIONS is about a stream, and "{name}" is a {definition.kind}',
            hint="give the hint where the stream itself is read",
            span=span_of(hint),
        )
    if isinstance(definition, SourceDefinition):
        if given and definition.bounded:
            raise NotYetError(
                "CLAUSE_NOT_YET",
                f'OPTIONS for one reading of table "{name}", which has an end, is not there yet',
                hint="give the options in the WITH clause of the table",
                span=span_of(hint),
            )
        with_options_of_reading(definition.options, given)
        if context.readings.setdefault(name, given) != given:
            raise NotYetError(
                "CLAUSE_NOT_YET",
                f'a statement that reads "{name}" several times, with other OPTIONS, is not there yet',
                hint="give all readings the same OPTIONS, or create another stream over the same topic",
                span=span_of(table),
            )
    return given


def _options(hint: ReadOptions) -> list[Option]:
    return [
        Option(
            entry.this.name,
            OptionValue("text", Secret(entry.expression.name)),
            span_of(entry.this) or NOWHERE,
            span_of(entry.expression) or NOWHERE,
        )
        for entry in hint.expressions
    ]
