"""Our own classes for Spark's JVM: where they are kept, and what is told where they cannot be made."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from penstock.errors import RuntimeFailure
from penstock.spark import own_jar as module
from penstock.spark.own_jar import own_jar


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "cache"
    monkeypatch.setenv("PENSTOCK_CONNECTOR_CACHE", str(place))
    return place


def test_it_is_compiled_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar = own_jar(tmp_path)
    assert jar.parent == cache
    assert [each.name for each in cache.iterdir()] == [jar.name]
    assert {"penstock/QuickJson.class", "penstock/Watch.class"} <= set(zipfile.ZipFile(jar).namelist())
    monkeypatch.setattr(module, "_build", lambda _: pytest.fail("compiled again"))
    assert own_jar(tmp_path) == jar


def test_another_text_is_another_jar(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_build", lambda jar: jar.write_bytes(b"made"))
    first = own_jar(tmp_path)
    monkeypatch.setattr(module, "_CLASSES", module._CLASSES[:1])
    assert own_jar(tmp_path) != first
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("place", ["a directory", "a file"])
def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CONNECTOR_CACHE", str(tmp_path / "file") if place == "a file" else "/proc/none")
    monkeypatch.setattr(module, "_build", lambda jar: jar.write_bytes(b"made"))
    assert own_jar(tmp_path / "logs").parent == tmp_path / "logs"


def test_what_does_not_compile_is_told(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "Broken.java"
    broken.write_text("class Broken {", "utf-8")
    monkeypatch.setattr(module, "_CLASSES", (broken,))
    with pytest.raises(RuntimeFailure, match="could not be compiled") as raised:
        own_jar(tmp_path)
    assert raised.value.condition == "SPARK_FAILED"
    assert "Broken.java" in (raised.value.detail or "")
    assert list(cache.iterdir()) == []
