"""From text to statements: no catalog, no Spark, no I/O."""

from __future__ import annotations

from penstock.sql.sqlglot_build import require_pure_python

# Before any module here extends a class of sqlglot.
require_pure_python()
