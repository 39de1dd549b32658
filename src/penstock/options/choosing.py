"""Which connector and formats a statement means, before its other options can be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from penstock.errors import OptionError, Span
from penstock.frozen import frozen
from penstock.options.keys import normalise
from penstock.options.matching import key_table
from penstock.options.problems import conflicting, invalid_value
from penstock.options.registry import connector_named, format_named, known_connectors, require_connector, require_format
from penstock.options.schema import ConnectorSpec, FormatSpec
from penstock.options.schemas.common import CONNECTOR, FORMAT
from penstock.options.values import text_value
from penstock.sql.statements import Option

_CONNECTOR_KEYS: Final = frozenset(normalise(alias.key) for alias in CONNECTOR.spellings())
_FORMAT_KEYS: Final = frozenset(normalise(alias.key) for alias in FORMAT.spellings())
_KEY_FORMAT_KEYS: Final = frozenset({"key_format", "key_encode"})
_KAFKA_PREFIXES: Final = ("kafka_", "properties_")
# RisingWave's sinks say by `type` what is `changes` here.
_SINK_TYPES: Final = frozenset({"append_only", "upsert", "debezium"})


@frozen
class Chosen:
    """The connector, whether the statement named it, and the options with its canonical name."""

    spec: ConnectorSpec
    named: bool
    options: tuple[Option, ...]


@frozen
class Written:
    """The formats of value and key, and the options with their canonical names."""

    value: FormatSpec | None
    key: FormatSpec | None
    options: tuple[Option, ...]


def find_connector(options: tuple[Option, ...], default: str, span: Span) -> Chosen:
    """The connector that a WITH clause names or implies: Kafka's own keys mean Kafka, else the default."""
    found: ConnectorSpec | None = None
    first: Option | None = None
    extra: list[Option] = []
    rewritten: list[Option] = []
    for option in options:
        if normalise(option.key) not in _CONNECTOR_KEYS:
            rewritten.append(option)
            continue
        name = _written_out(option, "the name of a connector")
        spec = require_connector(name, option.value_span)
        if first is not None and found is not spec:
            raise conflicting(first, option)
        found, first = spec, option
        extra += _implied_options(spec, name, option)
        rewritten.append(replace(option, value=text_value(spec.name)))
    if found is not None:
        return Chosen(found, True, (*rewritten, *extra))
    return Chosen(_implied(options) or require_connector(default, span), False, options)


def guess_connector(options: Iterable[Option], default: str = "topic") -> ConnectorSpec | None:
    """The connector of a statement that may be wrong in any way; None where it cannot be told. Raises nothing."""
    named = [option for option in options if normalise(option.key) in _CONNECTOR_KEYS]
    if named:
        return connector_named(named[0].value.reveal())
    return _implied(options) or connector_named(default)


def choose_formats(options: tuple[Option, ...], connector: ConnectorSpec) -> Written:
    """The formats that the options name, checked against those the connector takes."""
    value: FormatSpec | None = None
    key: FormatSpec | None = None
    rewritten: list[Option] = []
    for option in options:
        name = normalise(option.key)
        if name in _FORMAT_KEYS:
            value = require_format(_written_out(option, "the name of a format"), option.value_span)
            _check_format(value, option, connector)
            rewritten.append(replace(option, value=text_value(value.name)))
        elif name in _KEY_FORMAT_KEYS:
            key = require_format(_written_out(option, "the name of a format"), option.value_span)
            rewritten.append(replace(option, value=text_value(key.name)))
        else:
            rewritten.append(option)
    if value is None and connector.default_format is not None:
        value = format_named(connector.default_format)
    return Written(value, key, tuple(rewritten))


def guess_formats(options: Iterable[Option]) -> tuple[FormatSpec | None, FormatSpec | None]:
    """The formats that a statement names for value and key, however wrong the rest is. Raises nothing."""
    value = key = None
    for option in options:
        name = normalise(option.key)
        if name in _FORMAT_KEYS:
            value = format_named(option.value.reveal())
        elif name in _KEY_FORMAT_KEYS:
            key = format_named(option.value.reveal())
    return value, key


def rewrite_types(options: tuple[Option, ...]) -> tuple[Option, ...]:
    """RisingWave's `type = 'append-only'` as `changes`; `force_append_only = 'false'` says nothing and goes."""
    return tuple(
        replace(option, key="changes") if _sink_type(option) else option
        for option in options
        if not (normalise(option.key) == "force_append_only" and option.value.reveal().lower() == "false")
    )


def other_connector(unknown: Sequence[Option]) -> str | None:
    """A hint for a statement without a connector whose unknown keys all belong to another one."""
    for spec in known_connectors():
        table = key_table(spec)
        if all(table.find(option.key) is not None for option in unknown):
            return f"no connector is named, so this is an embedded topic; connector = '{spec.name}' has these options"
    return None


def _implied(options: Iterable[Option]) -> ConnectorSpec | None:
    kafka = connector_named("kafka")
    if kafka is None:
        return None
    table = key_table(kafka)
    for option in options:
        match = table.find(option.key)
        if match is not None and (
            match.slot == "bootstrap_servers" or normalise(option.key).startswith(_KAFKA_PREFIXES)
        ):
            return kafka
    return None


def _implied_options(spec: ConnectorSpec, name: str, option: Option) -> list[Option]:
    for alias, implied in spec.alias_options.items():
        if normalise(alias) == normalise(name):
            return [
                Option(key, text_value(value), option.key_span, option.value_span) for key, value in implied.items()
            ]
    return []


def _check_format(spec: FormatSpec, option: Option, connector: ConnectorSpec) -> None:
    if spec.name in connector.formats:
        return
    raise OptionError(
        "INVALID_OPTION",
        f"connector '{connector.name}' does not take format '{spec.name}'"
        if connector.formats
        else f"connector '{connector.name}' takes no format",
        hint=f"its formats: {', '.join(connector.formats)}" if connector.formats else "leave the format out",
        span=option.value_span,
    )


def _sink_type(option: Option) -> bool:
    return (
        normalise(option.key) == "type"
        and option.value.kind == "text"
        and normalise(option.value.reveal()) in _SINK_TYPES
    )


def _written_out(option: Option, what: str) -> str:
    text = option.value.reveal()
    if option.value.kind != "text" or "${" in text or "{{" in text or not text.strip():
        raise invalid_value(option, f"{what}, written out", show=False)
    return text.strip()
