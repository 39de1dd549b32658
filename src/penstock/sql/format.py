"""Canonical text of statements.

Parsing the text gives the statement back, and formatting it again gives the same text. Values of options are printed
only where `hide` lets them through: an option may be a password, and only the options layer knows which are not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import singledispatch
from typing import Final, TypeAlias

from sqlglot import exp
from sqlglot.errors import ErrorLevel

from penstock.errors import InternalError
from penstock.secrets import MASK, only_references
from penstock.sql.dialect import Penstock
from penstock.sql.durations import interval_text
from penstock.sql.generator import plain_name, quoted_name, quoted_text
from penstock.sql.statements import (
    AdvanceWatermark,
    Alter,
    Column,
    ControlJob,
    CreateConnection,
    CreateFunction,
    CreateMaterializedView,
    CreateRelation,
    CreateSecret,
    CreateSink,
    CreateView,
    Describe,
    Drop,
    Emit,
    Explain,
    ExplainWatermark,
    Format,
    Insert,
    Name,
    Option,
    Query,
    ResetSetting,
    RetryDeadLetters,
    Select,
    SetSetting,
    Show,
    ShowCreate,
    ShowRewrite,
    Statement,
    StatementSet,
    Subscribe,
    SubscribeQuery,
    Watermark,
)

Hide: TypeAlias = Callable[[Option], bool]

_KEY = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z", re.ASCII)
_SYSTEM: Final = "penstock."
_DIALECT: Final = Penstock()


def format_statement(statement: Statement, hide: Hide | None = None) -> str:
    """The canonical text of a statement, without a semicolon.

    `hide` says of an option whether its value is masked; without it every value is. References to values that live
    elsewhere (`SECRET name`, `${env:X}`) give nothing away and are always printed; the value of CREATE SECRET never is.
    """
    return _text(statement, hide or _all)


def format_tree(node: exp.Expr, *, pretty: bool = False) -> str:
    """The canonical text of a query or an expression, on one line unless `pretty`."""
    generator = _DIALECT.generator(
        pretty=pretty,
        comments=False,
        normalize_functions=False,
        unsupported_level=ErrorLevel.RAISE,
        max_text_width=100,
    )
    return str(generator.generate(node, copy=False))


def format_name(name: Name) -> str:
    """A name, in quotes when it was quoted or has to be."""
    if not name.quoted and name.text.lower().startswith(_SYSTEM) and plain_name(name.text[len(_SYSTEM) :]):
        return name.text
    return quoted_name(name.text) if name.quoted or not plain_name(name.text) else name.text


def format_option(option: Option, hide: Hide | None = None) -> str:
    """Key = value"""
    return f"{_key(option.key)} = {_value(option, hide or _all)}"


def _all(_: Option) -> bool:
    return True


def _key(key: str) -> str:
    return key if _KEY.match(key) else quoted_text(key)


def _value(option: Option, hide: Hide) -> str:
    value = option.value
    text = value.reveal()
    if value.kind == "secret":
        return f"SECRET {format_name(Name(text))}"
    if not only_references(text) and hide(option):
        return f"'{MASK}'"
    if value.kind == "text":
        return quoted_text(text)
    return interval_text(int(text)) if value.kind == "interval" else text


@singledispatch
def _text(statement: Statement, hide: Hide) -> str:
    raise InternalError(f"no text for {type(statement).__name__}")


# parts


def _words(*words: str | None) -> str:
    return " ".join(word for word in words if word)


def _names(names: tuple[Name, ...]) -> str:
    return f"({', '.join(map(format_name, names))})"


def _query(query: Query) -> str:
    text = format_tree(query.tree, pretty=True)
    return text if query.emit is None else f"{text}\nEMIT {'FINAL' if query.emit is Emit.FINAL else 'CHANGES'}"


def _options(options: tuple[Option, ...], hide: Hide) -> str:
    if not options:
        return "WITH ()"
    return "WITH (\n" + ",\n".join("  " + format_option(option, hide) for option in options) + "\n)"


def _format(clause: Format, hide: Hide) -> str:
    inner = f" ({', '.join(format_option(option, hide) for option in clause.options)})" if clause.options else ""
    encode = f"ENCODE {clause.encode.upper()}" if clause.encode else ""
    key = f"KEY ENCODE {clause.key_encode.upper()}" if clause.key_encode else ""
    return _words(f"FORMAT {clause.envelope.upper()}", encode + inner if encode else inner.strip(), key)


def _column(column: Column) -> str:
    name = format_name(column.name)
    computed = format_tree(column.computed) if column.computed is not None else None
    parts = [name, str(column.type) if column.type is not None else None]
    if computed is not None:
        parts.append(f"GENERATED ALWAYS AS ({computed})" if column.type is not None else f"AS {computed}")
    if column.metadata is not None:
        parts.append(f"METADATA FROM {quoted_text(column.metadata)}" + (" VIRTUAL" if column.virtual else ""))
    if column.header is not None:
        parts.append(f"HEADER({quoted_text(column.header)})")
    parts.append("NOT NULL" if not column.nullable else None)
    parts.append(f"COMMENT {quoted_text(column.comment)}" if column.comment is not None else None)
    return _words(*parts)


def _watermark(watermark: Watermark) -> str:
    name = format_name(watermark.column)
    delay = f" - {interval_text(watermark.delay_us)}" if watermark.delay_us else ""
    return f"WATERMARK FOR {name} AS {name}{delay}"


def _list(columns: tuple[Column, ...], watermark: Watermark | None, key: tuple[Name, ...]) -> str:
    items = [_column(column) for column in columns]
    items += [_watermark(watermark)] if watermark is not None else []
    items += [f"PRIMARY KEY {_names(key)} NOT ENFORCED"] if key else []
    return " (\n" + ",\n".join("  " + item for item in items) + "\n)" if items else ""


def _create(kind: str, statement: object) -> str:
    return _words(
        "CREATE",
        "OR REPLACE" if getattr(statement, "or_replace", False) else None,
        "TEMPORARY" if getattr(statement, "temporary", False) else None,
        kind,
        "IF NOT EXISTS" if getattr(statement, "if_not_exists", False) else None,
        format_name(getattr(statement, "name")),  # noqa: B009
    )


# definitions


@_text.register
def _(statement: CreateRelation, hide: Hide) -> str:
    text = _create(statement.kind, statement)
    text += _list(statement.columns, statement.watermark, statement.primary_key)
    lines = [text]
    if statement.comment is not None:
        lines.append(f"COMMENT {quoted_text(statement.comment)}")
    if statement.partitioned_by:
        lines.append(f"PARTITIONED BY {_names(statement.partitioned_by)}")
    if statement.options:
        lines.append(_options(statement.options, hide))
    if statement.format is not None:
        lines.append(_format(statement.format, hide))
    return "\n".join(lines)


@_text.register
def _(statement: CreateSink, hide: Hide) -> str:
    text = _create("SINK", statement) + _list(statement.columns, None, statement.primary_key)
    lines = [text + (f" INTO {format_name(statement.into)}" if statement.into is not None else "")]
    if statement.options:
        lines.append(_options(statement.options, hide))
    if statement.format is not None:
        lines.append(_format(statement.format, hide))
    if statement.query is not None:
        lines.append("AS\n" + _query(statement.query))
    return "\n".join(lines)


@_text.register
def _(statement: CreateView, hide: Hide) -> str:
    columns = f" {_names(statement.columns)}" if statement.columns else ""
    head = f"{_create('VIEW', statement)}{columns}"
    head += f"\nCOMMENT {quoted_text(statement.comment)}\n" if statement.comment is not None else " "
    return f"{head}AS\n{_query(statement.query)}"


@_text.register
def _(statement: CreateMaterializedView, hide: Hide) -> str:
    columns = f" {_names(statement.columns)}" if statement.columns else ""
    head = _create("MATERIALIZED VIEW", statement) + columns
    clauses = [f"COMMENT {quoted_text(statement.comment)}"] if statement.comment is not None else []
    clauses += [_options(statement.options, hide)] if statement.options else []
    head += "".join(f"\n{clause}" for clause in clauses) + ("\n" if clauses else " ")
    return f"{head}AS\n{_query(statement.query)}"


@_text.register
def _(statement: CreateFunction, hide: Hide) -> str:
    parameters = ", ".join(
        _words(format_name(Name(parameter.name)) if parameter.name is not None else None, str(parameter.type))
        for parameter in statement.parameters
    )
    text = _create("AGGREGATE" if statement.aggregate else "FUNCTION", statement)
    text += f"({parameters})" if statement.parameters else ""
    returns = f" RETURNS {statement.returns}" if statement.returns is not None else ""
    if statement.expression is not None:
        empty = "" if statement.parameters else "()"
        return f"{text}{empty}{returns}\nRETURN {format_tree(statement.expression)}"
    text += f"{returns}\nLANGUAGE {statement.language}"
    text += "\n" + _options(statement.options, hide) if statement.options else ""
    dollars = "\n" in statement.body and "$$" not in statement.body and not statement.body.endswith("$")
    return f"{text}\nAS {f'$${statement.body}$$' if dollars else quoted_text(statement.body)}"


@_text.register
def _(statement: CreateSecret, hide: Hide) -> str:
    value = statement.value.reveal()
    shown = quoted_text(value) if only_references(value) else f"'{MASK}'"
    options = f"\n{_options(statement.options, hide)}\n" if statement.options else " "
    return f"{_create('SECRET', statement)}{options}AS {shown}"


@_text.register
def _(statement: CreateConnection, hide: Hide) -> str:
    return f"{_create('CONNECTION', statement)}\n{_options(statement.options, hide)}"


@_text.register
def _(statement: Drop, hide: Hide) -> str:
    exists = "IF EXISTS" if statement.if_exists else None
    cascade = "CASCADE" if statement.cascade else None
    return _words("DROP", statement.kind, exists, format_name(statement.name), cascade)


@_text.register
def _(statement: Alter, hide: Hide) -> str:
    exists = "IF EXISTS" if statement.if_exists else None
    head = _words("ALTER", statement.kind, exists, format_name(statement.name))
    if statement.action == "set":
        return f"{head} SET ({', '.join(format_option(option, hide) for option in statement.options)})"
    if statement.action == "reset":
        return f"{head} RESET ({', '.join(map(_key, statement.keys))})"
    if statement.new_name is None:
        raise InternalError("ALTER … RENAME without a name")
    return f"{head} RENAME TO {format_name(statement.new_name)}"


# rows


@_text.register
def _(statement: Insert, hide: Hide) -> str:
    text = f"INSERT INTO {format_name(statement.target)}"
    text += f" {_names(statement.columns)}" if statement.columns else ""
    text += f"\n{_options(statement.options, hide)}" if statement.options else ""
    return f"{text}\n{_query(statement.query)}"


@_text.register
def _(statement: StatementSet, hide: Hide) -> str:
    inserts = "".join(f"{_text(insert, hide)};\n" for insert in statement.inserts)
    return f"EXECUTE STATEMENT SET BEGIN\n{inserts}END"


@_text.register
def _(statement: Select, hide: Hide) -> str:
    return _query(statement.query)


@_text.register
def _(statement: Subscribe, hide: Hide) -> str:
    since = f"SINCE {statement.since}" if statement.since is not None else None
    return _words("SUBSCRIBE TO", format_name(statement.target), _subscribe_options(statement, hide), since)


@_text.register
def _(statement: SubscribeQuery, hide: Hide) -> str:
    asked = f"({_query(statement.query)})"
    return _words("SUBSCRIBE TO", asked, _subscribe_options(statement, hide))


def _subscribe_options(statement: Subscribe | SubscribeQuery, hide: Hide) -> str | None:
    shown = ", ".join(format_option(option, hide) for option in statement.options)
    return f"WITH ({shown})" if shown else None


# questions


@_text.register
def _(statement: Explain, hide: Hide) -> str:
    json = "(FORMAT JSON)" if statement.json else None
    return _words("EXPLAIN", "PHYSICAL" if statement.physical else None, json) + "\n" + _text(statement.statement, hide)


@_text.register
def _(statement: ExplainWatermark, hide: Hide) -> str:
    return f"EXPLAIN WATERMARK FOR {format_name(statement.name)}"


@_text.register
def _(statement: ShowRewrite, hide: Hide) -> str:
    return f"SHOW REWRITE\n{_text(statement.statement, hide)}"


@_text.register
def _(statement: Show, hide: Hide) -> str:
    return f"SHOW {statement.kind}"


@_text.register
def _(statement: ShowCreate, hide: Hide) -> str:
    return _words("SHOW CREATE", statement.kind, format_name(statement.name))


@_text.register
def _(statement: Describe, hide: Hide) -> str:
    return _words("DESCRIBE", "EXTENDED" if statement.extended else None, format_name(statement.name))


# operations


@_text.register
def _(statement: ControlJob, hide: Hide) -> str:
    drain = "WITH DRAIN" if statement.drain else None
    exists = "IF EXISTS" if statement.if_exists else None
    return _words(statement.action, "JOB", exists, format_name(statement.name), drain)


@_text.register
def _(statement: AdvanceWatermark, hide: Hide) -> str:
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=statement.timestamp_us)
    return f"ADVANCE WATERMARK FOR {format_name(statement.stream)} TO TIMESTAMP '{when.replace(tzinfo=None)}'"


@_text.register
def _(statement: RetryDeadLetters, hide: Hide) -> str:
    chosen = None if statement.chosen is None else statement.chosen.tree.args["where"].this
    return _words(
        "RETRY DEAD LETTERS",
        None if statement.job is None else f"FOR {format_name(statement.job)}",
        None if chosen is None else f"WHERE {format_tree(chosen)}",
    )


@_text.register
def _(statement: SetSetting, hide: Hide) -> str:
    return f"SET {format_option(Option(statement.key, statement.value), hide)}"


@_text.register
def _(statement: ResetSetting, hide: Hide) -> str:
    return "RESET" if statement.key is None else f"RESET {_key(statement.key)}"
