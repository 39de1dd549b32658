"""The formats of records."""

from __future__ import annotations

from typing import Final

from penstock.options.schema import BOTH, READ, SINK, Alias, FormatSpec, OptionSpec
from penstock.options.values import Boolean, Choice, Integer, Text, Url

_TIMESTAMPS: Final = Choice(
    ("iso-8601", "sql", "epoch_ms"),
    {"iso_8601": "iso-8601", "rfc3339": "iso-8601", "unix_millis": "epoch_ms", "unixmillis": "epoch_ms"},
)
_KEYS_OF_MAPS: Final = "a map has no NULL among its keys"


def _json(prefix: str) -> tuple[OptionSpec, ...]:
    return (
        OptionSpec(
            f"{prefix}.fail_on_missing_field",
            Boolean(),
            "whether a record without a declared field is a bad record instead of a NULL",
            default=False,
            roles=READ,
        ),
        OptionSpec(
            f"{prefix}.timestamp_format",
            _TIMESTAMPS,
            "how times are written; read in every form",
            default="iso-8601",
            aliases=(f"{prefix}.timestamp-format.standard",),
        ),
        OptionSpec(
            f"{prefix}.map_null_key",
            Choice(("fail", "drop", "literal")),
            "what becomes of a map entry without a key.",
            aliases=(f"{prefix}.map-null-key.mode",),
            roles=SINK,
            idle=_KEYS_OF_MAPS,
        ),
        OptionSpec(
            f"{prefix}.map_null_key_literal",
            Text(),
            "the key to write instead.",
            aliases=(f"{prefix}.map-null-key.literal",),
            roles=SINK,
            idle=_KEYS_OF_MAPS,
        ),
        OptionSpec(
            f"{prefix}.decimal_as_plain_number",
            Boolean(),
            "whether decimals are written without an exponent.",
            aliases=(f"{prefix}.encode.decimal-as-plain-number",),
            roles=SINK,
            idle="decimals keep all their digits, and those below a millionth may be written with an exponent",
        ),
        OptionSpec(
            f"{prefix}.ignore_null_fields",
            Boolean(),
            "whether NULL fields are left out",
            default=False,
            aliases=(f"{prefix}.encode.ignore-null-fields",),
            roles=SINK,
        ),
    )


_REGISTRY: Final = (
    OptionSpec(
        "schema_registry.url",
        Url(),
        "the address of the schema registry",
        aliases=(
            "schema.registry",
            "schema_registry.endpoint",
            "avro-confluent.url",
            "avro-confluent.schema-registry.url",
            "schema.registry.url",
        ),
    ),
    OptionSpec(
        "schema_registry.connection",
        Text(name="connection"),
        "a connection made by CREATE CONNECTION, whose options are taken where the statement gives none",
        literal=True,
    ),
    OptionSpec(
        "schema_registry.subject",
        Text(),
        "the subject",
        aliases=("avro-confluent.subject", "avro-confluent.schema-registry.subject"),
    ),
    OptionSpec("schema_registry.username", Text(), "the user, or the API key", aliases=("schema_registry.api_key",)),
    OptionSpec(
        "schema_registry.password",
        Text(),
        "the password, or the API secret",
        aliases=("schema_registry.api_secret",),
        secret=True,
    ),
    OptionSpec(
        "schema_registry.user_info",
        Text(),
        "user and password as user:password",
        aliases=("avro-confluent.basic-auth.user-info",),
        secret=True,
    ),
    OptionSpec(
        "schema_registry.credentials",
        Choice(("USER_INFO", "SASL_INHERIT", "URL")),
        "where user and password come from",
        aliases=("avro-confluent.basic-auth.credentials-source",),
    ),
    OptionSpec(
        "schema_registry.token", Text(), "a bearer token", aliases=("avro-confluent.bearer-auth.token",), secret=True
    ),
    OptionSpec(
        "schema_registry.naming",
        Choice(
            ("topic", "record", "topic_record"),
            {
                "topic_name_strategy": "topic",
                "record_name_strategy": "record",
                "topic_record_name_strategy": "topic_record",
            },
        ),
        "how the subject follows from the topic and the record",
        default="topic",
        aliases=("schema.registry.name.strategy",),
    ),
)
_SCHEMA: Final = (
    OptionSpec("schema_location", Text(name="path"), "a file with the schema", aliases=("schema.location",)),
    OptionSpec(
        "message",
        Text(),
        "the record or message type in the schema",
        aliases=("protobuf.message-class-name", "protobuf.message_name", "protobuf.message_type"),
    ),
)

JSON: Final = FormatSpec(
    name="json",
    available=True,
    summary="JSON objects, one a record or a line",
    options=(
        *_json("json"),
        OptionSpec(
            "json.unstructured",
            Boolean(),
            "whether the whole record goes into one text column",
            default=False,
            roles=READ,
        ),
        OptionSpec(
            "json.include_schema",
            Boolean(),
            "whether the record carries its schema, as Kafka Connect writes it",
            default=False,
            roles=READ,
        ),
        OptionSpec(
            "json.confluent_schema_registry", Boolean(), "whether records begin with a schema id", default=False
        ),
        OptionSpec(
            "json.schema_id",
            Integer(minimum=0),
            "the schema id to write, instead of that of a schema made of the columns",
            aliases=("json.confluent_schema_version",),
            roles=SINK,
        ),
        *_REGISTRY,
    ),
    aliases=("jsonb", "json_lines", "jsonl", "ndjson"),
)
CSV: Final = FormatSpec(
    name="csv",
    available=True,
    summary="values separated by a character",
    options=(
        OptionSpec(
            "csv.delimiter",
            Text(pattern=r"(?s).|\\t", expects="one character", name="character"),
            "the separator",
            default=",",
            aliases=("csv.field-delimiter", "csv.sep", "delimiter"),
        ),
        OptionSpec(
            "csv.header",
            Boolean(),
            "whether the first line names the columns",
            default=False,
            aliases=(
                Alias("csv.without_header", values={"true": "false", "false": "true"}),
                Alias("without_header", values={"true": "false", "false": "true"}),
            ),
        ),
        OptionSpec(
            "csv.quote",
            Text(pattern="(?s).", expects="one character", name="character"),
            "the character around values",
            default='"',
            aliases=("csv.quote-character",),
        ),
        OptionSpec(
            "csv.no_quote",
            Boolean(),
            "values are never quoted",
            default=False,
            aliases=("csv.disable-quote-character",),
        ),
        OptionSpec(
            "csv.escape",
            Text(pattern="(?s).", expects="one character", name="character"),
            "the escape character",
            aliases=("csv.escape-character",),
        ),
        OptionSpec(
            "csv.null_literal",
            Text(empty=True),
            "the text that means NULL",
            aliases=("csv.null-literal", "csv.nullValue"),
        ),
        OptionSpec(
            "csv.array_delimiter", Text(), "the separator inside arrays", aliases=("csv.array-element-delimiter",)
        ),
        OptionSpec(
            "csv.comments",
            Boolean(),
            "whether lines that begin with # are skipped",
            default=False,
            aliases=("csv.allow-comments",),
            roles=READ,
        ),
    ),
)
RAW: Final = FormatSpec(
    name="raw",
    available=True,
    summary="the bytes as they are, in one column",
    options=(
        OptionSpec(
            "raw.charset",
            Choice(("UTF-8", "ISO-8859-1", "US-ASCII")),
            "the characters of a text column",
            default="UTF-8",
        ),
        OptionSpec(
            "raw.endianness",
            Choice(("big-endian", "little-endian")),
            "the order of the bytes of a number.",
            default="big-endian",
            idle="a raw column is a text or bytes",
        ),
    ),
    aliases=("raw_string", "raw_bytes", "bytes", "text"),
)
_NOT_CONFLUENT: Final = ("avro.confluent_schema_registry", "avro.raw_datums", "avro.codec")
AVRO: Final = FormatSpec(
    name="avro",
    available=True,
    summary="Avro records, with a schema in the text, in a file or made of the columns, or from a schema registry",
    options=(
        *_REGISTRY,
        *_SCHEMA,
        OptionSpec("avro.schema", Text(), "the schema as JSON", aliases=("avro-confluent.schema",)),
        OptionSpec(
            "avro.confluent_schema_registry", Boolean(), "whether records begin with a schema id", default=False
        ),
        OptionSpec("avro.raw_datums", Boolean(), "whether records are bare, without a file header", default=True),
        OptionSpec("avro.schema_id", Integer(minimum=0), "the schema id to write", roles=SINK),
        OptionSpec(
            "avro.into_unstructured_json",
            Boolean(),
            "whether the record becomes one JSON text",
            default=False,
            roles=READ,
        ),
        OptionSpec(
            "avro.codec",
            Choice(("null", "deflate", "snappy", "bzip2", "zstandard")),
            "the compression of files",
            roles=BOTH,
        ),
        OptionSpec(
            "avro.timestamp_mapping",
            Choice(("legacy", "standard")),
            "which Avro type a time has.",
            aliases=("avro.timestamp_mapping.legacy",),
            roles=BOTH,
            idle="times are read and written by the type that the schema gives them",
        ),
    ),
)
AVRO_CONFLUENT: Final = FormatSpec(
    name="avro-confluent",
    available=True,
    summary="Avro records with the number of their schema before them, which a schema registry keeps",
    options=tuple(option for option in AVRO.options if option.key not in _NOT_CONFLUENT),
)
PROTOBUF: Final = FormatSpec(
    name="protobuf",
    available=True,
    summary="Protocol Buffers messages",
    options=(
        *_REGISTRY,
        *_SCHEMA,
        OptionSpec(
            "protobuf.descriptor",
            Text(name="path"),
            "a compiled descriptor file",
            aliases=("protobuf.descriptor-file",),
        ),
        OptionSpec(
            "protobuf.confluent_schema_registry", Boolean(), "whether records begin with a schema id", default=False
        ),
        OptionSpec(
            "protobuf.read_default_values",
            Boolean(),
            "whether absent fields read as their default instead of NULL",
            default=False,
            roles=READ,
        ),
        OptionSpec(
            "protobuf.write_null_string_literal",
            Text(empty=True),
            "the text written for NULL inside arrays and maps",
            roles=SINK,
        ),
    ),
    aliases=("proto",),
)
PARQUET: Final = FormatSpec(
    name="parquet",
    available=True,
    summary="Parquet files",
    options=(
        OptionSpec(
            "parquet.compression",
            Choice(("snappy", "none", "gzip", "zstd", "lz4"), {"uncompressed": "none"}),
            "how pages are compressed",
            default="snappy",
            roles=SINK,
        ),
        OptionSpec(
            "parquet.row_group_size",
            Integer(minimum=1),
            "bytes of a row group",
            aliases=("parquet.row_group_bytes", "parquet.block.size"),
            roles=SINK,
        ),
        OptionSpec(
            "parquet.case_insensitive",
            Boolean(),
            "whether columns are found without regard to case",
            default=True,
            roles=READ,
        ),
    ),
)
DEBEZIUM_JSON: Final = FormatSpec(
    name="debezium-json",
    available=True,
    summary="changes of a database as Debezium writes them: operation, row before, row after",
    options=(
        *_json("debezium-json"),
        OptionSpec("debezium-json.schema_include", Boolean(), "whether each record carries its schema", default=False),
    ),
    aliases=("debezium", "debezium_json"),
    changes="retract",
)

FORMATS: Final = (JSON, CSV, RAW, AVRO, AVRO_CONFLUENT, PROTOBUF, PARQUET, DEBEZIUM_JSON)
