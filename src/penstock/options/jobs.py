"""Options of statements that start a job: CREATE MATERIALIZED VIEW, CREATE SINK … AS SELECT and INSERT."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from penstock.errors import OptionError
from penstock.options.matching import KeyTable
from penstock.options.problems import unknown_options
from penstock.options.reading import defaults, read_options
from penstock.options.resolved import ResolvedOptions, ResolvedViewOptions
from penstock.options.schema import OptionSpec
from penstock.options.schemas.common import DELIVERY, JOB, JOB_NAME
from penstock.options.settings import default_settings
from penstock.options.values import Choice, Duration
from penstock.sql.statements import Name, Option

VIEW_OPTIONS: Final = (
    *JOB,
    OptionSpec(
        "freshness", Duration(), "how far the view may lag behind its input; as little as possible when not given"
    ),
    OptionSpec(
        "refresh_mode",
        Choice(("continuous",)),
        "accepted for Flink's materialized tables; every view is kept up to date all the time",
    ),
    OptionSpec(
        "changelog_retention",
        Duration(),
        "how long the view's changes can be subscribed to again; always when not given",
        aliases=("retention",),
        setting="changelog_retention",
    ),
)
INSERT_OPTIONS: Final = (JOB_NAME, *JOB)

_VIEW: Final = KeyTable(VIEW_OPTIONS)
_INSERT: Final = KeyTable(INSERT_OPTIONS)
_OF_THE_SINK: Final = KeyTable((DELIVERY,))  # what an INSERT cannot have otherwise than its sink


def view_table() -> KeyTable:
    """The keys that the WITH clause of a materialized view may give."""
    return _VIEW


def insert_table() -> KeyTable:
    """The keys that the WITH clause of an INSERT may give."""
    return _INSERT


def resolve_view_options(
    options: tuple[Option, ...], relation: Name, settings: Mapping[str, object] | None = None
) -> ResolvedViewOptions:
    """Check and type the options of a materialized view."""
    return _resolve(options, _VIEW, f"materialized view '{relation}'", settings)


def resolve_insert_options(
    options: tuple[Option, ...],
    relation: Name,
    settings: Mapping[str, object] | None = None,
    sink: ResolvedOptions | None = None,
) -> ResolvedViewOptions:
    """Check and type the options of an INSERT; the job's name is `insert_<sink>` unless one is given.

    What CREATE SINK has said of the job that writes, `sink`, holds for every INSERT that does not say otherwise.
    """
    for option in options:
        if _OF_THE_SINK.find(option.key) is not None:
            raise OptionError(
                "UNKNOWN_OPTION",
                f"option {option.key} belongs to the sink: INSERT INTO {relation} cannot change what it guarantees",
                hint=f"write it in the WITH of CREATE SINK {relation}",
                span=option.key_span,
            )
    found = _resolve(options, _INSERT, f"INSERT INTO {relation}", settings)
    said = {} if sink is None else {key: sink.values[key] for key in sink.given & _INSERT.slots.keys() - found.given}
    given = found.given | said.keys()
    values = {**found.values, **said}
    if "job_name" not in given:
        values["job_name"] = f"insert_{relation}"
    return ResolvedViewOptions(
        MappingProxyType(values), given, found.from_settings - given, found.canonical, found.secret_keys, found.notices
    )


def sink_job_options(
    sink: ResolvedOptions, relation: Name, settings: Mapping[str, object] | None = None
) -> ResolvedViewOptions:
    """The options of the job of CREATE SINK … AS SELECT, which stand beside those of the connector."""
    found = resolve_insert_options((), relation, settings)
    given = sink.given & _INSERT.slots.keys()
    values = {**found.values, "job_name": str(relation), **{key: sink.values[key] for key in given}}
    return ResolvedViewOptions(MappingProxyType(values), given, found.from_settings - given)


def _resolve(
    options: tuple[Option, ...], table: KeyTable, place: str, settings: Mapping[str, object] | None
) -> ResolvedViewOptions:
    readings = read_options(options, table)
    if readings.unknown:
        raise unknown_options(readings.unknown, table, place)
    values, from_settings = defaults(table.slots, readings.given, {**default_settings(), **(settings or {})})
    return ResolvedViewOptions(
        values=MappingProxyType(values),
        given=frozenset(readings.given),
        from_settings=from_settings,
        canonical=tuple(reading.canonical() for reading in readings.given.values()),
        secret_keys=frozenset(key for key, reading in readings.given.items() if reading.secret),
    )
