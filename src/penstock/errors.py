"""Every error a user can meet, in one tree and one table.

    PenstockError                 .condition .sqlstate .message .hint .detail .span .support
    ├── ScriptError               the text cannot be read: syntax, size, encoding
    ├── ResolutionError           a name, type or argument does not fit the catalog
    │   └── InvalidArgument       an argument of a call in Python; a ValueError, too
    ├── OptionError               a WITH option or a setting is missing, misspelt or wrong
    ├── CatalogError              the change does not fit what the catalog holds
    ├── UnsupportedError          can never work here (support = 'never')
    ├── NotYetError               can work, but not in this version (support = 'not_yet')
    ├── RuntimeFailure            what happens while jobs run: data, state, files, Spark
    │   └── JobFailed             a job has stopped with an error; .job names it
    └── InternalError             a bug of ours; asks for a report

A condition name says what is wrong and is stable enough to match on. The message is short, lower-case, without a full
stop, and names the object; the hint says what to do. `span` points into the user's text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from penstock.frozen import frozen

Support = Literal["never", "not_yet"]


@dataclass(frozen=True, slots=True)  # made for every token: quicker to make than a `frozen` value
class Span:
    """A stretch of the user's text: `line` and `column` count from 1, `start` from 0 in characters of the script."""

    line: int
    column: int
    length: int
    start: int = 0

    @property
    def end(self) -> int:
        return self.start + self.length


@frozen
class Condition:
    """One row of the table of conditions: a stable name, its SQLSTATE and what it means."""

    name: str
    sqlstate: str
    meaning: str


class PenstockError(Exception):
    """The root of every error we raise on purpose."""

    support: Support | None = None

    def __init__(
        self,
        condition: str,
        message: str,
        *,
        hint: str | None = None,
        detail: str | None = None,
        span: Span | None = None,
    ) -> None:
        known = CONDITIONS[condition]
        self.condition = condition
        self.sqlstate = known.sqlstate
        self.message = message
        self.hint = hint
        self.detail = detail
        self.span = span
        super().__init__(message)

    def __str__(self) -> str:
        # A name that a program gave stands in no text.
        written = self.span is not None and (self.span.length > 0 or self.span.start > 0)
        place = f" (line {self.span.line}, column {self.span.column})" if self.span and written else ""
        hint = f"; hint: {self.hint}" if self.hint else ""
        return f"[{self.condition}] {self.message}{place}{hint}"


class ScriptError(PenstockError):
    """The text cannot be read as statements."""


class ResolutionError(PenstockError):
    """A name, type or argument does not fit what is defined."""


class InvalidArgument(ResolutionError, ValueError):
    """An argument of a call has a value we cannot use; Python programs expect a ValueError then, and this is one."""


class OptionError(PenstockError):
    """An option or setting is missing, misspelt or has a value we cannot use."""


class CatalogError(PenstockError):
    """A change does not fit what the catalog holds."""


class UnsupportedError(PenstockError):
    """The construct can never work on this engine."""

    support: Support | None = "never"


class NotYetError(PenstockError):
    """The construct can work, but this version does not run it; `mode` is the change mode its result would have."""

    support: Support | None = "not_yet"

    def __init__(
        self,
        condition: str,
        message: str,
        *,
        hint: str | None = None,
        detail: str | None = None,
        span: Span | None = None,
        mode: Literal["append", "upsert", "retract"] | None = None,
    ) -> None:
        super().__init__(condition, message, hint=hint, detail=detail, span=span)
        self.mode = mode


class RuntimeFailure(PenstockError):
    """Something went wrong, or cannot be done, while the engine runs."""


class JobFailed(RuntimeFailure):
    """A job has stopped with an error; the message tells it, `job` names the job."""

    def __init__(self, job: str, message: str, *, hint: str | None = None, detail: str | None = None) -> None:
        super().__init__("JOB_FAILED", message, hint=hint, detail=detail)
        self.job = job


class InternalError(PenstockError):
    """A bug of ours."""

    def __init__(self, message: str) -> None:
        hint = "this is a bug in Penstock; please report it with the statement"
        super().__init__("INTERNAL_ERROR", message, hint=hint)


@contextmanager
def bugs_told() -> Iterator[None]:
    """Makes an error that nobody foresaw an INTERNAL_ERROR, with the kind of it alone: its text may quote the SQL.

    What no bug of ours causes passes: a package that is missing, a file that cannot be read, a text nested too deeply.
    """
    try:
        yield
    except (PenstockError, RecursionError, ImportError, OSError, MemoryError):
        raise
    except Exception as error:
        raise InternalError(f"an unexpected {type(error).__name__}") from error


def _table(*rows: tuple[str, str, str]) -> dict[str, Condition]:
    return {name: Condition(name, sqlstate, meaning) for name, sqlstate, meaning in rows}


CONDITIONS: dict[str, Condition] = _table(
    # reading the text
    ("SYNTAX_ERROR", "42601", "the text is not a statement we know how to read"),
    ("STATEMENT_TOO_LONG", "54000", "a statement is longer than the limit"),
    ("STATEMENT_TOO_DEEP", "54001", "parentheses, subqueries or expressions are nested deeper than the limit"),
    ("INVALID_CHARACTER", "22021", "the text holds a NUL byte or is not valid UTF-8"),
    # names, types, arguments
    ("UNKNOWN_RELATION", "42P01", "no stream, table or view has this name"),
    ("UNKNOWN_COLUMN", "42703", "no relation in scope has this column"),
    ("AMBIGUOUS_COLUMN", "42702", "more than one relation in scope has this column"),
    ("DUPLICATE_COLUMN", "42701", "two columns of one relation have the same name"),
    ("DUPLICATE_ALIAS", "42712", "two relations of one FROM clause have the same name"),
    ("UNKNOWN_FUNCTION", "42883", "no function has this name"),
    ("FUNCTION_DENIED", "42501", "the function reaches outside the query (files, classes, session) and is never run"),
    ("INVALID_ARGUMENT", "22023", "an argument has a value or type that does not fit"),
    ("UNKNOWN_TYPE", "42704", "no data type has this name"),
    ("TYPE_MISMATCH", "42804", "a value has a type that does not fit where it goes"),
    (
        "KEY_MISMATCH",
        "42P10",
        "the key of a sink, or of a subscription to upserts, does not tell the rows of the query or view apart",
    ),
    ("COLUMN_COUNT_MISMATCH", "42P10", "a query has more or fewer columns than the place it goes to"),
    ("WRONG_OBJECT_KIND", "42809", "the object exists but is of a kind that cannot be used here"),
    ("NOT_GROUPED", "42803", "a column is neither grouped nor inside an aggregate"),
    ("MISPLACED_AGGREGATE", "42803", "an aggregate or window function stands where none is allowed"),
    ("UNKNOWN_SECRET", "42704", "no secret has this name"),
    ("UNKNOWN_JOB", "42704", "no job has this name"),
    # options and settings
    ("UNKNOWN_CONNECTOR", "42704", "no connector has this name"),
    ("UNKNOWN_FORMAT", "42704", "no format has this name"),
    ("MISSING_OPTION", "22023", "a connector or format needs an option that is not given"),
    ("UNKNOWN_OPTION", "22023", "the connector or format has no such option"),
    ("INVALID_OPTION", "22023", "an option has a value that cannot be used"),
    ("CONFLICTING_OPTIONS", "22023", "two spellings of one option have different values"),
    ("UNKNOWN_SETTING", "42704", "no setting has this name"),
    ("INVALID_SETTING", "22023", "a setting has a value that cannot be used"),
    # catalog
    ("OBJECT_EXISTS", "42710", "another definition has this name"),
    ("DEPENDENT_OBJECTS", "2BP01", "other objects are built on this one"),
    ("DEPENDENCY_CYCLE", "42P19", "the definition would depend on itself"),
    ("INVALID_DEFINITION", "42P16", "the definition is not complete or contradicts itself"),
    ("STATE_PATH_UNUSABLE", "58030", "the state directory cannot be used"),
    # event time and windows
    ("INVALID_WATERMARK", "42P17", "the watermark names no usable event-time column or is not column minus a constant"),
    ("MISSING_EVENT_TIME", "42P17", "a window or time bound needs an event time and the relation has none"),
    ("INVALID_WINDOW", "22023", "the size, slide, gap or offset of a window cannot be used"),
    ("WINDOW_MISMATCH", "42803", "a window helper does not match the window of its GROUP BY"),
    ("MULTIPLE_WINDOWS", "42803", "one GROUP BY has two different windows"),
    # never
    ("UNSUPPORTED_STATEMENT", "0A000", "the statement has no meaning here"),
    ("UNSUPPORTED_CLAUSE", "0A000", "the clause has no meaning on a stream"),
    ("MATCH_RECOGNIZE", "0A000", "row pattern matching is not offered"),
    ("RECURSIVE_QUERY", "0A000", "recursive queries are not offered"),
    ("NONDETERMINISTIC_KEY", "0A000", "a key must have the same value each time it is computed"),
    ("UNBOUNDED_CROSS_JOIN", "0A000", "a join of two streams needs a condition on both of them"),
    (
        "SINK_CANNOT_UPDATE",
        "0A000",
        "the sink, or the subscription, takes appended rows and the query changes rows it has sent",
    ),
    # not yet
    ("STATEMENT_NOT_YET", "0A000", "the statement is planned but not there yet"),
    ("DIALECT_NOT_YET", "0A000", "the spelling belongs to a dialect that is planned but not there yet"),
    ("CONNECTOR_NOT_YET", "0A000", "the connector is planned but not there yet"),
    ("FORMAT_NOT_YET", "0A000", "the format is planned but not there yet"),
    ("CLAUSE_NOT_YET", "0A000", "the clause is planned but not there yet"),
    ("UPDATING_JOIN", "0A000", "a join whose result changes over time cannot go there yet"),
    ("UPDATING_AGGREGATE", "0A000", "aggregates over rows that change cannot go there yet"),
    ("UPDATING_INPUT", "0A000", "this operator over rows that change is not there yet"),
    ("UPDATING_DISTINCT", "0A000", "distinct over an unbounded stream cannot go there yet"),
    ("UPDATING_TOP_N", "0A000", "rankings and limits whose result changes over time cannot go there yet"),
    ("UPDATING_WINDOW_FUNCTION", "0A000", "OVER on a stream cannot go there yet"),
    ("UPDATING_SUBQUERY", "0A000", "subqueries over streams cannot go there yet"),
    ("UPDATING_SET_OPERATION", "0A000", "set operations whose result changes over time cannot go there yet"),
    ("VERSIONED_JOIN", "0A000", "joins as of a time cannot go there yet"),
    ("PROCESSING_TIME_WINDOW", "0A000", "this use of processing time in windows is not there yet"),
    ("QUERY_NOT_YET", "0A000", "the query is planned but this version does not run it"),
    # while jobs run
    ("UNBOUNDED_QUERY", "0A000", "the query reads a stream and would never end"),
    ("JOB_FAILED", "58000", "a job has stopped with an error"),
    ("JOB_STATE", "55000", "the job is not in a state in which this can be done"),
    ("ENGINE_ALREADY_RUNNING", "55006", "another process works with the state directory"),
    ("DATABASE_CLOSED", "08003", "the database has been closed"),
    ("INVALID_ROWS", "22023", "rows do not fit the columns they are given for"),
    ("DUPLICATE_KEYS", "23505", "rows of a dimension table have the same key, and the key is declared unique"),
    ("DIMENSION_MISSING", "58030", "the rows of a dimension table cannot be found"),
    ("BAD_RECORD", "22000", "a record cannot be read and the relation asks to fail then"),
    ("DATA_ERROR", "22000", "an expression met a value that it cannot take"),
    ("LATE_ROW", "22008", "a row came after its window had closed and the job asks to fail then"),
    ("FUNCTION_MISSING", "58000", "the Python code of a function is not there or cannot be loaded"),
    ("FUNCTION_FAILED", "38000", "a function of the user failed on a row"),
    ("CHANGELOG_EXPIRED", "02000", "the changes asked for are no longer kept"),
    ("STATE_INCOMPATIBLE", "55000", "the state of the job was made by another query"),
    ("CHECKPOINT_DAMAGED", "58030", "the checkpoint of a job cannot be read or contradicts the ledger"),
    ("UNKNOWN_CHECKPOINT", "42704", "no checkpoint that is kept has this number"),
    ("TOPIC_DAMAGED", "58030", "the files of an embedded topic cannot be read"),
    ("TOPIC_MISMATCH", "42P16", "an embedded topic holds other columns than the relation declares"),
    ("SOURCE_DATA_LOST", "58030", "rows that a job has not read yet are gone"),
    ("PARTITIONS_CHANGED", "55000", "a topic has new partitions, and the job starts again to read them"),
    ("SCHEMA_CHANGED", "55000", "records came with a schema that the running job does not know, and it starts again"),
    ("ROWS_CHANGED", "55000", "bad rows of a batch were not found again, and the job starts again to run it anew"),
    ("FILE_NOT_FOUND", "58P01", "there is no file or directory of this name"),
    ("SINK_DAMAGED", "58030", "what a sink has written is not there any more"),
    ("PATH_NOT_ALLOWED", "42501", "a path lies outside the directories that may be used"),
    ("SPARK_FAILED", "58000", "Spark could not start or run the query"),
    ("SOURCE_UNAVAILABLE", "08006", "what a source reads from cannot be reached; the job tries again"),
    ("SINK_UNAVAILABLE", "08006", "what a sink writes to cannot be reached or does not answer; the job tries again"),
    ("SINK_REFUSED", "58000", "what a sink writes to does not take the rows"),
    ("REGISTRY_UNAVAILABLE", "08006", "a schema registry cannot be reached or does not answer; the job tries again"),
    ("REGISTRY_REFUSED", "58000", "a schema registry does not take a schema or a request"),
    ("CONNECTOR_FAILED", "58000", "a connector of somebody else raised an error or broke its promises"),
    ("STORAGE_FULL", "53100", "there is no space left to write to"),
    # the installation, and ourselves
    ("CONNECTOR_MISSING", "58000", "the jars of a connector are not installed"),
    ("CHECKSUM_MISMATCH", "58030", "a file is not the one that is pinned"),
    ("DOWNLOAD_FAILED", "08006", "the jars of a connector could not be fetched"),
    ("BROKER_FAILED", "58000", "the development broker could not be started or stopped"),
    ("JAVA_MISSING", "58000", "no Java that Spark can use is installed"),
    ("INSTALLATION_UNUSABLE", "58000", "a package we stand on is missing or of a build that cannot be used"),
    ("INTERNAL_ERROR", "XX000", "a bug in Penstock"),
)
