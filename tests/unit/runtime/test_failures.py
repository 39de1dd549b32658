"""What Spark says when something breaks, in our words."""

from __future__ import annotations

import pytest

from penstock.errors import JobFailed, PenstockError, RuntimeFailure
from penstock.runtime.backoff import transient
from penstock.runtime.failures import as_failure, kept_failure, kept_text, not_made
from penstock.stores.views import ViewStore

CAST = (
    '[CAST_INVALID_INPUT] The value \'a\' of the type "STRING" cannot be cast to "INT" because it is malformed. '
    "Correct the value as per the syntax, or change its target type. Use `try_cast` to tolerate malformed input and "
    "return NULL instead. SQLSTATE: 22018"
)
PLACE = "\n== SQL (line 1, position 8) ==\nSELECT CAST(`k` AS INT) AS `x` FROM `s`\n       ^^^^^^^^^^^^^^^^\n"
ANSI = 'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE:'


@pytest.mark.parametrize(
    ("said", "told", "hint"),
    [
        (
            CAST + PLACE,
            'the value \'a\' of the type "STRING" cannot be cast to "INT" because it is malformed (in CAST(k AS INT))',
            "TRY_CAST gives NULL",
        ),
        (
            (
                "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [FOREACH_BATCH_USER_FUNCTION_ERROR] "
                f"An error occurred in the user provided function. Reason: {CAST}{PLACE} SQLSTATE: 39000 SQLSTATE: XXKST"
            ),
            'the value \'a\' of the type "STRING" cannot be cast to "INT" because it is malformed (in CAST(k AS INT))',
            "TRY_CAST gives NULL",
        ),
        (
            (
                "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: org.apache.spark."
                f"SparkArithmeticException: [ARITHMETIC_OVERFLOW] long overflow. Use 'try_add' to tolerate overflow and "
                f"return NULL instead. {ANSI} 22003\n== SQL (line 1, position 1) ==\n`v` + 1\n^^^^^^^\n\tat org.apache"
            ),
            "long overflow (in v + 1)",
            "TRY_ADD gives NULL",
        ),
        (
            (
                f"[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. "
                f"{ANSI} 22012"
            ),
            "division by zero",
            "TRY_DIVIDE gives NULL",
        ),
        (
            (
                "[INVALID_ARRAY_INDEX_IN_ELEMENT_AT] The index 5 is out of bounds. The array has 2 elements. Use "
                f"`try_element_at` to tolerate accessing element at invalid index and return NULL instead. {ANSI} 22003"
            ),
            "the index 5 is out of bounds. The array has 2 elements",
            "TRY_ELEMENT_AT gives NULL",
        ),
        (
            (
                "[INVALID_ARRAY_INDEX] The index 5 is out of bounds. The array has 2 elements. Use the SQL function `get()` "
                f"to tolerate accessing element at invalid index and return NULL instead. {ANSI} 22003"
            ),
            "the index 5 is out of bounds. The array has 2 elements",
            "GET gives NULL",
        ),
        (
            f"[NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION] The 12345 cannot be represented as Decimal(4, 1). {ANSI} 22003",
            "the 12345 cannot be represented as Decimal(4, 1)",
            "CAST to a wider type",
        ),
        (
            f"[ARITHMETIC_OVERFLOW] overflow. Use 'try_add' to tolerate overflow and return NULL instead. {ANSI} 22003",
            "overflow, in a sum",
            "sum a wider type",
        ),
        (
            (
                f"[ARITHMETIC_OVERFLOW] overflow. Use 'try_add' to tolerate overflow and return NULL instead. {ANSI} 22003\n"
                '== DataFrame ==\n"cast" was called from\njava.base/jdk.internal.reflect.Native\n'
            ),
            "overflow, in a computed column",
            "TRY_ADD gives NULL",
        ),
        (f"[ARITHMETIC_OVERFLOW] overflow. {ANSI} 22003", "overflow", "CAST to a wider type"),
        (
            (
                f"[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0. {ANSI} 22012\n"
                "== SQL (line 2, position 3) ==\n  1 / (\n  ^^^^^\n    `s`.`v` - `s`.`v`\n^^^^^^^^^^^^^^^^^^^^^\n"
                "  ) AS `x`\n^^^\n"
            ),
            "division by zero (in 1 / (s.v - s.v))",
            "TRY_DIVIDE gives NULL",
        ),
        (
            "[DUPLICATED_MAP_KEY] Duplicate map key a was found. SQLSTATE: 22023",
            "duplicate map key a was found",
            "leave such rows out with WHERE",
        ),
    ],
)
def test_a_value_that_an_expression_cannot_take_is_an_error_of_the_data(said: str, told: str, hint: str) -> None:
    failure = as_failure("job minutes", RuntimeError(said))
    assert (failure.condition, failure.message) == ("DATA_ERROR", f"job minutes: {told}")
    assert str(failure.hint).startswith(hint)
    assert "ansi" not in f"{failure.message}{failure.hint}"
    assert failure.detail == said.strip()
    assert not transient(failure)


@pytest.mark.parametrize(
    "said",
    [
        "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved. SQLSTATE: 42703",
        "[STREAM_FAILED] Query terminated with exception: Value at index is null SQLSTATE: XXKST",
        "the value 22018 is odd. SQLSTATE: 22018",
        "",
    ],
)
def test_anything_else_is_sparks(said: str) -> None:
    failure = as_failure("the query", RuntimeError(said))
    assert failure.condition == "SPARK_FAILED"
    assert failure.message.startswith("the query: ")


CALLING = (
    "An error occurred while calling o240.getResult.\n: org.apache.spark.SparkException: Exception thrown in awaitResult: "
    "\n\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)\n"
)


@pytest.mark.parametrize(
    "said",
    [
        f"{CALLING}Caused by: java.util.regex.PatternSyntaxException: Unclosed group near index 1\n(\n\tat java.base",
        (
            "Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: java.util.regex."
            "PatternSyntaxException: Unclosed group near index 1\n(\n\tat java.base/java.util.regex.Pattern.error"
        ),
    ],
)
def test_a_pattern_that_java_cannot_read_is_an_error_of_the_data(said: str) -> None:
    failure = as_failure("job minutes", RuntimeError(said))
    assert failure.condition == "DATA_ERROR"
    assert failure.message == "job minutes: ( is no regular expression: unclosed group"
    assert not transient(failure)


def test_the_cause_is_told_where_the_first_line_says_nothing() -> None:
    said = f"{CALLING}Caused by: a.b.Outer: not this\n\tat x\nCaused by: org.apache.spark.Odd$Error: it is odd\n\tat y"
    failure = as_failure("job minutes", RuntimeError(said))
    assert (failure.condition, failure.message) == ("SPARK_FAILED", "job minutes: Odd$Error: it is odd")
    assert as_failure("job minutes", RuntimeError(CALLING)).message.startswith("job minutes: An error occurred")


def test_what_the_view_store_cannot_compute_is_told_of_the_job_once() -> None:
    found = RuntimeFailure("DATA_ERROR", "overflow in addition of INT64 (1 + 2)", hint="cast")
    named = as_failure("job totals", found)
    assert (named.condition, named.hint) == ("DATA_ERROR", "cast")
    assert named.message == "job totals: overflow in addition of INT64 (1 + 2)"
    assert as_failure("job totals", named) is named
    other = RuntimeFailure("BAD_RECORD", "no number")
    assert as_failure("job totals", other) is other


def test_the_error_of_a_job_is_the_same_after_a_restart() -> None:
    failure = as_failure("job minutes", RuntimeError(CAST))
    again = kept_failure(kept_text(failure), failure.hint)
    assert (again.condition, again.message, again.hint) == (failure.condition, failure.message, failure.hint)
    assert kept_text(again) == kept_text(failure)
    assert kept_text(None) is None
    for text in (None, "it was killed", "[NO_SUCH_CONDITION] x"):
        assert kept_failure(text).condition == "JOB_FAILED"
    assert not isinstance(again, JobFailed)


@pytest.mark.parametrize(
    ("said", "condition"),
    [
        ("Timed out waiting for a node assignment. Call: describeTopics", "SOURCE_UNAVAILABLE"),
        ("Expiring 3 record(s) for t-0:120000 ms has passed since batch creation", "SINK_UNAVAILABLE"),
        ("Topic t not present in metadata after 60000 ms.", "SINK_UNAVAILABLE"),
    ],
)
def test_a_broker_that_does_not_answer_spark(said: str, condition: str) -> None:
    text = (
        f"[STREAM_FAILED] Query terminated\nCaused by: org.apache.kafka.common.errors.TimeoutException: {said}\n at x"
    )
    found = as_failure("job j", RuntimeError(text))
    assert found.condition == condition
    assert said in found.message
    assert transient(found)


@pytest.mark.parametrize(
    "said",
    [
        "The message is 1100088 bytes when serialized which is larger than 1048576, the value of max.request.size.",
        "The request included a message larger than the max message size the server will accept.",
    ],
)
def test_a_record_that_is_too_large_for_a_topic(said: str) -> None:
    """It is as large at the next try."""
    text = f"[STREAM_FAILED] x\nCaused by: org.apache.kafka.common.errors.RecordTooLargeException: {said}\n at x"
    found = as_failure("job j", RuntimeError(text))
    assert found.condition == "SINK_REFUSED"
    assert said in found.message
    assert "kafka.max.request.size" in (found.hint or "")
    assert not transient(found)


def test_a_subquery_for_one_value_with_many_rows_is_an_error_of_the_data() -> None:
    """The same words whoever met it: Spark, whose tasks may wrap it, or the view store."""
    said = "[SCALAR_SUBQUERY_TOO_MANY_ROWS] More than one row returned by a subquery used as an expression. SQLSTATE: 21000"
    for text in (said, f"An error occurred while calling o1299.getResult.\n: org.apache.spark.SparkException: {said}"):
        found = as_failure("job j", RuntimeError(text))
        assert found.condition == "DATA_ERROR"
        assert found.message == "job j: a subquery that stands for one value has more than one row"
        assert "IN" in (found.hint or "")
        assert not transient(found)
    store = ViewStore.open(None)
    with pytest.raises(PenstockError) as raised:
        store.read("SELECT (SELECT * FROM (VALUES (1), (2)) AS v(a)) AS x")
    store.close()
    assert raised.value.condition == "DATA_ERROR"
    assert raised.value.message == "a subquery that stands for one value has more than one row"


@pytest.mark.parametrize("condition", ["SINK_UNAVAILABLE", "REGISTRY_UNAVAILABLE"])
def test_a_job_that_was_taken_back_is_not_tried_again(condition: str) -> None:
    """Nobody is left to keep the promise that the error of a job that runs makes."""
    found = not_made(
        RuntimeFailure(condition, "who is meant", hint="a job that runs tries again by itself", detail="d")
    )
    assert (found.condition, found.message, found.detail) == (condition, "who is meant", "d")
    assert found.hint == "nothing was created; look after the service that the message names, then create it again"


def test_an_error_that_promises_nothing_stays_as_it_is() -> None:
    error = RuntimeFailure("INVALID_ROWS", "these", hint="mend them")
    assert not_made(error) is error
