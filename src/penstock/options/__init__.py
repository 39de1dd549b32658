"""Options of connectors, formats, views and inserts, and the settings: closed schemas, typed values, secrets kept.

A statement's WITH clause goes through `resolve_options` (sources and sinks), `resolve_view_options` or
`resolve_insert_options`; what comes back is frozen, typed by canonical key, and safe to print. Third parties add
connectors with `register_connector`.
"""

from __future__ import annotations

from penstock.options.connections import resolve_connection
from penstock.options.jobs import resolve_insert_options, resolve_view_options, sink_job_options
from penstock.options.keys import normalise
from penstock.options.of_a_reading import with_options_of_reading
from penstock.options.registry import (
    connector_named,
    format_named,
    known_connectors,
    known_formats,
    register_connector,
    register_format,
    unregister_connector,
)
from penstock.options.resolve import resolve_options
from penstock.options.resolved import PassedValue, ResolvedOptions, ResolvedViewOptions, show
from penstock.options.same_option import option_slot
from penstock.options.schema import (
    Alias,
    ConnectorSpec,
    Draft,
    FormatSpec,
    OptionFamily,
    OptionSpec,
    Passthrough,
    Problem,
)
from penstock.options.settings import SETTINGS, default_settings, resolve_setting, setting_key, setting_notice
from penstock.options.subscriptions import CHANGE_FORMS, ChangeForm, resolve_subscribe_options
from penstock.options.values import Deferred
from penstock.options.visibility import hide_option, public_option

__all__ = [
    "CHANGE_FORMS",
    "SETTINGS",
    "Alias",
    "ChangeForm",
    "ConnectorSpec",
    "Deferred",
    "Draft",
    "FormatSpec",
    "OptionFamily",
    "OptionSpec",
    "PassedValue",
    "Passthrough",
    "Problem",
    "ResolvedOptions",
    "ResolvedViewOptions",
    "connector_named",
    "default_settings",
    "format_named",
    "hide_option",
    "known_connectors",
    "known_formats",
    "normalise",
    "option_slot",
    "public_option",
    "register_connector",
    "register_format",
    "resolve_connection",
    "resolve_insert_options",
    "resolve_options",
    "resolve_setting",
    "resolve_subscribe_options",
    "resolve_view_options",
    "setting_key",
    "setting_notice",
    "show",
    "sink_job_options",
    "unregister_connector",
    "with_options_of_reading",
]
