"""From the options of a file relation to the files it means."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from penstock.catalog.model import SinkDefinition, SourceDefinition
from penstock.connectors.option_values import microseconds, text
from penstock.errors import NotYetError, OptionError
from penstock.stores.files.faults import outside
from penstock.stores.files.file_set import FileSet
from penstock.stores.files.listing import fixed_part, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.catalog.model import Definition
    from penstock.connectors.source import ScanRequest

_LINES: Final = frozenset({"json", "csv", "raw"})
# What Arrow unpacks as a stream, in its words.
_CODECS: Final = {"none": "none", "gzip": "gzip", "zstd": "zstd", "bzip2": "bz2", "lz4": "lz4"}
_LOOK_MS: Final = 1_000


def file_set(request: ScanRequest) -> FileSet:
    """The files that a scan reads; NotYetError or INVALID_OPTION where this version cannot."""
    definition = request.definition
    options = definition.options
    values, format_ = options.values, check_format(definition)
    quote, delimiter = _csv_marks(values) if format_ == "csv" else (None, ",")
    interval = microseconds(values, "monitor_interval")
    header = None
    if format_ == "csv" and values.get("csv.header") is True:
        header = tuple(column.name for column in definition.columns if column.physical)
    return FileSet(
        relation=definition.name.text,
        path=local_path(definition),
        kind="parquet" if format_ == "parquet" else "lines",
        tail=not definition.bounded,
        pattern=text(values, "pattern"),
        regex=text(values, "pattern_regex"),
        recursive=values.get("recursive") is not False,
        compression=codec_of(definition),
        header=header,
        quote=quote,
        delimiter=delimiter,
        roots=request.roots,
        any_case=values.get("parquet.case_insensitive") is not False,
        look_every_ms=_LOOK_MS if interval is None else max(1, interval // 1_000),
    )


def check_place(definition: Definition, roots: tuple[str, ...] | None) -> None:
    """PATH_NOT_ALLOWED for a file relation whose path lies outside the roots, told when it is created."""
    if roots is None or not isinstance(definition, SourceDefinition | SinkDefinition):
        return
    if definition.options.connector != "file":
        return
    path = local_path(definition)
    if not within(fixed_part(path), roots):
        raise outside(definition.name.text, path)


def refuse_shared(definition: Definition, others: Iterable[Definition]) -> None:
    """INVALID_OPTION for a sink of one plain file that another sink writes: their rows would mix in it."""
    path = _plain_file(definition)
    for other in others if path is not None else ():
        if other.name != definition.name and _plain_file(other) == path:
            raise OptionError(
                "INVALID_OPTION",
                f"sink {other.name} writes to {path} already, and {definition.name} would mix its rows with those",
                hint=f"name another file; or INSERT INTO {other.name}, which takes the rows of several queries",
            )


def _plain_file(definition: Definition) -> str | None:
    """The one file that a sink writes, however it is spelt; None of everything else."""
    if not isinstance(definition, SinkDefinition) or definition.options.connector != "file":
        return None
    if definition.options.values.get("single_file") is not True:
        return None
    return str(Path(local_path(definition)).resolve())


def check_format(definition: SourceDefinition | SinkDefinition) -> str:
    """The format of a file relation, if this version has it."""
    format_ = definition.options.format or "json"
    if format_ not in _LINES and format_ != "parquet":
        raise NotYetError(
            "QUERY_NOT_YET",
            f"files in format {format_} are not there yet, and {definition.name} has it",
            hint="use json, csv, parquet or raw",
        )
    return format_


def codec_of(definition: SourceDefinition | SinkDefinition) -> str | None:
    """The compression that a relation asks for, in Arrow's words; None where it asks for none in particular."""
    asked = text(definition.options.values, "compression")
    if asked is None or definition.options.format == "parquet":
        return None
    if asked not in _CODECS:
        raise OptionError(
            "INVALID_OPTION",
            f"text files cannot be compressed with {asked}, which {definition.name} asks for",
            hint=f"use one of {', '.join(_CODECS)}",
        )
    return _CODECS[asked]


def local_path(definition: SourceDefinition | SinkDefinition) -> str:
    """The absolute path of a relation; QUERY_NOT_YET where it is not on this machine.

    A relative path counts from the directory that the program was started in.
    """
    written = text(definition.options.values, "path")
    assert written is not None, "path is a required option"
    parts = urlsplit(written) if "://" in written else None
    if parts is not None:
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise NotYetError(
                "QUERY_NOT_YET",
                f"files under {parts.scheme}:// are not there yet, and {definition.name} names one",
                hint="use a path of this machine",
            )
        written = unquote(parts.path)
    elif written.startswith("file:"):
        written = written.removeprefix("file:")
    return str(Path(written).expanduser().absolute())


def _csv_marks(values: Mapping[str, object]) -> tuple[str | None, str]:
    """The quote inside which a line break does not end a record, None where every one does; and the separator."""
    delimiter = str(values.get("csv.delimiter") or ",")
    delimiter = "\t" if delimiter == "\\t" else delimiter
    quote = str(values.get("csv.quote") or '"')
    escape = values.get("csv.escape")
    plain = quote.isascii() and delimiter.isascii() and escape in (None, quote)
    return (quote if plain and values.get("csv.no_quote") is not True else None), delimiter
