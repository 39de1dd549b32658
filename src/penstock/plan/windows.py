"""Windows as values, and what Spark calls them."""

from __future__ import annotations

from dataclasses import field
from typing import Final, Literal

from sqlglot import exp

from penstock.errors import ResolutionError, Span
from penstock.frozen import frozen
from penstock.sql.nodes import WindowCall

WindowKind = Literal["TUMBLE", "HOP", "SESSION", "CUMULATE"]

_UNITS: Final = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("millisecond", 1_000),
    ("microsecond", 1),
)


@frozen
class WindowSpec:
    """A window without its time column; all durations in microseconds.

    >>> str(WindowSpec("HOP", size_us=60_000_000, slide_us=10_000_000))
    'HOP(slide 10 seconds, size 1 minute)'
    """

    kind: WindowKind
    size_us: int = 0
    slide_us: int = 0
    gap_us: int = 0
    step_us: int = 0
    offset_us: int = 0
    keys: tuple[str, ...] = field(default=(), compare=False)  # SESSION … PARTITION BY
    processing: bool = field(default=False, compare=False)  # over the time at which rows are read

    def __str__(self) -> str:
        parts = {
            "TUMBLE": [f"size {duration_words(self.size_us)}"],
            "HOP": [f"slide {duration_words(self.slide_us)}", f"size {duration_words(self.size_us)}"],
            "SESSION": [f"gap {duration_words(self.gap_us)}"],
            "CUMULATE": [f"step {duration_words(self.step_us)}", f"size {duration_words(self.size_us)}"],
        }[self.kind]
        if self.offset_us:
            parts.append(f"offset {duration_words(self.offset_us)}")
        if self.processing:
            parts.append("of processing time")
        return f"{self.kind}({', '.join(parts)})"


# Spark makes as many rows of each row, and a plan with a part for each: with more it takes minutes to begin.
MOST_WINDOWS: Final = 3_600


def window_spec(call: WindowCall, span: Span | None) -> WindowSpec:
    """The checked value of a window node."""
    kind = call.kind
    if kind not in ("TUMBLE", "HOP", "SESSION", "CUMULATE"):
        raise ResolutionError("INVALID_WINDOW", f"{kind} is not a window", span=span)
    spec = WindowSpec(
        kind,  # type: ignore[arg-type]  # narrowed by the check above
        size_us=call.micros("size"),
        slide_us=call.micros("slide"),
        gap_us=call.micros("gap"),
        step_us=call.micros("step"),
        # a whole number of windows to shift by is no shift
        offset_us=call.micros("offset") % ((call.micros("slide") or call.micros("size")) or 1),
    )
    _check(spec, span)
    return spec


def _check(spec: WindowSpec, span: Span | None) -> None:
    if spec.kind == "CUMULATE" and spec.size_us % spec.step_us:
        raise ResolutionError(
            "INVALID_WINDOW",
            f"the size of {spec} is not a multiple of its step",
            hint="choose a step that divides the size",
            span=span,
        )
    if spec.kind == "HOP" and spec.slide_us > spec.size_us:
        # Spark refuses it, and rows between two windows would be in none: far more often a swapped pair of arguments.
        raise ResolutionError(
            "INVALID_WINDOW",
            f"the slide of {spec} is longer than its size, so some rows would be in no window",
            hint="the order is HOP(time, slide, size); swap the two if that is what was meant",
            span=span,
        )
    step_us = spec.slide_us or spec.step_us
    windows = -(-spec.size_us // step_us) if step_us else 1
    if windows > MOST_WINDOWS:
        shorter = "slide" if spec.kind == "HOP" else "step"
        raise ResolutionError(
            "INVALID_WINDOW",
            f"{spec} puts every row into {windows:,} windows, and the most is {MOST_WINDOWS:,}",
            hint=f"choose a longer {shorter}, or a shorter size; the {shorter} comes first",
            span=span,
        )


def duration_words(micros: int) -> str:
    """A duration in words, in the largest unit that gives a whole number.

    >>> duration_words(90_000_000), duration_words(3_600_000_000), duration_words(0)
    ('90 seconds', '1 hour', '0 seconds')
    """
    if micros == 0:
        return "0 seconds"
    for unit, length in _UNITS:
        if micros % length == 0:
            count = micros // length
            return f"{count} {unit}{'' if abs(count) == 1 else 's'}"
    raise AssertionError("a duration is a whole number of microseconds")


def spark_window(spec: WindowSpec, time: exp.Expr) -> exp.Expr:
    """Spark's call for a window over a time expression: durations as strings, the size first.

    >>> spark_window(WindowSpec("HOP", size_us=60_000_000, slide_us=10_000_000), exp.column("ts")).sql("spark")
    "WINDOW(ts, '1 minute', '10 seconds')"
    """
    if spec.kind == "SESSION":
        return _call("session_window", time, exp.Literal.string(duration_words(spec.gap_us)))
    # Each step of a cumulating window ends where one of the hopping windows does.
    slide = spec.step_us if spec.kind == "CUMULATE" else spec.slide_us or spec.size_us
    offset = spec.offset_us % slide
    arguments = [exp.Literal.string(duration_words(spec.size_us))]
    if slide != spec.size_us or offset or spec.kind == "HOP":
        arguments.append(exp.Literal.string(duration_words(slide)))
    if offset:
        arguments.append(exp.Literal.string(duration_words(offset)))
    return _call("window", time, *arguments)


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=list(arguments))
