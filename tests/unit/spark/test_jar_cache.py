"""The cache of connectors' jars: what is fetched is checked, and what is there and whole is not fetched again."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.interfaces.cli.main import run
from penstock.spark import jar_cache, jar_pins
from penstock.spark.jar_cache import JarCache, cache_directory, ivy_module
from penstock.spark.jar_pins import JAR_SETS, Jar, JarSet, jar_set

CONTENT = {"one-1.0.jar": b"first", "two-2.0.jar": b"second"}


def pinned(name: str, version: str) -> Jar:
    return Jar("example.org", name, version, hashlib.sha256(CONTENT[f"{name}-{version}.jar"]).hexdigest())


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """Two jars in a set called `sample`; the repository holds what `CONTENT` says, and each visit to it is noted."""
    sample = JarSet("sample", "for tests", (pinned("one", "1.0"), pinned("two", "2.0")))
    monkeypatch.setattr(jar_cache, "JAR_SETS", (sample,))
    monkeypatch.setattr(jar_pins, "JAR_SETS", (sample,))
    monkeypatch.setenv("PENSTOCK_CONNECTOR_CACHE", str(tmp_path / "cache"))
    visits: list[list[str]] = []

    def repository(jars: Collection[Jar], place: Path) -> None:
        visits.append([jar.file for jar in jars])
        (place / "jars").mkdir()
        for jar in jars:
            if jar.file in CONTENT:
                (place / "jars" / jar.file).write_bytes(CONTENT[jar.file])

    monkeypatch.setattr(jar_cache, "run_ivy", repository)
    return visits


def test_jars_are_fetched_once_and_told_of(fetches: list[list[str]]) -> None:
    cache, told = JarCache(), list[str]()
    assert not cache.installed("sample")
    assert cache.for_spark() == []
    assert cache.install(["sample"], told.append) == ["sample"]
    assert [path.read_bytes() for path in cache.paths("sample")] == [b"first", b"second"]
    assert cache.for_spark() == cache.paths("sample")
    assert len(told) == 1
    assert "installing connector sample: 2 files" in told[0]
    assert cache.install(["sample"], told.append) == []
    assert fetches == [["one-1.0.jar", "two-2.0.jar"]]
    assert sorted(path.name for path in cache.directory.iterdir()) == [".lock", "one-1.0.jar", "two-2.0.jar"]


def test_a_jar_that_was_changed_is_refused_and_fetched_anew(fetches: list[list[str]]) -> None:
    cache = JarCache()
    cache.install(["sample"], lambda _: None)
    (cache.directory / "two-2.0.jar").write_bytes(b"other")
    assert cache.for_spark() == []
    with pytest.raises(PenstockError) as raised:
        cache.paths("sample")
    assert raised.value.condition == "CHECKSUM_MISMATCH"
    assert raised.value.hint == "run: penstock connector install sample"
    cache.install(["sample"], lambda _: None)
    assert fetches[1:] == [["two-2.0.jar"]]
    assert cache.paths("sample")[1].read_bytes() == b"second"


def test_what_the_repository_gives_must_be_what_is_pinned(
    fetches: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CONTENT, "two-2.0.jar", b"something else")
    cache = JarCache()
    with pytest.raises(PenstockError) as raised:
        cache.install(["sample"], lambda _: None)
    assert raised.value.condition == "CHECKSUM_MISMATCH"
    assert "two-2.0.jar" in raised.value.message
    # Nothing of it is kept, not even what was right.
    assert not cache.installed("sample")
    assert [path.name for path in cache.directory.iterdir()] == [".lock"]


def test_a_jar_that_does_not_arrive_is_an_error(fetches: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(CONTENT, "two-2.0.jar")
    with pytest.raises(PenstockError) as raised:
        JarCache().install(["sample"], lambda _: None)
    assert raised.value.condition == "DOWNLOAD_FAILED"


def test_jars_that_are_missing_say_what_to_run(fetches: list[list[str]]) -> None:
    with pytest.raises(PenstockError) as raised:
        JarCache().paths("sample")
    assert raised.value.condition == "CONNECTOR_MISSING"
    assert raised.value.hint == "run: penstock connector install sample"


def test_a_cache_that_cannot_be_written_is_an_error(fetches: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PenstockError) as raised:
        JarCache(tmp_path / "file" / "cache").install(["sample"], lambda _: None)
    assert raised.value.condition == "DOWNLOAD_FAILED"
    assert "PENSTOCK_CONNECTOR_CACHE" in str(raised.value.hint)


def test_where_the_cache_is(tmp_path: Path) -> None:
    own = {"PENSTOCK_CONNECTOR_CACHE": str(tmp_path / "own"), "XDG_CACHE_HOME": "/cache"}
    assert cache_directory(own) == tmp_path / "own"
    assert cache_directory({"XDG_CACHE_HOME": "/cache"}) == Path("/cache/penstock/jars")
    assert cache_directory({}) == Path.home() / ".cache" / "penstock" / "jars"


def test_every_pin_is_a_place_and_a_checksum() -> None:
    assert [one.name for one in JAR_SETS] == ["kafka", "avro", "kafka-broker"]
    for one in JAR_SETS:
        assert one.jars
        for jar in one.jars:
            assert len(jar.sha256) == 64
            assert bytes.fromhex(jar.sha256)
            assert all((jar.organisation, jar.module, jar.version[0].isdigit()))
        assert len({jar.file for jar in one.jars}) == len(one.jars)


def test_ivy_is_asked_for_these_versions_and_no_others() -> None:
    text = ivy_module(jar_set("kafka").jars)
    assert 'name="kafka-clients" rev="3.9.2" transitive="false"/>' in text
    assert text.count("<dependency ") == text.count('transitive="false"') == len(jar_set("kafka").jars)


def test_the_commands(fetches: list[list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["connector", "list"]) == 0
    assert capsys.readouterr().out == "sample        not installed  for tests\n"
    assert run(["connector", "install", "sample"]) == 0
    out, err = capsys.readouterr()
    assert out == "sample installed: 2 files, checked\n"
    assert err.startswith("installing connector sample: 2 files into ")
    assert run(["connector", "install", "sample"]) == 0
    assert capsys.readouterr().out == "sample is there already: 2 files, checked\n"
    assert run(["connector", "list", "--json"]) == 0
    assert '"installed": true' in capsys.readouterr().out
    assert run(["connector", "install", "nothing"]) == 1
    assert "no connector nothing can be installed" in capsys.readouterr().err
    assert run(["connector", "install"]) == 2
