"""The order in which jobs are waited for: what writes comes before what reads (SC22)."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from penstock.runtime.job_control import writers_first


def job(name: str, *, reads: tuple[str, ...] = (), writes: tuple[str, ...] = (), views: tuple[str, ...] = ()) -> Any:
    def relation(topic: str) -> Any:
        return SimpleNamespace(name=SimpleNamespace(text="other"), options=SimpleNamespace(values={"topic": topic}))

    spec = SimpleNamespace(
        plan=SimpleNamespace(views=views),
        sources=tuple(map(relation, reads)),
        sinks=tuple(map(relation, writes)),
        view=None if writes else name,
    )
    return SimpleNamespace(name=name, spec=spec)


def test_writers_come_first() -> None:
    jobs = [
        job("last", views=("middle",)),
        job("middle", reads=("b",)),
        job("alone", reads=("x",)),
        job("second", reads=("a",), writes=("b", "c")),
        job("first", reads=("x",), writes=("a",)),
    ]
    assert [each.name for each in writers_first(jobs)] == ["first", "second", "middle", "last", "alone"]


def test_rings_end() -> None:
    jobs = [job("one", reads=("a",), writes=("b",)), job("two", reads=("b",), writes=("a",))]
    assert {each.name for each in writers_first(jobs)} == {"one", "two"}
