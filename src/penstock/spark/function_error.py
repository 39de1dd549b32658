"""What is told where a user's function fails, in Spark's workers or in the view store."""

from __future__ import annotations

from typing import Final

FAILED: Final = "FUNCTION_FAILED"
_SHOWN: Final = 500


class FunctionError(Exception):
    """The function failed; the text is what the user is told, with the condition in front for whoever finds it."""


def failure(name: str, error: BaseException) -> FunctionError:
    """The error of a function that raised another."""
    text = " ".join(str(error).split())[:_SHOWN]
    return FunctionError(f"[{FAILED}] function {name} failed: {type(error).__name__}: {text}")
