"""Spark as the one whom view stores ask: its errors become ours, told of the expression as the user knows it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from penstock.errors import RuntimeFailure
from penstock.runtime.failures import as_failure
from penstock.spark.asked_rows import AskedRows

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.errors import PenstockError
    from penstock.plan.finish_plan import Asked
    from penstock.runtime.functions import Functions
    from penstock.runtime.home import Home
    from penstock.stores.views.asked_functions import Spark

_HERE: Final = "Spark"
_MARKED: Final = re.compile(r" \(in [^()]*(?:\([^()]*\)[^()]*)*\)$")  # what Spark marks are columns a0, a1, …


def spark_to_ask(home: Home, functions: Functions) -> Spark:
    """What a view store calls; Spark is started by the first call, where nothing has started it before."""
    asked_rows = AskedRows(home.spark, functions.make_ready)

    def ask(asked: Asked, rows: pa.Table) -> pa.ChunkedArray:
        try:
            return asked_rows(asked, rows)
        except Exception as error:
            raise _told(asked, as_failure(_HERE, error)) from error

    return ask


def _told(asked: Asked, error: PenstockError) -> PenstockError:
    if error.condition != "DATA_ERROR":
        return error
    message = _MARKED.sub("", error.message.removeprefix(f"{_HERE}: "))
    return RuntimeFailure(error.condition, f"{message} (in {asked.words})", hint=error.hint, detail=error.detail)
