"""From SQL text to statements: frozen values with source spans, secrets wrapped. Nothing here does I/O."""

from __future__ import annotations

from penstock.sql.sqlglot_build import require_pure_python

# Before any module of this package extends a class of sqlglot.
require_pure_python()
