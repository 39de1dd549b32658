"""Formats whose records make no sense without a schema: whether the options say where it is."""

from __future__ import annotations

import json

from penstock.options.schema import Draft, Problem

_REGISTRIES = ("schema_registry.url", "schema_registry.connection")
_DESCRIPTORS = ("protobuf.descriptor", "schema_location")


def check_schema(draft: Draft, value: str | None, key: str | None) -> None:
    """Raises `Problem` where a schema is missing, or is none. What is behind a reference or in a file is read later."""
    _check_side(draft, value, "")
    _check_side(draft, key, "key.")


def _check_side(draft: Draft, name: str | None, prefix: str) -> None:
    if name == "protobuf" and not any(prefix + option in draft.given for option in _DESCRIPTORS):
        raise Problem(
            "MISSING_OPTION",
            f"{prefix}format = 'protobuf' needs the option {prefix}protobuf.descriptor",
            hint="write the file with: protoc --include_imports --descriptor_set_out=FILE",
            key=f"{prefix}format",
        )
    # A key has the registry of the value, where it has none of its own.
    if name == "avro-confluent" and not any(
        each in draft.given for option in _REGISTRIES for each in (option, prefix + option)
    ):
        raise Problem(
            "MISSING_OPTION",
            f"{prefix}format = 'avro-confluent' needs the option {_REGISTRIES[0]}",
            hint=f"add {_REGISTRIES[0]} = 'http://…', the address of the schema registry",
            key=f"{prefix}format",
        )
    schema = draft.values.get(f"{prefix}avro.schema")
    if isinstance(schema, str):
        _check_avro(schema, f"{prefix}avro.schema")


def _check_avro(text: str, key: str) -> None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Problem("INVALID_OPTION", f"{key} is no JSON", key=key) from None
    if not isinstance(found, dict) or found.get("type") != "record":
        raise Problem(
            "INVALID_OPTION",
            f"{key} is not of a record",
            hint='an Avro schema begins with {"type": "record", "name": …',
            key=key,
        )
