"""Which conditions the source can raise, found in its syntax trees.

A condition is raised where it is the first argument of a call of an error class: as a constant, through a local name,
out of a module's table that the call looks into, or through the parameter of a function (or of a class) that hands it
on to such a call. A name that only stands somewhere, in a comparison or a list, is not raised.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from penstock.errors import CONDITIONS, PenstockError

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Slot:
    """Where a call takes its condition: by position (not counting `self`) or by keyword."""

    position: int | None
    keyword: str | None = None


def error_classes() -> frozenset[str]:
    """The names of our error classes that take a condition."""
    found, rest = set(), [PenstockError]
    while rest:
        error = rest.pop()
        found.add(error.__name__)
        rest += error.__subclasses__()
    return frozenset(found - {"InternalError"})


def raised_conditions(trees: Iterable[ast.Module]) -> frozenset[str]:
    """Every condition that a call in these modules can raise."""
    modules = list(trees)
    # An InternalError names its one condition itself.
    bugs = any(ast.unparse(call.func) == "InternalError" for tree in modules for call, _ in _calls(tree, ()))
    takers: dict[str, set[Slot]] = {name: {Slot(0, "condition")} for name in error_classes()}
    found: set[str] = {"INTERNAL_ERROR"} if bugs else set()
    while True:
        before = sum(map(len, takers.values()))
        for tree in modules:
            for call, inside in _calls(tree, ()):
                for argument in _conditions_of(call, inside, takers):
                    found |= _values(argument, inside, tree)
                    _hand_on(argument, inside, modules, takers)
        if sum(map(len, takers.values())) == before:
            return frozenset(found)


def _calls(node: ast.AST, inside: tuple[Function, ...]) -> Iterator[tuple[ast.Call, tuple[Function, ...]]]:
    """Every call, with the functions it stands in, the innermost first."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            yield child, inside
        yield from _calls(child, (child, *inside) if isinstance(child, Function) else inside)


def _conditions_of(call: ast.Call, inside: tuple[Function, ...], takers: dict[str, set[Slot]]) -> Iterator[ast.expr]:
    """The arguments of a call that are taken as a condition."""
    name = ast.unparse(call.func).rpartition(".")[2]
    slots = takers.get(name, set()) | ({Slot(0)} if _is_error_parameter(name, inside) else set())
    for slot in slots:
        if slot.position is not None and slot.position < len(call.args):
            yield call.args[slot.position]
        yield from (keyword.value for keyword in call.keywords if keyword.arg and keyword.arg == slot.keyword)


def _is_error_parameter(name: str, inside: tuple[Function, ...]) -> bool:
    """Whether a name is a parameter that holds one of our error classes."""
    for function in inside:
        for parameter in _parameters(function):
            if parameter.arg == name and parameter.annotation is not None:
                return any(f"type[{error}]" in ast.unparse(parameter.annotation) for error in error_classes())
    return False


def _parameters(function: Function) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _values(argument: ast.expr, inside: tuple[Function, ...], tree: ast.Module) -> set[str]:
    """The conditions an argument can be."""
    match argument:
        case ast.Constant(value=str(value)):
            return {value} & set(CONDITIONS)
        case ast.IfExp():
            return _values(argument.body, inside, tree) | _values(argument.orelse, inside, tree)
        case (
            ast.Subscript(value=ast.Name(id=table)) | ast.Call(func=ast.Attribute(value=ast.Name(id=table), attr="get"))
        ):
            return _table(table, tree)
        case ast.Name(id=name) if inside:
            return _assigned(name, inside, tree) | _default(name, inside)
        case _:
            return set()


def _table(name: str, tree: ast.Module) -> set[str]:
    """The conditions among the values of a table of the module."""
    found: set[str] = set()
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=target)], value=value)
                | ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value)
            ) if target == name:
                parts = value.values if isinstance(value, ast.Dict) else [value]
                found |= {constant for part in parts for constant in _constants(part)}
            case _:
                pass
    return found


def _constants(node: ast.AST) -> set[str]:
    constants = (
        part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
    return set(constants) & set(CONDITIONS)


def _assigned(name: str, inside: tuple[Function, ...], tree: ast.Module) -> set[str]:
    """What the innermost function gives a local name."""
    found: set[str] = set()
    for node in ast.walk(inside[0]):
        match node:
            case (
                ast.Assign(targets=[target], value=value)
                | ast.For(target=target, iter=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                found |= _bound(name, target, value, inside, tree)
            case _:
                pass
    return found


def _bound(name: str, target: ast.expr, value: ast.expr, inside: tuple[Function, ...], tree: ast.Module) -> set[str]:
    match target, value:
        case ast.Name(id=found), _ if found == name:
            # `a = a` would go round for ever.
            return set() if isinstance(value, ast.Name) else _values(value, inside, tree)
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            pairs = zip(targets, values, strict=True)
            return {one for part, given in pairs for one in _bound(name, part, given, inside, tree)}
        case ast.Tuple(elts=targets), _ if any(isinstance(part, ast.Name) and part.id == name for part in targets):
            return _table(value.id, tree) if isinstance(value, ast.Name) else _values(value, inside, tree)
        case _:
            return set()


def _default(name: str, inside: tuple[Function, ...]) -> set[str]:
    """The condition that a parameter has when none is given."""
    arguments = inside[0].args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [
        *zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {one for parameter, value in pairs if parameter.arg == name and value for one in _constants(value)}


def _hand_on(
    argument: ast.expr, inside: tuple[Function, ...], modules: list[ast.Module], takers: dict[str, set[Slot]]
) -> None:
    """Note that calls of a function give a condition, where it hands its parameter on as one."""
    if isinstance(argument, ast.Name) and inside:
        slot = _slot(inside[0], argument.id)
        if slot is not None:
            takers.setdefault(inside[0].name, set()).add(slot)
    elif isinstance(argument, ast.Attribute) and argument.attr == "condition":
        for tree in modules:
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    for made in node.body:
                        if isinstance(made, ast.FunctionDef) and made.name == "__init__":
                            slot = _slot(made, "condition")
                            if slot is not None:
                                takers.setdefault(node.name, set()).add(slot)


def _slot(function: Function, name: str) -> Slot | None:
    plain = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    plain = plain[1:] if plain[:1] in (["self"], ["cls"]) else plain
    if name in plain:
        return Slot(plain.index(name), name)
    return Slot(None, name) if any(parameter.arg == name for parameter in function.args.kwonlyargs) else None
