"""Names behind a dot: what of them is a relation, a column or a field is found when they are bound."""

from __future__ import annotations

from sqlglot import exp


def field_of(base: exp.Expr, name: exp.Expr) -> exp.Expr:
    """`base.name`, as the grammar reads it.

    >>> field_of(exp.column("address"), exp.to_identifier("city")).sql()
    'address.city'
    """
    if isinstance(base, exp.Column) and not base.args.get("catalog"):
        args = base.args
        return exp.Column(this=name, table=base.this, db=args.get("table"), catalog=args.get("db"))
    return exp.Dot(this=base, expression=name)
