"""When a relation over Debezium's records is a stream of envelopes."""

from __future__ import annotations

import pytest

from tests.unit.catalog.defining import source_of

ROW = "STRUCT<id INT, name STRING>"


@pytest.mark.parametrize(
    ("columns", "options", "changes"),
    [
        (f"op STRING, before {ROW}, after {ROW}, ts_ms BIGINT, at BIGINT METADATA FROM 'offset'", "", "append"),
        (f"op STRING, after {ROW}", "", "append"),
        (f"before {ROW}, after {ROW}", "", "retract"),
        ("id INT, name STRING", "", "retract"),
        ("op STRING, name STRING", "", "retract"),
        ("op STRING, name STRING", ", changes = 'append'", "append"),
        (f"op STRING, after {ROW}", ", changes = 'retract'", "retract"),
    ],
)
def test_columns_say_whether_changes_or_envelopes_are_read(columns: str, options: str, changes: str) -> None:
    made = source_of(
        f"CREATE STREAM s ({columns}) WITH (connector = 'kafka', topic = 't', format = 'debezium-json'{options})"
    )
    assert made.mode == changes


def test_another_format_is_left_alone() -> None:
    made = source_of(
        f"CREATE STREAM s (op STRING, after {ROW}, PRIMARY KEY (op) NOT ENFORCED) WITH (connector = 'kafka', topic = 't', changes = 'upsert')"
    )
    assert made.mode == "upsert"
