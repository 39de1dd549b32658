"""Computed columns as the frame of their source reads them: by bare names, also inside other values."""

from __future__ import annotations

import pytest

from penstock.catalog.model import SourceDefinition
from penstock.plan.computed import bind_computed
from penstock.plan.script import analyze_script
from penstock.plan.spark_text import spark_sql


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("v", "`v`"),
        ("v * 2 + 1", "`v` * 2 + 1"),
        ("UPPER(k)", "upper(`k`)"),
        ("p.a", "`p`.`a`"),
        ("TRANSFORM(l, x -> x + v)", "transform(`l`, `x` -> x + `v`)"),
    ],
)
def test_columns_have_no_qualifier(column: str, expected: str) -> None:
    sql = f"CREATE STREAM c (v BIGINT, k STRING, p STRUCT<a INT>, l ARRAY<BIGINT>, w AS {column})"
    analysis = analyze_script(sql)[0].analysis
    assert analysis is not None
    definition = analysis.definition
    assert isinstance(definition, SourceDefinition)
    computed = definition.columns[-1].computed
    assert computed is not None
    assert spark_sql(bind_computed(definition, computed, analysis.session)[0], pretty=False) == expected
