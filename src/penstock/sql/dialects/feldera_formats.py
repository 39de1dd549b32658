"""The formats in Feldera's connectors, as options of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from penstock.secrets import Secret
from penstock.sql.dialects.feldera import refuse_at
from penstock.sql.dialects.feldera_members import known, member_text, option, required, scalar
from penstock.sql.dialects.json_places import Member, Node
from penstock.sql.statements import Option, OptionValue

_UPDATES: Final = "update_format"
_KEYED: Final = "key_fields"
_RAW_JSON: Final = 'write "update_format": "raw" where a record is a row, or "debezium" where it is a change'
_CONFLUENT: Final = {
    "registry_username": "schema_registry.username",
    "registry_password": "schema_registry.password",
    "registry_authorization_token": "schema_registry.token",
    "subject": "schema_registry.subject",
}


def options(node: Node, *, reads: bool) -> list[Option]:
    """{"name": "json", "config": {…}}"""
    parts = known(node, frozenset({"name", "config"}), {}, "a format")
    name = required(parts, "name", node)
    config = parts["config"].node if "config" in parts else Node({}, node.span)
    rule = _FORMATS.get(member_text(name))
    if rule is None:
        refuse_at("this format", "json, csv, avro and raw are read here", name.node.span)
    return rule(name, config, reads)


def _json(name: Member, config: Node, reads: bool) -> list[Option]:
    del reads
    found = known(
        config,
        frozenset({_UPDATES, "array", "json_flavor", _KEYED}),
        {"lines": "leave it out; a record is one JSON text"},
        "format json",
    )
    _expect(found, "array", False, "write an object a record, and leave array out")
    _expect(found, "json_flavor", "default", "leave json_flavor out; times are read in every form")
    updates = member_text(found[_UPDATES]) if _UPDATES in found else "insert_delete"
    keys = [_key_fields(found[_KEYED])] if _KEYED in found else []
    if updates == "raw":
        return [option(name, "format", "json"), *keys]
    if updates == "debezium":
        return [option(name, "format", "debezium-json"), *keys]
    return _refuse_updates(found.get(_UPDATES, name), updates, _RAW_JSON)


def _key_fields(member: Member) -> Option:
    listed = member.node.value if isinstance(member.node.value, list) else []
    return option(member, "key.fields", ",".join(str(node.value) for node in listed))


def _csv(name: Member, config: Node, reads: bool) -> list[Option]:
    del reads
    found = known(config, frozenset({"delimiter", "headers"}), {}, "format csv")
    names = {"delimiter": "csv.delimiter", "headers": "csv.header"}
    return [option(name, "format", "csv"), *(scalar(member, names[key]) for key, member in found.items())]


def _avro(name: Member, config: Node, reads: bool) -> list[Option]:
    own = frozenset({_UPDATES, "registry_urls", "schema", "skip_schema_id", *_CONFLUENT})
    later = dict.fromkeys(
        ("registry_headers", "registry_proxy", "registry_timeout_secs", "namespace", "cdc_field", _KEYED, "key_mode"),
        "leave it out",
    )
    found = known(config, own, later, "format avro")
    updates = member_text(found[_UPDATES]) if _UPDATES in found else "raw"
    if updates != "raw":
        _refuse_updates(found[_UPDATES], updates, 'write "update_format": "raw", or take Debezium\'s changes as JSON')
    if "registry_urls" not in found:
        return _bare_avro(name, found)
    _expect(found, "skip_schema_id", False, "leave it out where there is a schema registry")
    if "schema" in found and reads:
        refuse_at("schema beside registry_urls", "leave one of the two out", found["schema"].key_span)
    urls = found["registry_urls"].node.value
    listed = urls if isinstance(urls, list) else []
    if len(listed) != 1:
        refuse_at("more than one address of a schema registry", "give one", found["registry_urls"].node.span)
    made = [option(name, "format", "avro-confluent")]
    made.append(Option("schema_registry.url", _text(listed[0]), found["registry_urls"].key_span, listed[0].span))
    made += [scalar(found["schema"], "avro.schema")] if "schema" in found else []
    return made + [scalar(found[key], ours) for key, ours in _CONFLUENT.items() if key in found]


def _text(node: Node) -> OptionValue:
    return OptionValue("text", Secret(str(node.value)))


def _bare_avro(name: Member, found: Mapping[str, Member]) -> list[Option]:
    """Without a registry records are bare only where they say so; with the number of a schema nobody could know it."""
    if found.keys() & _CONFLUENT.keys():
        member = found[next(key for key in _CONFLUENT if key in found)]
        refuse_at("a schema registry without registry_urls", 'add "registry_urls": ["http://…"]', member.key_span)
    if "skip_schema_id" not in found or found["skip_schema_id"].node.value is not True:
        refuse_at(
            "Avro with schema ids and no registry",
            'add "registry_urls": ["http://…"], or "skip_schema_id": true where records are bare',
            name.node.span,
        )
    return [
        option(name, "format", "avro"),
        *([scalar(found["schema"], "avro.schema")] if "schema" in found else []),
    ]


def _raw(name: Member, config: Node, reads: bool) -> list[Option]:
    del reads
    found = known(config, frozenset({"mode"}), {"column_name": "leave it out; there is one column"}, "format raw")
    if "mode" not in found or member_text(found["mode"]) != "blob":
        place = found["mode"].node.span if "mode" in found else name.node.span
        refuse_at("raw records split into lines", 'write "mode": "blob": a record is one row', place)
    return [option(name, "format", "raw")]


def _expect(found: Mapping[str, Member], key: str, value: object, hint: str) -> None:
    if key in found and found[key].node.value != value:
        refuse_at(f"{key} of another value than {str(value).lower()}", hint, found[key].node.span)


def _refuse_updates(member: Member, updates: str, hint: str) -> NoReturn:
    shown = updates if updates in {"insert_delete", "redis", "snowflake", "confluent_jdbc", "debezium"} else "this"
    refuse_at(f"{_UPDATES} {shown}", hint, member.node.span)


_FORMATS: Final[Mapping[str, Callable[[Member, Node, bool], list[Option]]]] = {
    "json": _json,
    "csv": _csv,
    "avro": _avro,
    "raw": _raw,
}
