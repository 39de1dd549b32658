"""Functions that a program hands over: from a Python callable to a definition of the catalog."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from penstock.catalog.function_body import REGISTERED
from penstock.catalog.python_types import in_parts, python_type, read_signature
from penstock.errors import CatalogError, InternalError, PenstockError
from penstock.plan.analyze import analyze
from penstock.runtime.functions import MISSING
from penstock.runtime.job import START_SECONDS
from penstock.runtime.states import JobState
from penstock.secrets import Secret
from penstock.sql.script import parse_statement
from penstock.sql.statements import CreateFunction, Name, Option, OptionValue, Parameter
from penstock.stores.arrow_types import sql_type_of_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.catalog.python_types import PythonSignature
    from penstock.runtime.engine import Engine
    from penstock.types import SqlType


def register_function(
    engine: Engine,
    name: str,
    function: Callable[..., Any],
    *,
    arguments: Sequence[object] | None,
    returns: object | None,
    aggregate: bool,
    options: Mapping[str, str],
) -> None:
    """Define a function and start the jobs that waited for it."""
    if not callable(function):
        raise TypeError(f"{function!r} is not a function")
    signature = read_signature(function, aggregate=aggregate)
    path = importable(function)
    # Decided here: a copy of the function in another process may have lost what its annotations name.
    options = {"takes": signature.takes, **options} if signature.takes != "values" else options
    if aggregate and in_parts(function):
        options = {**options, "merge": "true"}
    statement = CreateFunction(
        name=Name(name),
        parameters=_parameters(name, arguments, signature),
        returns=_returns(name, returns, signature),
        language="python",
        body=path or REGISTERED,
        aggregate=aggregate,
        or_replace=True,
        options=tuple(Option(key, OptionValue("text", Secret(value))) for key, value in options.items()),
    )
    with engine.turn:
        session = analyze(statement, engine.session).session
        definition = session.catalog.find_function(Name(name))
        if definition is None:
            raise InternalError(f"function {name} was defined and is not there")
        name = definition.name.text  # as it was first written
        if path is None:
            engine.functions.hold(name, function)
        engine.put_catalog(session)
    start_waiting(engine, name)


def importable(function: Callable[..., Any]) -> str | None:
    """The `module:name` under which another process finds the same function; None where there is none."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if not isinstance(module, str) or module == "__main__" or not name.isidentifier():
        return None
    parts = module.split(".")
    if getattr(sys.modules.get(module), name, None) is not function or not all(part.isidentifier() for part in parts):
        return None
    return f"{module}:{name}" if name.isascii() and module.isascii() else None


def start_waiting(engine: Engine, function: str) -> None:
    """Start the jobs that stopped because this function was not there."""
    for job in tuple(engine.jobs.values()):
        if function not in engine.functions.needed(job.spec.plan.functions, job.spec.sources):
            continue
        with job.control:  # a start that is under way is over then
            waits = job.state is JobState.FAILED and job.error is not None and MISSING in str(job.error)
            if waits:
                job.start(f"function {function} is there")
        if waits:
            job.wait_first_batch(START_SECONDS)


def _parameters(name: str, arguments: Sequence[object] | None, signature: PythonSignature) -> tuple[Parameter, ...]:
    if arguments is not None:
        return tuple(Parameter(name=None, type=as_type(name, given)) for given in arguments)
    return tuple(Parameter(name=label, type=found) for label, found in signature.parameters or ())


def _returns(name: str, given: object | None, signature: PythonSignature) -> SqlType:
    found = signature.returns if given is None else as_type(name, given)
    if found is None:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"function {name} does not say what it returns",
            hint='give returns="DOUBLE" or another type, or annotate the function',
        )
    return found


def as_type(name: str, given: object) -> SqlType:
    """A type as a program writes it: text of SQL, a type of Arrow, or one of Python."""
    import pyarrow as pa

    if isinstance(given, str):
        return _read(name, given)
    found = sql_type_of_arrow(given) if isinstance(given, pa.DataType) else python_type(given)
    if found is None:
        raise CatalogError(
            "UNKNOWN_TYPE",
            f"function {name}: {given!r} is not a type",
            hint='write a type of SQL such as "DOUBLE", of Arrow such as pa.float64(), or of Python such as float',
        )
    return found


def _read(name: str, text: str) -> SqlType:
    try:
        found = parse_statement(f"CREATE FUNCTION f RETURNS {text}\nAS 'm.f'")
    except PenstockError:
        found = None
    if not isinstance(found, CreateFunction) or found.returns is None or found != _typed(found.returns):
        raise CatalogError(
            "UNKNOWN_TYPE", f"function {name}: '{text}' is not a type", hint="the types are those of columns"
        )
    return found.returns


def _typed(returns: SqlType) -> CreateFunction:
    return CreateFunction(name=Name("f"), parameters=(), returns=returns, language="python", body="m.f")
