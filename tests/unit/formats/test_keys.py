"""What of a relation is in the keys of its records."""

from __future__ import annotations

from penstock.formats.keys import key_columns, key_options, key_relation, value_relation
from penstock.formats.registry import subjects_of
from tests.unit.catalog.defining import source_of


def test_key_and_value_are_relations_of_their_own() -> None:
    made = source_of(
        "CREATE STREAM s (k_id INT, v STRING, k_at TIMESTAMP, o BIGINT METADATA FROM 'offset') WITH ("
        "connector = 'kafka', topic = 't', format = 'json', 'key.format' = 'avro', 'key.fields' = 'k_id;K_AT', "
        "'key.fields-prefix' = 'k_', 'value.fields-include' = 'EXCEPT_KEY', "
        """'key.avro.schema' = '{"type": "record", "name": "K", "fields": []}')"""
    )
    assert key_columns(made) == {"k_id": "id", "k_at": "at"}
    key, value = key_relation(made), value_relation(made)
    assert [(one.name, str(one.type)) for one in key.columns] == [("id", "INT"), ("at", "TIMESTAMP")]
    assert key.options.format == "avro"
    assert str(key.options.values["avro.schema"]).startswith('{"type": "record", "name": "K"')
    assert [one.name for one in value.columns] == ["v", "o"]


def test_a_raw_key_is_a_text_first() -> None:
    made = source_of("CREATE STREAM s (n INT, v STRING) WITH (connector = 'kafka', topic = 't', 'key.fields' = 'n')")
    assert key_columns(made) == {"n": "value"}
    assert [(one.name, str(one.type)) for one in key_relation(made).columns] == [("value", "STRING")]
    assert value_relation(made) is made


def test_topics_of_our_own_have_no_columns_in_keys() -> None:
    made = source_of("CREATE STREAM s (n INT) WITH (connector = 'topic', format = 'json', 'key.fields' = 'n')")
    assert key_columns(made) == {}


def test_keys_share_the_registry_and_have_subjects_of_their_own() -> None:
    options = {
        "topic": ("t",), "schema_registry.url": "u", "schema_registry.subject": "s", "key.format": "avro-confluent",
        "key.fields": ("a",), "value.subject": "v",
    }  # fmt: skip
    assert (subjects_of(options), subjects_of(key_options(options))) == (("s",), ("t-key",))
    assert key_options(options)["schema_registry.url"] == "u"
    assert key_options({**options, "key.schema_registry.url": "own"})["schema_registry.url"] == "own"
    assert subjects_of(key_options({**options, "key.schema_registry.subject": "mine"})) == ("mine",)
