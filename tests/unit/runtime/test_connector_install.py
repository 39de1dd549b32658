"""A statement that needs a connector: its jars are fetched before Spark starts, and asked for where it runs already."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from penstock.errors import RuntimeFailure
from penstock.runtime import home as home_module
from penstock.runtime.home import Home
from penstock.spark import jar_cache
from penstock.spark.jar_pins import Jar, jar_set
from penstock.spark.session import SparkSettings


class SessionStarted(Exception):
    """Spark would be started with these jars."""

    def __init__(self, jars: tuple[Path, ...]) -> None:
        self.jars = jars


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    monkeypatch.setenv("PENSTOCK_CONNECTOR_CACHE", str(tmp_path / "cache"))

    def started(settings: SparkSettings) -> None:
        raise SessionStarted(settings.jars)

    monkeypatch.setattr(home_module, "shared_session", started)
    found = Home(tmp_path / "state", {})
    yield found
    found.close()


def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Instead of a repository: empty files, whose sums are taken as they are; the names of those that were fetched."""
    names: list[str] = []

    def repository(jars: Collection[Jar], place: Path) -> None:
        (place / "jars").mkdir()
        for jar in jars:
            names.append(jar.file)
            (place / "jars" / jar.file).write_bytes(jar.file.encode())

    known = {jar.file: jar.sha256 for jar in jar_set("kafka").jars}
    monkeypatch.setattr(jar_cache, "run_ivy", repository)
    monkeypatch.setattr(jar_cache, "_sha256", lambda path: known[path.name])
    return names


def test_a_missing_connector_is_installed_before_spark_starts(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a line of what takes time; the second time there is nothing to fetch, and nothing is said."""
    monkeypatch.setattr(home_module, "session_running", lambda: False)
    names, wanted = fetched(monkeypatch), [jar.file for jar in jar_set("kafka").jars]
    with pytest.raises(SessionStarted) as started:
        home.spark(("kafka",))
    assert sorted(names) == sorted(wanted)
    assert {path.name for path in started.value.jars} >= set(wanted)
    told = capsys.readouterr()
    assert told.err.startswith(f"penstock: installing connector kafka: {len(wanted)} files into ")
    assert told.err.count("\n") == 1
    assert told.out == ""
    with pytest.raises(SessionStarted):
        home.spark(("kafka",))
    assert len(names) == len(wanted)
    assert capsys.readouterr().err == ""


def test_without_a_connector_nothing_is_fetched(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(home_module, "session_running", lambda: False)
    names = fetched(monkeypatch)
    with pytest.raises(SessionStarted) as started:
        home.spark()
    assert (names, started.value.jars) == ([], ())


def test_where_spark_runs_already_it_is_said_what_to_run(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Jars cannot be added to a session that runs; fetching them would only delay the error."""
    monkeypatch.setattr(home_module, "session_running", lambda: True)
    names = fetched(monkeypatch)
    with pytest.raises(RuntimeFailure) as raised:
        home.spark(("kafka",))
    assert raised.value.condition == "CONNECTOR_MISSING"
    assert "connector kafka" in raised.value.message
    assert "penstock connector install kafka" in str(raised.value.hint)
    assert names == []


def test_a_connector_that_was_installed_after_spark_started(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched(monkeypatch)
    jar_cache.JarCache().install(["kafka"], lambda _: None)
    monkeypatch.setattr(home_module, "session_running", lambda: True)
    with pytest.raises(RuntimeFailure) as raised:
        home.spark(("kafka",))
    assert raised.value.condition == "CONNECTOR_MISSING"
    assert "before connector kafka was installed" in raised.value.message
    assert "start the program again" in str(raised.value.hint)
    # With its jars it is another matter.
    monkeypatch.setattr(home_module, "session_jars", lambda: tuple(jar_cache.JarCache().paths("kafka")))
    with pytest.raises(SessionStarted):
        home.spark(("kafka",))
