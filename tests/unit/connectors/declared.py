"""Definitions for the tests of connectors: a statement, as the catalog keeps it."""

from __future__ import annotations

from pathlib import Path

from penstock.catalog.model import SinkDefinition, SourceDefinition
from penstock.connectors.source import ScanRequest
from penstock.plan.script import analyze_script


def source(statement: str) -> SourceDefinition:
    """The source that a CREATE STREAM defines."""
    *_, report = analyze_script(statement)
    assert report.analysis is not None, report.error
    definition = report.analysis.definition
    assert isinstance(definition, SourceDefinition)
    return definition


def sink(statement: str) -> SinkDefinition:
    """The sink that a CREATE SINK or CREATE TABLE … (type = 'sink') defines."""
    *_, report = analyze_script(statement)
    assert report.analysis is not None, report.error
    definition = report.analysis.definition
    assert isinstance(definition, SinkDefinition)
    return definition


def request(definition: SourceDefinition, state_path: Path, **wanted: object) -> ScanRequest:
    """A scan of all physical columns, by the first start of a job that begins at the oldest rows."""
    columns = tuple(column.name for column in definition.columns if column.physical)
    values = {"id": "s", "columns": columns, "run": 1, "job": "j", **wanted}
    return ScanRequest(definition=definition, state_path=state_path, **values)  # type: ignore[arg-type]
