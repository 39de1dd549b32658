"""Settings, and the options of views and INSERTs, with the defaults of the interface page."""

from __future__ import annotations

from datetime import timedelta

import pytest

from penstock.errors import OptionError, Span
from penstock.options import (
    SETTINGS,
    default_settings,
    resolve_insert_options,
    resolve_setting,
    resolve_view_options,
    setting_key,
    setting_notice,
)
from penstock.sql.statements import Name
from tests.unit.options.written import interval, options, resolve, value

KEY, VALUE = Span(3, 5, 4, 30), Span(3, 20, 4, 45)
VIEW = Name("hourly")


def test_defaults_of_the_interface_page() -> None:
    defaults = default_settings()
    assert defaults["dialect"] == "penstock"
    assert defaults["default_watermark_delay"] == timedelta(seconds=5)
    assert defaults["idle_timeout"] == timedelta(seconds=60)
    assert defaults["max_future_drift"] == timedelta(days=1)
    assert defaults["kafka.bootstrap_servers"] == "127.0.0.1:9092"
    assert defaults["max_parallelism"] == 16
    assert (defaults["bad_data"], defaults["late"], defaults["state_backend"]) == ("dead_letter", "keep", "rocksdb")
    assert set(defaults) == {spec.key for spec in SETTINGS}


@pytest.mark.parametrize(
    ("key", "written", "resolved"),
    [
        ("dialect", "Flink", ("dialect", "flink")),
        ("IDLE-TIMEOUT", "5 s", ("idle_timeout", timedelta(seconds=5))),
        ("table.exec.source.idle-timeout", "1000", ("idle_timeout", timedelta(seconds=1))),
        ("table.exec.state.ttl", "1 h", ("state_ttl", timedelta(hours=1))),
        ("updating_ttl", interval(5_000_000), ("state_ttl", timedelta(seconds=5))),
        ("checkpoint_interval_seconds", 60, ("checkpoint_interval", timedelta(seconds=60))),
        ("parallelism.default", "4", ("parallelism", 4)),
        ("state_backend", "marbledb", ("state_backend", "rocksdb")),
        ("default_watermark_delay", 0, ("default_watermark_delay", timedelta(0))),
        ("broadcast_max_bytes", "1 MB", ("broadcast_max_bytes", 1024**2)),
    ],
)
def test_settings(key: str, written: object, resolved: tuple[str, object]) -> None:
    assert resolve_setting(key, value(written)) == resolved


def test_unknown_setting() -> None:
    with pytest.raises(OptionError) as caught:
        resolve_setting("idle_timout", value("canary"), KEY, VALUE)
    assert (caught.value.condition, caught.value.span) == ("UNKNOWN_SETTING", KEY)
    assert "idle_timeout" in str(caught.value.hint)
    assert "canary" not in f"{caught.value} {caught.value.detail}"


@pytest.mark.parametrize(
    ("key", "written"),
    [
        ("dialect", "oracle"),
        ("max_parallelism", 0),
        ("max_parallelism", "${env:N}"),
        ("state_backend", "banana"),
        ("time_zone", "far away"),
        ("idle_timeout", "-1 s"),
    ],
)
def test_h9_m10_values_that_no_setting_takes(key: str, written: object) -> None:
    with pytest.raises(OptionError) as caught:
        resolve_setting(key, value(written), KEY, VALUE)
    assert (caught.value.condition, caught.value.span) == ("INVALID_SETTING", VALUE)


@pytest.mark.parametrize(
    ("key", "written", "hint"),
    [
        (
            "idle_timeout",
            "abc",
            "write a number with its unit, such as '5 s', or leave it out for the default, 1 minute",
        ),
        ("state_ttl", "abc", "write a number with its unit, such as '5 s'"),
        ("max_parallelism", 0, "leave it out for the default, 16"),
        ("late", "dorp", "did you mean 'drop'?"),
    ],
)
def test_what_to_write_instead_is_told(key: str, written: object, hint: str) -> None:
    with pytest.raises(OptionError) as caught:
        resolve_setting(key, value(written), KEY, VALUE)
    assert caught.value.hint == hint


@pytest.mark.parametrize("key", ["checkpoint_interval", "max_future_drift", "changelog_retention"])
@pytest.mark.parametrize("written", ["0 s", 0, interval(0)])
def test_a_duration_of_nothing_is_told_to_be_longer(key: str, written: object) -> None:
    with pytest.raises(OptionError, match="must be a duration longer than zero"):
        resolve_setting(key, value(written), KEY, VALUE)


@pytest.mark.parametrize(
    ("key", "written", "told"),
    [
        ("idle_timeout", 5, "idle_timeout = 5 means 5 milliseconds"),
        ("idle_timeout", "5", "idle_timeout = 5 means 5 milliseconds"),
        ("idle_timeout", "5 s", None),
        ("idle_timeout", interval(5_000_000), None),
        ("idle_timeout", 0, None),
        ("table.exec.source.idle-timeout", 5000, None),  # in Flink a bare number counts milliseconds
        ("checkpoint_interval_seconds", 5, None),
        ("max_parallelism", 5, None),
    ],
)
def test_a_number_without_a_unit_is_taken_with_a_notice(key: str, written: object, told: str | None) -> None:
    notice = setting_notice(key, value(written))
    assert notice is None if told is None else str(notice).startswith(told)


def test_reset_finds_the_same_setting() -> None:
    assert setting_key("Table.Exec.State.TTL") == "state_ttl"
    with pytest.raises(OptionError, match="UNKNOWN_SETTING"):
        setting_key("nonsense", KEY)


def test_view_defaults() -> None:
    found = resolve_view_options((), VIEW)
    assert (found.late, found.mode, found.state_backend) == ("keep", "microbatch", "rocksdb")
    assert (found.state, found.state_ttl, found.parallelism, found.freshness) == (None, None, None, None)
    assert found.given == frozenset()


def test_f4_view_options() -> None:
    found = resolve_view_options(
        options(
            {
                "late-data": "drop",
                "state": "spark",
                "state_backend": "tonbo",
                "state_ttl": "1 day",
                "mode": "real-time",
                "parallelism": "8",
                "max_rows_per_batch": 1000,
                "freshness": interval(60_000_000),
            }
        ),
        VIEW,
    )
    assert (found.late, found.state, found.state_backend, found.mode) == ("drop", "spark", "rocksdb", "realtime")
    assert (found.state_ttl, found.freshness) == (timedelta(days=1), timedelta(minutes=1))
    assert (found.parallelism, found.max_rows_per_batch) == (8, 1000)
    assert found.shown()["state_ttl"] == "1 day"
    again = resolve_view_options(found.canonical, VIEW)
    assert again == found


def test_a_setting_gives_what_the_view_does_not() -> None:
    found = resolve_view_options((), VIEW, {"state_ttl": timedelta(hours=1), "late": "fail"})
    assert (found.state_ttl, found.late) == (timedelta(hours=1), "fail")
    assert {"state_ttl", "late"} <= found.from_settings


@pytest.mark.parametrize(
    ("written", "condition"),
    [
        ({"lat": "keep"}, "UNKNOWN_OPTION"),
        ({"connector": "kafka"}, "UNKNOWN_OPTION"),
        ({"late": "maybe"}, "INVALID_OPTION"),
        ({"state_backend": "banana"}, "INVALID_OPTION"),
        ({"late": "keep", "late-data": "drop"}, "CONFLICTING_OPTIONS"),
    ],
)
def test_view_options_that_are_refused(written: dict[str, object], condition: str) -> None:
    with pytest.raises(OptionError) as caught:
        resolve_view_options(options(written), VIEW)
    assert caught.value.condition == condition
    assert caught.value.span is not None


def test_the_job_of_an_insert_is_named_after_its_sink() -> None:
    assert resolve_insert_options((), Name("out")).job_name == "insert_out"
    assert resolve_insert_options(options({"job_name": "mine"}), Name("out")).job_name == "mine"
    assert resolve_view_options((), VIEW).job_name is None


def test_what_a_sink_says_of_its_jobs_holds_for_an_insert_that_does_not_say_otherwise() -> None:
    written = {"connector": "kafka", "topic": "t", "mode": "realtime", "late": "drop", "parallelism": 3}
    sink = resolve(written, role="sink")
    found = resolve_insert_options(options({"late": "fail"}), Name("out"), {"parallelism": 7}, sink)
    assert (found.mode, found.late, found.parallelism, found.job_name) == ("realtime", "fail", 3, "insert_out")
    assert found.given == {"mode", "late", "parallelism"}
    assert "parallelism" not in found.from_settings
    assert (
        resolve_insert_options((), Name("out"), sink=resolve({**written, "job_name": "x"}, role="sink")).job_name == "x"
    )


@pytest.mark.parametrize("key", ["delivery", "sink.delivery-guarantee"])
def test_what_a_sink_guarantees_is_not_for_an_insert_to_say(key: str) -> None:
    with pytest.raises(OptionError, match="belongs to the sink: INSERT INTO out cannot change") as caught:
        resolve_insert_options(options({key: "exactly_once"}), Name("out"))
    assert (caught.value.condition, caught.value.hint) == ("UNKNOWN_OPTION", "write it in the WITH of CREATE SINK out")
    assert caught.value.span is not None
