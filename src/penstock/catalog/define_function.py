"""CREATE FUNCTION: a function of the user's, in Python by its path or its source, or in SQL as an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from penstock.catalog.function_body import read_body
from penstock.catalog.functions import DENIED, find_function
from penstock.catalog.model import FunctionDefinition
from penstock.catalog.text import canonical_text
from penstock.errors import CatalogError, OptionError, UnsupportedError
from penstock.sql.format import format_tree
from penstock.sql.statements import CreateFunction

if TYPE_CHECKING:
    import ast

# What WITH may say of a function: how it takes its arguments, what becomes of a row it fails on, and whether it is a
# class with the parts of an aggregate.
FUNCTION_OPTIONS: Final = {
    "takes": ("values", "arrow", "pandas"),
    "on_error": ("fail", "null"),
    "merge": ("true", "false"),
}


def define_function(statement: CreateFunction) -> FunctionDefinition:
    """The definition; the function itself is loaded when a query that uses it starts."""
    _check_language(statement)
    _check_name(statement)
    _check_parameters(statement)
    if statement.expression is not None:
        _check_sql(statement)
    elif read_body(statement.body, statement.name.text).kind == "source":
        _check_source(statement)
    return FunctionDefinition(
        name=statement.name,
        parameters=statement.parameters,
        returns=statement.returns,
        language=statement.language.lower(),
        body=statement.body if statement.expression is None else format_tree(statement.expression),
        expression=statement.expression,
        aggregate=statement.aggregate,
        temporary=statement.temporary,
        options=_options(statement),
        text=canonical_text(statement),
    )


def _options(statement: CreateFunction) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for option in statement.options:
        key = option.key.lower().replace("-", "_")
        if key not in FUNCTION_OPTIONS:
            raise OptionError(
                "UNKNOWN_OPTION",
                f"unknown option of function {statement.name}: {option.key}",
                hint=f"a function has {', '.join(FUNCTION_OPTIONS)}",
                span=option.key_span,
            )
        value = option.value.reveal().lower()
        if value not in FUNCTION_OPTIONS[key]:
            raise OptionError(
                "INVALID_OPTION",
                f"option {key} of function {statement.name} must be {_one_of(FUNCTION_OPTIONS[key])}, not '{value}'",
                span=option.value_span,
            )
        if found.setdefault(key, value) != value:
            raise OptionError(
                "CONFLICTING_OPTIONS",
                f"option {key} of function {statement.name} is given twice",
                hint="give it once",
                span=option.key_span,
            )
    return tuple(sorted(found.items()))


def _one_of(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words[:-1]) + f" or '{words[-1]}'"


def _check_language(statement: CreateFunction) -> None:
    language = statement.language.lower()
    if language in ("python", "sql"):
        return
    message = f"function {statement.name} is written in {statement.language}"
    raise UnsupportedError(
        "UNSUPPORTED_CLAUSE", message, hint="functions here are written in Python or SQL", span=statement.name.span
    )


def _check_name(statement: CreateFunction) -> None:
    name = statement.name.text
    if find_function(name) is not None or name.lower() in DENIED or name.casefold() == "proctime":
        raise CatalogError(
            "OBJECT_EXISTS",
            f"function {statement.name} is built in",
            hint="choose another name",
            span=statement.name.span,
        )


def _check_parameters(statement: CreateFunction) -> None:
    seen: set[str] = set()
    for parameter in statement.parameters:
        if parameter.name is None:
            continue
        if parameter.name.lower() in seen:
            raise CatalogError(
                "INVALID_DEFINITION",
                f"function {statement.name} has two parameters named {parameter.name}",
                hint="rename one of them",
                span=statement.name.span,
            )
        seen.add(parameter.name.lower())


def _check_sql(statement: CreateFunction) -> None:
    """What only functions in Python have."""
    if statement.options or statement.aggregate:
        what = f"the option {statement.options[0].key}" if statement.options else "AGGREGATE"
        raise UnsupportedError(
            "UNSUPPORTED_CLAUSE",
            f"function {statement.name} is written in SQL, and {what} is for functions in Python",
            hint="leave it out; a view computes aggregates",
            span=statement.options[0].key_span if statement.options else statement.name.span,
        )


def _check_source(statement: CreateFunction) -> None:
    """Source text must be Python that defines the function, and say in SQL what comes out of it."""
    import ast
    import textwrap

    name = statement.name
    try:
        tree = ast.parse(textwrap.dedent(statement.body).strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CatalogError(
            "INVALID_DEFINITION",
            f"the body of function {name} is neither a path such as module.function nor Python",
            hint=f"write AS 'module.{name}', AS 'file.py:{name}', or AS $$ def {name}(…): … $$",
            span=name.span,
        ) from None
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    if name.text.lower() not in {item.lower() for item in defined}:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"the body of function {name} does not define {name}",
            hint=f"it defines {', '.join(defined)}" if defined else f"write def {name}(…): …",
            span=name.span,
        )
    if statement.returns is None:
        raise CatalogError(
            "INVALID_DEFINITION",
            f"function {name} does not say what it returns",
            hint="add RETURNS and a type",
            span=name.span,
        )
    _check_arity(statement, tree)


def _check_arity(statement: CreateFunction, tree: ast.Module) -> None:
    """As many arguments in SQL as the Python takes; what a decorator makes of a function nobody knows."""
    import ast

    name, given = statement.name, len(statement.parameters)
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name.text]
    if not given or not found or found[-1].decorator_list:
        return
    taken = found[-1].args
    most = len(taken.posonlyargs) + len(taken.args)
    least = most - len(taken.defaults)
    if given < least or (given > most and taken.vararg is None):
        takes = f"{least}" if least == most else f"{least} to {most}" if taken.vararg is None else f"{least} or more"
        raise CatalogError(
            "INVALID_DEFINITION",
            f"function {name} is declared with {_arguments(given)}, and its def takes {takes}",
            hint="declare as many parameters as the def has",
            span=name.span,
        )


def _arguments(count: int) -> str:
    return f"{count} argument{'' if count == 1 else 's'}"
