"""The Python of a user's function on its way to Spark's workers, and how it becomes a callable there.

Named modules are imported where they are needed, with the search path of the process that started the job; files and
source texts are carried as text, as they were when the job started; functions of a running program are pickled.
"""

from __future__ import annotations

import importlib
import pickle
import sys
import textwrap
from collections.abc import Callable
from typing import Any, Literal

from penstock.frozen import frozen


@frozen
class FunctionCode:
    """`place` is a module or the name of a file; `content` the source text or the pickled function."""

    kind: Literal["module", "source", "pickle"]
    place: str
    attribute: str
    content: bytes = b""
    paths: tuple[str, ...] = ()


_loaded: dict[FunctionCode, Callable[..., Any]] = {}


def load(code: FunctionCode) -> Callable[..., Any]:
    """The function; made once in each process. Whatever the user's code raises while it is loaded comes through."""
    found = _loaded.get(code)
    if found is None:
        sys.path.extend(path for path in code.paths if path not in sys.path)
        found = _LOADERS[code.kind](code)
        if not callable(found):
            raise TypeError(f"{code.attribute} is a {type(found).__name__}, not a function")
        _loaded[code] = found
    return found


def _from_module(code: FunctionCode) -> Any:
    importlib.invalidate_caches()  # the module may have been installed while we ran
    return getattr(importlib.import_module(code.place), code.attribute)


def _from_source(code: FunctionCode) -> Any:
    names: dict[str, Any] = {"__name__": f"penstock_function_{code.attribute}", "__file__": code.place}
    text = textwrap.dedent(code.content.decode()).strip() + "\n"
    exec(compile(text, code.place, "exec"), names)  # noqa: S102 - it is the user's own function
    wanted = code.attribute.lower()
    found = names.get(code.attribute) or next((names[name] for name in names if name.lower() == wanted), None)
    if found is None:
        raise AttributeError(f"{code.place} has no attribute '{code.attribute}'")
    return found


def _from_pickle(code: FunctionCode) -> Any:
    return pickle.loads(code.content)  # noqa: S301 - we have pickled it ourselves


_LOADERS: dict[str, Callable[[FunctionCode], Any]] = {
    "module": _from_module,
    "source": _from_source,
    "pickle": _from_pickle,
}
