"""What Spark, the system or a worker said when something broke, as an error of ours.

A value that an expression cannot take (text that is no number, a sum that does not fit, an index outside an array) is
DATA_ERROR wherever it is met: in a job, in a query that ends, in Spark or in the view store. Spark marks such errors
with an SQLSTATE of class 22, and ends them with advice for its own users, which gives way to ours.
"""

from __future__ import annotations

import re
from typing import Final

from penstock.errors import CONDITIONS, PenstockError, RuntimeFailure
from penstock.spark.function_error import FAILED
from penstock.stores.views.database import MANY_ROWS, MANY_ROWS_HINT, SUM_HINT

_FUNCTION: Final = re.compile(rf"\[{FAILED}\] (function .*)")  # what a worker says when a function of the user fails
_OWN_ERROR: Final = re.compile(
    r"penstock\.errors\.\w+: \[(?P<condition>[A-Z_]+)\] (?P<message>.+?)(?:; hint: (?P<hint>.+))?$", re.MULTILINE
)
# What Spark's source of Kafka says when offsets or topics are not there any more.
_DATA_LOST: Final = re.compile(
    r"KAFKA_DATA_LOSS[^\n]*|UnknownTopicOrPartitionException[^\n]*|Some data may have been lost[^\n]*|"
    r"OffsetOutOfRangeException[^\n]*"
)
# What Kafka's client in Spark says when a broker does not answer; of records that it could not write.
NO_ANSWER: Final = "no broker of Kafka answers"
TOO_LARGE: Final = "a record is too large for topic"
_NOT_TAKEN: Final = re.compile(r"org\.apache\.kafka\.common\.errors\.RecordTooLargeException[^\n]*")
_NO_ANSWER: Final = re.compile(
    r"org\.apache\.kafka\.common\.errors\.(?:TimeoutException|DisconnectException|BrokerNotAvailableException)[^\n]*"
)
_NOT_WRITTEN: Final = re.compile(r"Expiring \d+ record|not present in metadata")
# Spark's own words around an error that happened in a task, a batch or a write.
_AROUND: Final = r"(?!STREAM_FAILED|FOREACH_BATCH_|TASK_WRITE_FAILED|FAILED_|PYTHON_)"
_DATA: Final = re.compile(
    rf"\[{_AROUND}(?P<kind>[A-Z][A-Z0-9_.]+)\] (?P<text>(?:(?!SQLSTATE: ).)*?)\s*SQLSTATE: 22\w{{3}}(?P<place>.*)",
    re.DOTALL,
)
_ADVICE: Final = re.compile(
    r"\s*(?:\bUse (?:the SQL function )?[`'\"]|\bIf necessary|\bCorrect the value|\bParse Mode:|"
    r"\bTo (?:return|tolerate) ).*",
    re.DOTALL,
)
_INSTEAD: Final = re.compile(r"[`'\"](try_\w+|get)(?:\(\))?[`'\"]", re.IGNORECASE)
# What Java says of a pattern that a row or the query brings, where Spark says nothing of its own.
_PATTERN: Final = re.compile(r"PatternSyntaxException: (?P<fault>[^\n]*?)(?: near index \d+)?\n(?P<pattern>[^\n]*)")
# In front of a trace of Java, whose last cause says more.
_CALLING: Final = "An error occurred while calling "
_CAUSE: Final = re.compile(r"^Caused by: (?:[\w$]+\.)*(?P<cause>[\w$]+: [^\n]+)", re.MULTILINE)
_TYPES: Final = re.compile(r"\[DATATYPE_MISMATCH[A-Z_.]*\] Cannot resolve (?P<text>.*?) SQLSTATE: 42K09", re.DOTALL)
_MARKED: Final = re.compile(r"^== SQL[^\n]*==\n(?P<lines>(?:[^\n]*\n *\^+ *(?:\n|$))+)", re.MULTILINE)
_KEPT: Final = re.compile(r"\[(?P<condition>[A-Z_]+)\] (?P<message>.+)", re.DOTALL)
_MANY_ROWS: Final = "SCALAR_SUBQUERY_TOO_MANY_ROWS"
# Columns that a relation computes are the only values that the query has no text of. Of what is in a query Spark marks
# the place, but for sums, where it adds by itself, and for signs (`-n`, ABS).
_CALLED: Final = "== DataFrame =="
_LONGEST: Final = 400
_LONGEST_EXPRESSION: Final = 120


def as_failure(where: str, error: BaseException) -> PenstockError:
    """An error of ours as it is; one of Spark's or the system's as ours, named after `where` ("job minutes")."""
    if isinstance(error, PenstockError):
        return _placed(where, error)
    if isinstance(error, OSError) and error.errno == 28:
        return RuntimeFailure("STORAGE_FULL", f"{where}: no space left to write to", hint="free some space")
    text = str(error).strip()
    function = _FUNCTION.search(text)
    if function is not None:
        return RuntimeFailure(
            "FUNCTION_FAILED",
            function[1],
            hint="mend the function, or create it WITH (on_error = 'null') to go on with NULL for such rows",
            detail=text,
        )
    own = _OWN_ERROR.search(text)
    if own is not None and own["condition"] in CONDITIONS:  # one of ours, raised in a process of Spark's
        return RuntimeFailure(own["condition"], own["message"], hint=own["hint"], detail=text)
    lost = _DATA_LOST.search(text)
    if lost is not None:
        return RuntimeFailure(
            "SOURCE_DATA_LOST",
            f"{where}: records that it has not read are gone ({lost[0].strip()[:_LONGEST]})",
            hint="create the job again to read what is there, or set on_data_loss = 'skip' to go on without them",
            detail=text,
        )
    large = _NOT_TAKEN.search(text)
    if large is not None:
        return RuntimeFailure(
            "SINK_REFUSED",
            f"{where}: {TOO_LARGE} ({large[0].strip()[:_LONGEST]})",
            hint="raise 'kafka.max.request.size' of the sink (1048576 where it is not given) and max.message.bytes of "
            "the topic, then RESUME JOB",
            detail=text,
        )
    silent = _NO_ANSWER.search(text)
    if silent is not None:
        return RuntimeFailure(
            "SINK_UNAVAILABLE" if _NOT_WRITTEN.search(silent[0]) else "SOURCE_UNAVAILABLE",
            f"{where}: {NO_ANSWER} ({silent[0].strip()[:_LONGEST]})",
            hint="look at the broker and at bootstrap_servers; a job that runs tries again by itself",
            detail=text,
        )
    if _MANY_ROWS in text:
        return RuntimeFailure("DATA_ERROR", f"{where}: {MANY_ROWS}", hint=MANY_ROWS_HINT, detail=text)
    told = _data_error(where, text) or _type_error(where, error, text) or _pattern_error(where, text)
    if told is not None:
        return told
    first = text.splitlines()[0] if text else type(error).__name__
    causes = _CAUSE.findall(text) if first.startswith(_CALLING) else []
    first = causes[-1] if causes else first
    return RuntimeFailure(
        "SPARK_FAILED",
        f"{where}: {first[:_LONGEST]}",
        hint="the log of Spark is in logs/ of the state directory",
        detail=text or None,
    )


def kept_text(error: PenstockError | None) -> str | None:
    """An error of a job as its facts keep it and `penstock.jobs` shows it."""
    return None if error is None else f"[{error.condition}] {error.message}"


def kept_failure(text: str | None, hint: str | None = None) -> RuntimeFailure:
    """The error of a job that failed before this process began."""
    found = _KEPT.fullmatch(text or "")
    if found is None or found["condition"] not in CONDITIONS:
        return RuntimeFailure("JOB_FAILED", text or "it failed before", hint=hint)
    return RuntimeFailure(found["condition"], found["message"], hint=hint)


def not_made(error: PenstockError) -> PenstockError:
    """The error of a job that is taken back: nothing is left that would try again by itself."""
    if error.condition not in ("SINK_UNAVAILABLE", "REGISTRY_UNAVAILABLE"):
        return error
    return RuntimeFailure(
        error.condition,
        error.message,
        hint="nothing was created; look after the service that the message names, then create it again",
        detail=error.detail,
    )


def _placed(where: str, error: PenstockError) -> PenstockError:
    """The view store does not know for whom it computes."""
    if error.condition != "DATA_ERROR" or error.message.startswith(f"{where}: "):
        return error
    return RuntimeFailure(
        "DATA_ERROR", f"{where}: {error.message}", hint=error.hint, detail=error.detail, span=error.span
    )


def _data_error(where: str, text: str) -> RuntimeFailure | None:
    found = _DATA.search(text)
    if found is None:
        return None
    told = " ".join(_ADVICE.sub("", found["text"]).split()).rstrip(".")
    told = told[:1].lower() + told[1:]
    marked = _shown(found["place"])
    hint = _hint(found["kind"], found["text"])
    if marked is None and found["kind"] == "ARITHMETIC_OVERFLOW":
        if _CALLED in found["place"]:
            told = f"{told}, in a computed column"
        elif "'try_add'" in found["text"]:
            told, hint = f"{told}, in a sum", SUM_HINT
    return RuntimeFailure(
        "DATA_ERROR",
        f"{where}: {told[:_LONGEST]}{f' (in {marked})' if marked else ''}",
        hint=hint,
        detail=text,
    )


def _type_error(where: str, error: BaseException, text: str) -> RuntimeFailure | None:
    """An expression over types that do not fit, which only Spark could tell."""
    found = _TYPES.search(text)
    if found is None:
        return None
    parts = _parts(error)
    told = " ".join(found["text"].split()).rstrip(".").replace(" due to data type mismatch: ", ": ", 1)
    return RuntimeFailure(
        "TYPE_MISMATCH",
        f"{where}: {told[:_LONGEST]}",
        hint="CAST one side to the type of the other, or use what takes these types",
        detail="\n".join([text, "== SQL ==", *parts]) if parts else text,
    )


def _pattern_error(where: str, text: str) -> RuntimeFailure | None:
    """A pattern that Java cannot read, for the functions of Spark's that hand it to Java as it is."""
    found = _PATTERN.search(text)
    if found is None:
        return None
    fault = found["fault"][:1].lower() + found["fault"][1:]
    return RuntimeFailure(
        "DATA_ERROR",
        f"{where}: {found['pattern'][:_LONGEST]} is no regular expression: {fault}",
        hint=r"write a \ in front of a character that stands for itself; leave rows with other patterns out with WHERE",
        detail=text,
    )


def _parts(error: BaseException) -> list[str]:
    """The lines of the expression that Spark could not resolve, each marked as in its errors of values."""
    ask = getattr(error, "getQueryContext", None)
    contexts = ask() if ask is not None else []
    lines = contexts[0].fragment().splitlines() if contexts else []
    return [part for line in lines for part in (line, "^" * len(line))]


def marked_expression(said: str | None) -> str | None:
    """The expression that Spark marks in its text of the query, as it stands there but for its lines."""
    found = _MARKED.search(said or "")
    if found is None:
        return None
    lines = found["lines"].splitlines()
    marked = [line[marks.find("^") : marks.rfind("^") + 1] for line, marks in zip(lines[::2], lines[1::2], strict=True)]
    return " ".join(" ".join(marked).split())


def _shown(place: str) -> str | None:
    """The expression that Spark marks, without its quotes."""
    marked = marked_expression(place)
    if marked is None:
        return None
    text = marked.replace("`", "").replace("( ", "(").replace(" )", ")")
    return text if len(text) <= _LONGEST_EXPRESSION else f"{text[:_LONGEST_EXPRESSION]}…"


def _hint(kind: str, text: str) -> str:
    instead = _INSTEAD.search(text)
    if instead is not None:
        return f"{instead[1].upper()} gives NULL for such values; or leave them out with WHERE"
    if "ZERO" in kind:
        return "divide by NULLIF(…, 0), which gives NULL for such rows; or leave them out with WHERE"
    if "OVERFLOW" in kind or "OUT_OF_RANGE" in kind:
        return "CAST to a wider type such as DECIMAL(38, 0) before computing; or leave such rows out with WHERE"
    return "leave such rows out with WHERE, or put another value in their place with CASE"
