"""Which columns of a relation are in the keys of its records, and whether that can be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.errors import OptionError

if TYPE_CHECKING:
    from penstock.catalog.model import SinkDefinition, SourceDefinition

_FORMATS: Final = ("raw", "json", "csv", "avro", "avro-confluent", "protobuf")


def key_columns(definition: SourceDefinition | SinkDefinition) -> tuple[str, ...]:
    """The columns that the key of a record is made of."""
    values = definition.options.values
    found = values.get("key.fields")
    if isinstance(found, tuple) and found:
        return tuple(str(name) for name in found)
    single = values.get("key_field")
    return () if single is None else (str(single),)


def check_keys(definition: SourceDefinition | SinkDefinition) -> None:
    """Refuse what cannot be a key, before the first row."""
    values, keys = definition.options.values, key_columns(definition)
    format_name, prefix = values.get("key.format"), str(values.get("key.fields_prefix") or "")
    if format_name is not None and not keys:
        raise _invalid(definition, "key.format", "says how keys are written, and no key.fields are given")
    if format_name not in (None, *_FORMATS):
        raise _invalid(definition, "key.format", f"is not for keys; use one of {', '.join(_FORMATS)}")
    if format_name == "raw" and len(keys) > 1:
        raise _invalid(definition, "key.format", "raw is for a key of one column; use json for several")
    if prefix and values.get("value.fields_include") != "EXCEPT_KEY":
        raise _invalid(definition, "key.fields_prefix", "needs value.fields_include = 'EXCEPT_KEY'")
    known = {column.name.casefold(): column for column in definition.columns}
    for key in keys if known else ():
        found = known.get(key.casefold())
        if found is None:
            raise OptionError("INVALID_OPTION", f"{_kind(definition)} has no column {key}")
        if not found.physical:
            raise _invalid(definition, "key.fields", f"names {key}, which is not in the record")
        if not found.name.startswith(prefix):
            raise _invalid(definition, "key.fields_prefix", f"is not the beginning of column {key}")


def _kind(definition: SourceDefinition | SinkDefinition) -> str:
    return f"{definition.kind} {definition.name}"


def _invalid(definition: SourceDefinition | SinkDefinition, key: str, why: str) -> OptionError:
    return OptionError("INVALID_OPTION", f"option {key} of {_kind(definition)} {why}")
