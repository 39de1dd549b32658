"""The Python behind the functions of the catalog.

The catalog keeps names, types and where the code is; the code itself is loaded when a query that uses it starts. What a
program registers as an object, such as a lambda, only this process has: after a restart its jobs wait until the program
registers it again.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.catalog.function_body import read_body
from penstock.catalog.model import FunctionDefinition, ObjectKey
from penstock.catalog.python_types import PARTS, PythonSignature, in_parts, read_signature
from penstock.errors import CatalogError, RuntimeFailure
from penstock.plan.computed import computed_functions
from penstock.spark.function_call import FunctionCall
from penstock.spark.function_code import FunctionCode, load
from penstock.spark.merging_function import MergingFunction
from penstock.spark.user_functions import register_functions
from penstock.stores.arrow_types import arrow_type
from penstock.stores.files.faults import outside
from penstock.stores.files.listing import within
from penstock.types import STRING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark.sql import SparkSession

    from penstock.catalog.model import SourceDefinition
    from penstock.catalog.snapshot import Catalog
    from penstock.stores.views.store import ViewStore
    from penstock.types import SqlType

MISSING: Final = "FUNCTION_MISSING"


class Functions:
    """The functions of one open database. `catalog` gives the definitions that are in force.

    `roots` are the directories that CREATE FUNCTION may take code from; None: anywhere. What the program itself
    registers is its own affair.
    """

    def __init__(self, catalog: Callable[[], Catalog], roots: tuple[str, ...] | None = None) -> None:
        self._catalog = catalog
        self._roots = roots
        self._held: dict[str, FunctionCode] = {}  # what the program has registered, by name

    def hold(self, name: str, function: Callable[..., Any]) -> None:
        """Keep an object of the program, as it is now, for the functions of this process."""
        self._held[name] = pickled(name, function)

    def check_place(self, definition: FunctionDefinition) -> None:
        """PATH_NOT_ALLOWED where a statement takes code from elsewhere than the allowed paths, or brings it along."""
        if self._roots is None:
            return
        name = definition.name.text
        body = read_body(definition.body, name)
        if body.kind == "source":
            raise RuntimeFailure(
                "PATH_NOT_ALLOWED",
                f"function {name} may not bring its code along: functions come from the allowed paths",
                hint="put it into a file below one of the directories in the setting allowed_paths",
            )
        if body.kind == "module":
            place = _place_of_module(body.place)
            if place is None or not within(place, self._roots):
                raise outside(name, f"module {body.place}")

    def make_ready(self, spark: SparkSession, names: Iterable[str], sources: Sequence[SourceDefinition] = ()) -> None:
        """Make the functions of a query known to Spark, those in computed columns of its sources included."""
        catalog = self._catalog()
        found = [catalog[ObjectKey("function", name)] for name in self.needed(names, sources)]
        known = [item for item in found if isinstance(item, FunctionDefinition) and item.expression is None]
        calls = [self.call(item) for item in known]
        calls += [
            (replace(call, step="partial", returns=arrow_type(STRING)), STRING)
            for item, (call, _) in zip(known, calls, strict=True)
            if item.merges
        ]
        if calls:
            register_functions(spark, calls)

    def make_ready_to_merge(self, store: ViewStore, names: Iterable[str]) -> None:
        """Make the aggregates of a query that are in parts known to the store that merges them."""
        catalog = self._catalog()
        for name in names:
            item = catalog[ObjectKey("function", name)]
            if isinstance(item, FunctionDefinition) and item.merges:
                call, returns = self.call(item)
                store.add_aggregate(call.name, MergingFunction(call.name, call.code, call.returns), returns)

    def needed(self, names: Iterable[str], sources: Sequence[SourceDefinition] = ()) -> tuple[str, ...]:
        """The functions of a query and of the computed columns of its sources, each once."""
        catalog = self._catalog()
        computed = [name for source in sources for name in computed_functions(source, catalog)]
        return tuple(dict.fromkeys([*names, *computed]))

    def call(self, definition: FunctionDefinition) -> tuple[FunctionCall, SqlType]:
        """What Spark calls for a function, and the type it returns; FUNCTION_MISSING where its code is not there."""
        name = definition.name.text
        code = self._code(definition)
        try:
            signature = read_signature(load(code), aggregate=definition.aggregate)
        except (Exception, SystemExit) as error:
            raise _missing(name, code, error) from error
        options = dict(definition.options)
        if options.get("merge") == "true" and not (definition.aggregate and in_parts(load(code))):
            raise CatalogError(
                "INVALID_DEFINITION",
                f"function {name} is no aggregate in parts",
                hint=f"merge = true is for a class with the methods {', '.join(PARTS)}",
                span=definition.name.span,
            )
        returns = _returns(definition, signature)
        made = FunctionCall(
            name=name,
            code=code,
            takes=options.get("takes") or signature.takes,  # type: ignore[arg-type]
            returns=arrow_type(returns),
            aggregate=definition.aggregate,
            null_on_error=options.get("on_error") == "null",
        )
        return made, returns

    def _code(self, definition: FunctionDefinition) -> FunctionCode:
        name = definition.name.text
        body = read_body(definition.body, name)
        if body.kind == "registered":
            held = self._held.get(name)
            if held is None:
                raise RuntimeFailure(
                    "FUNCTION_MISSING",
                    f"function {name} was registered by a program, and this one has not registered it",
                    hint=f'db.register_function("{name}", …) again: the jobs that need it then go on',
                )
            return held
        if body.kind == "module":
            return FunctionCode("module", body.place, body.attribute, paths=search_path())
        if body.kind == "source":
            place = f"<function {name}>"
            return FunctionCode("source", place, body.attribute, body.place.encode(), search_path())
        path = Path(body.place).expanduser().absolute()
        if self._roots is not None and not within(str(path), self._roots):
            raise outside(name, str(path))
        try:
            content = path.read_bytes()
        except OSError as error:
            raise RuntimeFailure(
                "FUNCTION_MISSING",
                f"function {name} cannot be loaded: {path.name}: {error.strerror or error}",
                hint="a relative path begins where the program was started",
            ) from error
        return FunctionCode("source", str(path), body.attribute, content, (*search_path(), str(path.parent)))


def _place_of_module(name: str) -> str | None:
    """The file or directory of the package that a module is in, found without running any of it."""
    top = name.partition(".")[0]
    found = PathFinder.find_spec(top, list(search_path()))
    if found is None:
        return None
    places = found.submodule_search_locations
    return found.origin or next(iter(places), None) if places is not None else found.origin


def search_path() -> tuple[str, ...]:
    """Where this process finds modules; the current directory by its name."""
    return tuple(dict.fromkeys(entry or str(Path.cwd()) for entry in sys.path))


def pickled(name: str, function: Callable[..., Any]) -> FunctionCode:
    """An object of the program in a shape that Spark's workers can take."""
    from pyspark import cloudpickle

    try:
        content: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    except Exception as error:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"function {name} cannot be sent to Spark's workers: {error}",
            hint="a function may use modules and plain values, not locks, files or connections of the program",
        ) from error
    return FunctionCode("pickle", "", getattr(function, "__name__", name), content, search_path())


def _returns(definition: FunctionDefinition, signature: PythonSignature) -> SqlType:
    found = definition.returns or signature.returns
    if found is None:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"function {definition.name} does not say what it returns",
            hint="add RETURNS and a type, or annotate the function",
            span=definition.name.span,
        )
    return found


def _missing(name: str, code: FunctionCode, error: BaseException) -> RuntimeFailure:
    text = " ".join(str(error).split())[:300]
    where = f"module {code.place}" if code.kind == "module" else code.place or "its pickle"
    return RuntimeFailure(
        "FUNCTION_MISSING",
        f"function {name} cannot be loaded from {where}: {type(error).__name__}: {text}",
        hint="install the module, or put its directory on PYTHONPATH" if code.kind == "module" else None,
    )
