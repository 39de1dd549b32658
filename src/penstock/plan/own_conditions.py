"""The conditions of a SELECT that speak of one of its relations alone."""

from __future__ import annotations

from sqlglot import exp

from penstock.plan.joins import conjuncts_of


def conjuncts_in(query: exp.Select) -> list[exp.Expr]:
    """The parts of WHERE that all must hold."""
    where = query.args.get("where")
    return conjuncts_of(where.this) if where is not None else []


def conditions_on(query: exp.Select, alias: str) -> list[exp.Expr]:
    """The parts of WHERE that speak of one relation alone, where they can be asked before the joins."""
    sides = [join.side.upper() for join in query.args.get("joins") or []]
    first = query.args["from_"].this.alias_or_name == alias
    if any(join.method and join.this.alias_or_name == alias for join in query.args.get("joins") or []):
        return []  # which row is the last depends on those before it
    if any(sides) and not (first and all(side in ("", "LEFT") for side in sides)):
        return []
    found: list[exp.Expr] = []
    for each in conjuncts_in(query):
        nodes = list(each.walk())
        owners = {node.table for node in nodes if isinstance(node, exp.Column)}
        if owners == {alias} and not any(isinstance(node, exp.Subquery | exp.Exists) for node in nodes):
            found.append(each)
    return found
