"""Settings and options of other systems: taken, accepted without effect, or not there yet, but never misread."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.errors import NotYetError, OptionError, Span
from penstock.options import resolve_setting, setting_key, setting_notice
from tests.unit.options.written import interval, refusal, resolve, value

KEY, VALUE = Span(3, 5, 4, 30), Span(3, 20, 4, 45)
KAFKA = {"connector": "kafka", "topic": "t"}
FILE = {"connector": "filesystem", "path": "/data"}
JDBC = {"connector": "jdbc", "table-name": "t"}


@pytest.mark.parametrize(
    ("key", "written", "resolved"),
    [
        ("parallelism.default", 4, ("parallelism", 4)),
        ("streaming_parallelism", 4, ("parallelism", 4)),
        ("execution.checkpointing.interval", "10 s", ("checkpoint_interval", timedelta(seconds=10))),
        ("table.exec.state.ttl", "1 h", ("state_ttl", timedelta(hours=1))),
        ("updating_ttl", interval(5_000_000), ("state_ttl", timedelta(seconds=5))),
        ("table.exec.source.idle-timeout", "5 s", ("idle_timeout", timedelta(seconds=5))),
        ("table.local-time-zone", "UTC", ("time_zone", "UTC")),
        ("state.backend.type", "hashmap", ("state_backend", "memory")),
    ],
)
def test_c11_settings_with_a_meaning_here(key: str, written: object, resolved: tuple[str, object]) -> None:
    assert resolve_setting(key, value(written)) == resolved
    assert setting_notice(key) is None


@pytest.mark.parametrize(
    ("key", "written", "typed"),
    [
        ("execution.runtime-mode", "STREAMING", "streaming"),
        ("pipeline.name", "orders", "orders"),
        ("sql-client.execution.result-mode", "tableau", "tableau"),
        ("table.exec.mini-batch.enabled", "true", True),
        ("table.exec.mini-batch.allow-latency", "5 s", timedelta(seconds=5)),
        ("table.exec.mini-batch.size", 5000, 5000),
        ("background_ddl", True, True),
        ("rw_implicit_flush", True, True),
    ],
)
def test_c11_harmless_settings_are_accepted_with_a_notice(key: str, written: object, typed: object) -> None:
    assert resolve_setting(key.upper(), value(written)) == (key, typed)
    assert setting_key(key) == key
    assert str(setting_notice(key)).startswith(f"setting {key} changes nothing here: ")


@pytest.mark.parametrize(
    "key",
    [
        "table.exec.sink.upsert-materialize",
        "execution.checkpointing.storage",
        "restart-strategy",
        "sql-client.prompt",
        "restart-strategy.exponential-delay.max-backoff",
        "state.checkpoints.dir",
        "taskmanager.numberOfTaskSlots",
        "source_rate_limit",
        "streaming_parallelism_for_sink",
    ],
)
def test_c11_settings_that_are_not_there_yet(key: str) -> None:
    with pytest.raises(NotYetError) as caught:
        resolve_setting(key, value("canary"), KEY, VALUE)
    assert (caught.value.condition, caught.value.span) == ("CLAUSE_NOT_YET", KEY)
    assert "did you mean" not in str(caught.value.hint)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("execution.runtime-mode", "batch"),
        ("execution.runtime-mode", "AUTOMATIC"),
        ("table.local-time-zone", "Europe/Berlin"),
        ("time_zone", "GMT+08:00"),
        ("time_zone", "America/Argentina/Buenos_Aires"),
    ],
)
def test_c11_values_that_are_not_there_yet(key: str, written: str) -> None:
    with pytest.raises(NotYetError) as caught:
        resolve_setting(key, value(written), KEY, VALUE)
    assert (caught.value.condition, caught.value.span) == ("CLAUSE_NOT_YET", VALUE)


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("execution.runtime-mode", "banana"),
        ("time_zone", "far away"),
        ("background_ddl", "banana"),
        ("pipeline.name", "${env:NAME}"),
    ],
)
def test_c11_values_that_no_system_takes(key: str, written: str) -> None:
    with pytest.raises(OptionError) as caught:
        resolve_setting(key, value(written), KEY, VALUE)
    assert (caught.value.condition, caught.value.span) == ("INVALID_SETTING", VALUE)


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("table.exec.state.tll", "state_ttl"),
        ("dialekt", "dialect"),
        ("table_size", None),
        ("colour", None),
        ("rw_colour", None),
    ],
)
def test_c11_unknown_settings_stay_unknown(key: str, meant: str | None) -> None:
    with pytest.raises(OptionError) as caught:
        resolve_setting(key, value("x"), KEY, VALUE)
    assert caught.value.condition == "UNKNOWN_SETTING"
    assert caught.value.hint == (f"did you mean {meant}?" if meant else "SHOW SETTINGS lists what can be set")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ({**KAFKA, "proprties.x": "1"}, None),
        ({**KAFKA, "proprties.group.id": "1"}, "group_id"),
        ({**KAFKA, "time_partition_pattern": "%Y"}, None),
        ({**FILE, "time_patern": "%Y"}, None),
        ({**FILE, "patern": "*.json"}, "pattern"),
        ({**KAFKA, "scan.startup.mod": "earliest"}, "start"),
        ({**JDBC, "url": "postgresql://h/d", "lookup.cach.ttl": "1 h"}, "refresh"),
    ],
)
def test_c11_only_good_suggestions(written: dict[str, object], meant: str | None) -> None:
    error = refusal(written)
    assert error.condition == "UNKNOWN_OPTION"
    assert ("did you mean" in str(error.hint)) is (meant is not None)
    assert meant is None or error.hint == f"did you mean {meant}?"


@pytest.mark.parametrize(
    "written",
    [
        {**FILE, "sink.partition-commit.policy.class": "com.example.Policy"},
        {**FILE, "sink.partition-commit.policy.kind": "success-file", "auto-compaction": "true"},
        {**FILE, "time_partition_pattern": "%Y"},
        {"connector": "delta", "path": "/data", "time_partition_pattern": "%Y"},
        {**JDBC, "url": "postgresql://h/d", "scan.partition.column": "id"},
    ],
)
def test_c11_options_that_are_not_there_yet(written: dict[str, object]) -> None:
    error = refusal(written, role="sink")
    assert isinstance(error, NotYetError)
    assert error.condition == "CLAUSE_NOT_YET"
    assert error.span is not None
    assert error.span.column == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"sink.partition-commit.delay": "1 h"},
            "option sink.partition-commit.delay changes nothing here: the files of a batch can be read",
        ),
        ({"rollover_interval": "1 min"}, "option rollover_interval changes nothing here: each batch ends its files"),
    ],
)
def test_c11_what_changes_nothing_is_told(given: dict[str, object], words: str) -> None:
    assert any(text.startswith(words) for text in resolve({**FILE, **given}, role="sink").notices)
    assert not any("changes nothing" in text for text in resolve(FILE, role="sink").notices)


def test_c11_a_key_nobody_knows_comes_before_one_that_is_not_there_yet() -> None:
    error = refusal({**FILE, "auto-compaction": "true", "colour": "red"}, role="sink")
    assert error.condition == "UNKNOWN_OPTION"


@pytest.mark.parametrize("url", ["jdbc:mysql://u:canary@h:3306/d", "mysql://h/d", "JDBC:MySQL://h/d"])
def test_c4_another_database_is_not_there_yet(url: str) -> None:
    error = refusal({**JDBC, "url": url})
    assert isinstance(error, NotYetError)
    assert (error.condition, "MySQL" in error.message) == ("CONNECTOR_NOT_YET", True)
    assert "canary" not in f"{error} {error.detail}"


def test_c4_a_delta_table_holds_parquet() -> None:
    delta = {"connector": "delta", "path": "/data"}
    assert resolve({**delta, "format": "parquet"}, role="sink").format == "parquet"
    assert resolve(delta, role="sink").format is None
    assert refusal({**delta, "format": "json"}, role="sink").condition == "INVALID_OPTION"


@pytest.mark.parametrize("key", ["source.path.regex-pattern", "source.regex_pattern"])
def test_a_regular_expression_of_flink_and_arroyo_is_no_glob(key: str) -> None:
    found = resolve({**FILE, key: r".*\.json"})
    assert (found.values.get("pattern"), found.values["pattern_regex"]) == (None, r".*\.json")
    error = refusal({**FILE, key: "*.json"})
    assert (error.condition, "pattern takes a glob" in str(error.hint)) == ("INVALID_OPTION", True)
