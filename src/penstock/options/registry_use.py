"""Options about a schema registry that nothing would read: refused, because they say that somebody expects one."""

from __future__ import annotations

from typing import Final

from penstock.options.schema import Draft, Problem

_FAMILY: Final = "schema_registry."
_ADDRESSES: Final = ("schema_registry.url", "schema_registry.connection")
# With the address of a registry alone, records of these begin with the number of their schema.
_BY_ADDRESS: Final = frozenset({"avro", "avro-confluent", "protobuf"})


def check_registry(draft: Draft, value: str | None, key: str | None) -> None:
    """Raises `Problem` where options name a registry, a login, a subject or a schema that is not used."""
    shared = any(address in draft.given for address in _ADDRESSES)
    own = any(f"key.{address}" in draft.given for address in _ADDRESSES)
    value_uses = _uses(draft, value, "", address=shared)
    if value_uses and value == "json" and draft.connector == "file":
        raise Problem(
            "INVALID_OPTION",
            "the lines of a file have no number of a schema before them",
            hint="leave the schema registry out",
            key=next((key for key in sorted(draft.given) if "schema_registry" in key), None),
        )
    key_uses = _uses(draft, key, "key.", address=shared or own)
    _check_side(draft, value, "", uses=value_uses, address=shared, elsewhere=key_uses and not own)
    _check_side(draft, key, "key.", uses=key_uses, address=shared or own, elsewhere=False)


def _uses(draft: Draft, name: str | None, prefix: str, *, address: bool) -> bool:
    """Whether records of a format begin with the number of their schema."""
    if name is None:
        return False
    asked = draft.values.get(f"{prefix}{name}.confluent_schema_registry") is True
    return asked or name == "avro-confluent" or (address and name in _BY_ADDRESS)


def _check_side(draft: Draft, name: str | None, prefix: str, *, uses: bool, address: bool, elsewhere: bool) -> None:
    given = draft.given
    number = f"{prefix}{(name or '').removesuffix('-confluent')}.schema_id"
    if number in given and not uses:
        raise _needs(number, name, prefix)
    if not prefix and "value.subject" in given and not uses:
        raise _needs("value.subject", name, prefix)
    about = sorted(key for key in given if key.startswith(prefix + _FAMILY))
    if not about:
        return
    if not address:
        wanted = prefix + _ADDRESSES[0]
        hint = f"add {wanted} = 'http://…', or leave {about[0]} out"
        raise Problem("MISSING_OPTION", f"{about[0]} needs the option {wanted}", hint=hint, key=about[0])
    if not uses and not elsewhere:
        raise _needs(about[0], name, prefix)


def _needs(key: str, name: str | None, prefix: str) -> Problem:
    wanted = f"{prefix}{_ADDRESSES[0]}" if name in _BY_ADDRESS else f"{prefix}{name}.confluent_schema_registry"
    value = "'http://…'" if name in _BY_ADDRESS else "true"
    return Problem(
        "MISSING_OPTION",
        f"{key} needs the option {wanted}",
        hint=f"add {wanted} = {value} where records begin with the number of their schema, or leave {key} out",
        key=key,
    )
