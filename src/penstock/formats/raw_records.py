"""Records that are not decoded: one column that is the value, or the columns of a Kafka topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.formats.texts import first_error
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

    from penstock.catalog.model import ColumnDefinition, SourceDefinition

_HIDDEN: Final = {"key": "__key", "timestamp": "__timestamp", "partition": "__partition", "offset": "__offset"}


def decode_raw(frame: DataFrame, definition: SourceDefinition, wanted: Sequence[ColumnDefinition]) -> DataFrame:
    """The frame with the wanted columns and `__error`, which is set where a text column holds no text."""
    from pyspark.sql import functions as f

    # Of several topics each has its own numbers.
    own = {"partition": "__topic_partition"} if "__topic_partition" in frame.columns else {}
    hidden = {**_HIDDEN, **own}
    charset = str(definition.options.values.get("raw.charset", "UTF-8"))
    found: dict[str, Column] = {}
    errors: list[Column] = []
    for column in wanted:
        type_ = column.type or STRING
        bare = column.name.lower().replace("_", "")
        read = f.col(hidden.get(bare, "__value"))
        if bare in {"timestamp", "partition", "offset"}:
            found[column.name] = read.cast(type_.spark())
        elif type_.name == "BINARY":
            found[column.name] = read
        elif charset == "UTF-8":
            text = read.cast("string")
            found[column.name] = f.when(f.is_valid_utf8(text), text)
            errors.append(f.when(~f.is_valid_utf8(text), f.lit(f'column "{column.name}": not valid UTF-8')))
        elif charset == "US-ASCII":
            text = read.cast("string")
            plain = ~text.rlike(r"[^\x00-\x7F]")
            found[column.name] = f.when(plain, text)
            errors.append(f.when(~plain, f.lit(f'column "{column.name}": not US-ASCII')))
        else:
            found[column.name] = f.decode(read, charset)
    return frame.withColumns({**found, "__error": first_error(errors)})
