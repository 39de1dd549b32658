"""Which option values may be shown: those of known, public options. Whatever is unknown is treated as secret."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import OptionError
from penstock.options.choosing import guess_connector, guess_formats
from penstock.options.jobs import insert_table, view_table
from penstock.options.matching import KeyTable, Match, key_table
from penstock.options.reading import read_option
from penstock.options.registry import format_named
from penstock.options.schema import ConnectorSpec, FormatSpec
from penstock.options.schemas.common import CONNECTOR, FORMAT, TYPE
from penstock.options.subscriptions import subscribe_table
from penstock.secrets import only_references
from penstock.sql.statements import Option

Predicate = Callable[[Option], bool]

# What can be told even of a statement whose connector no one knows.
_ALWAYS = KeyTable((CONNECTOR, FORMAT, TYPE))


def public_option(options: tuple[Option, ...], *, default_connector: str = "topic") -> Predicate:
    """Tells of each option of a statement, those of a FORMAT clause included, whether its value may be shown.

    It may where the connector's schema (or that of a view or INSERT) knows the key and does not declare it secret, and
    where the value is nothing but references. Never raises, whatever else is wrong with the statement.
    """
    connector = guess_connector(options, default_connector)
    tables = [(None, _ALWAYS)] if connector is None else _tables(options, connector)
    jobs = (view_table(), insert_table(), subscribe_table())

    def public(option: Option) -> bool:
        if option.value.kind == "secret" or only_references(option.value.reveal()):
            return True
        matches = [match for name, table in tables if (match := _find(option.key, name, table)) is not None]
        # What a connector does not know may be an option of a view, INSERT or SUBSCRIBE, which have no secret ones.
        matches = matches or [match for table in jobs if (match := table.find(option.key)) is not None]
        return bool(matches) and all(_shows(option, match) for match in matches)

    return public


def hide_option(options: tuple[Option, ...], *, default_connector: str = "topic") -> Predicate:
    """The opposite of `public_option`, as the formatter wants it."""
    public = public_option(options, default_connector=default_connector)
    return lambda option: not public(option)


def _tables(options: tuple[Option, ...], connector: ConnectorSpec) -> list[tuple[str | None, KeyTable]]:
    value, key = guess_formats(options)
    # Where no option names the format, a FORMAT clause may have named any the connector takes.
    formats: list[FormatSpec | None] = [value] if value else [None, *map(format_named, connector.formats)]
    return [(spec.name if spec else None, key_table(connector, spec, key, job=True)) for spec in formats]


def _find(key: str, format_name: str | None, table: KeyTable) -> Match | None:
    found = table.find(key)
    if found is None and format_name is not None:
        return table.find(f"{format_name}.{key}")
    return found


def _shows(option: Option, match: Match) -> bool:
    if match.spec.secret:
        return False
    try:
        return not read_option(option, match).secret
    except OptionError:
        # A value of the wrong kind: harmless where the kind has nothing to hide, and the error shows it anyway.
        return not match.spec.kind.sensitive(option.value.reveal())
