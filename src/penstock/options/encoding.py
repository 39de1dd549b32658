"""RisingWave's `FORMAT … ENCODE …` clause as plain options."""

from __future__ import annotations

from penstock.errors import Span
from penstock.options.matching import KeyTable
from penstock.options.registry import require_format
from penstock.options.values import text_value
from penstock.sql.statements import Format, Option

_PLAIN = frozenset({"plain", "upsert", "native", "none"})


def clause_options(clause: Format | None) -> tuple[Option, ...]:
    """What the clause says as options: `format`, `changes` and `key.format`."""
    if clause is None:
        return ()
    found: list[Option] = []
    name = _format_name(clause)
    if name is not None:
        found.append(_option("format", name, clause.span))
    if clause.envelope == "upsert":
        found.append(_option("changes", "upsert", clause.span))
    if clause.key_encode is not None:
        found.append(_option("key.format", require_format(clause.key_encode, clause.span).name, clause.span))
    return tuple(found)


def encode_options(clause: Format | None, format_name: str | None, table: KeyTable) -> tuple[Option, ...]:
    """The options in the clause's own parentheses, with the format's name before those keys that need it."""
    if clause is None:
        return ()
    return tuple(
        Option(f"{format_name}.{option.key}", option.value, option.key_span, option.value_span)
        if format_name is not None and table.find(f"{format_name}.{option.key}") is not None
        else option
        for option in clause.options
    )


def _format_name(clause: Format) -> str | None:
    if clause.envelope in _PLAIN:
        return None if clause.encode in (None, "native", "none") else require_format(clause.encode, clause.span).name
    if clause.envelope == "debezium":
        wanted = "debezium-json" if clause.encode in (None, "json") else f"debezium-{clause.encode}"
        return require_format(wanted, clause.span).name
    return require_format(clause.envelope, clause.span).name


def _option(key: str, text: str, span: Span) -> Option:
    return Option(key, text_value(text), span, span)
