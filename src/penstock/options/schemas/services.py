"""HTTP webhooks and PostgreSQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from penstock.options.schema import ANY, READ, SINK, Alias, ConnectorSpec, Draft, OptionFamily, OptionSpec, Problem
from penstock.options.schemas.common import DELIVERY, PRIMARY_KEY, REFRESH, SINK_PARALLELISM
from penstock.options.values import Boolean, Choice, Duration, Integer, Text, Url

_RETRY: Final = (
    OptionSpec(
        "max_retries",
        Integer(minimum=0),
        "how often a failed request is tried again",
        default=5,
        aliases=("sink.max-retries", "retries"),
        roles=SINK,
    ),
    OptionSpec(
        "backoff",
        Duration(),
        "the wait before the first retry, doubled each time; half a second when not given",
        aliases=(Alias("retry_backoff", unit="ms"),),
        roles=SINK,
    ),
)


def _check_http(draft: Draft) -> None:
    if {"username", "token"} <= draft.given:
        raise Problem(
            "CONFLICTING_OPTIONS",
            "username and token are both given",
            hint="a request has one Authorization header; keep one of them",
            key="token",
        )


HTTP: Final = ConnectorSpec(
    name="http",
    available=True,
    summary="a web service that is sent the rows, at least once and with an idempotency key",
    aliases=("webhook", "http-sink"),
    options=(
        # The path of a webhook often is its password, so the whole address is secret.
        OptionSpec("url", Url(), "the address", aliases=("endpoint",), required=True, secret=True),
        OptionSpec(
            "method",
            Choice(("POST", "PUT", "PATCH")),
            "the request method",
            default="POST",
            aliases=("insert-method", "request_method"),
        ),
        OptionSpec("headers", Text(), "headers as Name:Value, separated by commas", secret=True),
        OptionSpec("username", Text(), "the user for basic authentication"),
        OptionSpec("password", Text(), "the password for basic authentication", secret=True),
        OptionSpec("token", Text(), "a bearer token", aliases=("bearer_token",), secret=True),
        OptionSpec(
            "timeout",
            Duration(),
            "how long one request may take",
            default=timedelta(seconds=10),
            aliases=(Alias("request_timeout", unit="ms"),),
        ),
        OptionSpec(
            "rows_per_request",
            Integer(minimum=1),
            "the most rows in one request; from 2 on its JSON is an array",
            default=1,
            aliases=("batch_rows",),
        ),
        *_RETRY,
    ),
    families=(
        OptionFamily(
            prefix="header",
            name="name",
            summary="one request header",
            members=(OptionSpec("", Text(), "the value of the header", secret=True),),
        ),
    ),
    roles=SINK,
    formats=("json", "csv", "raw"),
    default_format="json",
    check=_check_http,
)


def _check_postgres(draft: Draft) -> None:
    if "url" not in draft.given and "host" not in draft.given:
        raise Problem(
            "MISSING_OPTION",
            "connector 'postgres' needs the option url or host",
            hint="add url = 'postgresql://host:5432/database'",
        )
    if {"url", "host"} <= draft.given:
        raise Problem("CONFLICTING_OPTIONS", "url and host are both given", hint="keep one of them", key="host")
    if "table" not in draft.given:
        raise Problem("MISSING_OPTION", "connector 'postgres' needs the option table", hint="add table = '…'")


POSTGRES: Final = ConnectorSpec(
    name="postgres",
    summary="tables of PostgreSQL: read whole, looked up, or written",
    aliases=("postgresql", "jdbc"),
    options=(
        OptionSpec(
            "url",
            Url(schemes=("postgresql", "postgres", "jdbc:postgresql")),
            "the address of the database; not shown when it holds a user or parameters",
            aliases=("jdbc.url", "dsn"),
        ),
        OptionSpec("host", Text(), "the host, instead of url", aliases=("hostname",)),
        OptionSpec("port", Integer(minimum=1, maximum=65535), "the port", default=5432),
        OptionSpec("database", Text(), "the database", aliases=("database.name", "dbname")),
        OptionSpec("schema", Text(), "the schema of the table", default="public", aliases=("schema.name",)),
        OptionSpec("table", Text(), "the table", aliases=("table-name", "table.name", "dbtable")),
        OptionSpec("user", Text(), "the user", aliases=("username",)),
        OptionSpec("password", Text(), "the password", secret=True),
        OptionSpec(
            "ssl_mode",
            Choice(("disable", "prefer", "require", "verify-ca", "verify-full")),
            "whether the connection is encrypted",
            aliases=("ssl.mode", "sslmode"),
        ),
        OptionSpec("ssl_root_cert", Text(name="path"), "the certificate of the authority", aliases=("ssl.root.cert",)),
        OptionSpec("driver", Choice(("org.postgresql.Driver",)), "accepted for JDBC texts; there is one driver"),
        OptionSpec("fetch_size", Integer(minimum=1), "rows fetched at once", aliases=("scan.fetch-size",), roles=READ),
        OptionSpec(
            "lookup_cache_rows",
            Integer(minimum=1),
            "the most rows kept of a table that is looked up",
            aliases=("lookup.cache.max-rows", "lookup.partial-cache.max-rows"),
            roles=READ,
        ),
        OptionSpec(
            "lookup_retries",
            Integer(minimum=0),
            "how often a failed read is tried again",
            aliases=("lookup.max-retries",),
            roles=READ,
        ),
        OptionSpec(
            "flush_rows",
            Integer(minimum=0),
            "the most rows in one statement",
            aliases=("sink.buffer-flush.max-rows", "max_batch_rows"),
            roles=SINK,
        ),
        OptionSpec(
            "flush_interval",
            Duration(zero=True),
            "the longest time before a flush",
            aliases=("sink.buffer-flush.interval",),
            roles=SINK,
        ),
        OptionSpec(
            "create_table", Boolean(), "whether the table is made when it is not there", default=False, roles=SINK
        ),
        *_RETRY,
        REFRESH,
        DELIVERY,
        PRIMARY_KEY,
        SINK_PARALLELISM,
    ),
    roles=ANY,
    sink_changes="upsert",
    bounded=lambda _draft: True,
    check=_check_postgres,
)
