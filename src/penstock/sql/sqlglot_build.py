"""Which build of sqlglot is installed.

The compiled build (`sqlglotc`) has classes that cannot be extended at run time, and our dialect extends its tokenizer,
parser and generator. It would fail somewhere inside with a message nobody understands, so we refuse it by name first.
"""

from __future__ import annotations

import sqlglot.tokens

from penstock.errors import PenstockError


def require_pure_python() -> None:
    """Raise INSTALLATION_UNUSABLE when sqlglot is the compiled build."""
    if sqlglot.tokens.SQLGLOTC_INSTALLED:
        raise PenstockError(
            "INSTALLATION_UNUSABLE",
            "sqlglot is installed in its compiled build (sqlglotc), which custom dialects cannot extend",
            hint="run: pip uninstall sqlglotc; Penstock needs the pure Python build of sqlglot",
        )
