"""The bracketed list of a CREATE: columns, watermarks, keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from penstock.errors import CatalogError, ResolutionError, Span
from penstock.sql.durations import NotADuration, duration_us
from penstock.sql.parser import PenstockParser, finish
from penstock.sql.statements import NOWHERE, Column, Name, Watermark
from penstock.types import SqlType

T = TokenType


@dataclass(slots=True)
class Columns:
    """What the list says, while it is read."""

    columns: list[Column] = field(default_factory=list)
    watermark: Watermark | None = None
    primary_key: tuple[Name, ...] = ()
    keys: list[tuple[Name, Token]] = field(default_factory=list)  # ksqlDB's KEY columns, and where the word stands

    def set_watermark(self, watermark: Watermark) -> None:
        """The watermark of the relation; there is one."""
        if self.watermark is not None:
            raise CatalogError(
                "INVALID_WATERMARK", "a relation has one watermark, this is the second", span=watermark.span
            )
        self.watermark = watermark

    def set_primary_key(self, names: tuple[Name, ...]) -> None:
        """The primary key; there is one."""
        if self.primary_key:
            raise CatalogError(
                "INVALID_DEFINITION", "a relation has one primary key, this is the second", span=names[0].span
            )
        self.primary_key = names


def column_list(p: PenstockParser) -> Columns:
    """( column | WATERMARK FOR … | PRIMARY KEY (…), … )"""
    found = Columns()
    if p.current.token_type == T.L_PAREN and p.following.token_type == T.STAR:
        p.step()
        p.not_yet("columns taken from a schema registry are not there yet", "list the columns and their types")
    p.bracketed(lambda: _item(p, found), comma_behind=True)  # as RisingWave's examples have it
    for column in found.columns:
        _storable(column.type, column.type_span)
    return found


def _item(p: PenstockParser, found: Columns) -> None:
    first = p.current
    if p.word("WATERMARK", "FOR"):
        found.set_watermark(_watermark(p, first))
        return
    if p.ahead("CONSTRAINT") and p.peek_text(2, "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        p.step(2)
    if p.word("PRIMARY", "KEY"):
        names = p.names()
        if not names:
            p.fail("a column in the primary key")
        found.set_primary_key(names)
        p.word("NOT", "ENFORCED")
        return
    for words in (("UNIQUE", "("), ("FOREIGN", "KEY"), ("CHECK", "("), ("INDEX", "("), ("PERIOD", "FOR")):
        if p.ahead(*words):
            p.not_yet(f"{words[0]} constraints are not there yet", "leave the constraint out")
    found.columns.append(_column(p, found))


def _column(p: PenstockParser, found: Columns) -> Column:
    first = p.current
    name = p.name("the name of a column")
    if p.word("AS"):
        column = _Draft(name, None, computed=_computed(p))
    else:
        at = p.current
        column = _Draft(name, p.type_name())
        column.type_span = p.since(at)
    while _constraint(p, column, found):
        pass
    return Column(
        name,
        column.type,
        nullable=column.nullable,
        computed=column.computed,
        metadata=column.metadata,
        virtual=column.virtual,
        header=column.header,
        comment=column.comment,
        span=p.since(first),
        type_span=column.type_span,
    )


def _storable(kind: SqlType | None, span: Span) -> None:
    """Refuses a column that holds intervals: no format carries them."""
    stack = [kind] if kind is not None else []
    while stack:
        one = stack.pop()
        if one.name == "INTERVAL":
            raise ResolutionError(
                "UNKNOWN_TYPE",
                "a column cannot hold an INTERVAL",
                hint="keep a number, such as seconds BIGINT, and multiply: seconds * INTERVAL '1' SECOND",
                span=span,
            )
        stack += [*one.elements, *(field.type for field in one.fields)]


@dataclass(slots=True)
class _Draft:
    name: Name
    type: SqlType | None
    computed: exp.Expr | None = None
    nullable: bool = True
    metadata: str | None = None
    virtual: bool = False
    header: str | None = None
    comment: str | None = None
    type_span: Span = NOWHERE


def _computed(p: PenstockParser) -> exp.Expr:
    tree = p.an_expression()
    while isinstance(tree, exp.Paren):
        tree = tree.this
    finish(tree)
    return tree


def _constraint(p: PenstockParser, column: _Draft, found: Columns) -> bool:
    """One word group behind a column; False when none is left."""
    first = p.current
    if p.word("NOT", "NULL"):
        column.nullable = False
    elif p.word("NULL"):
        column.nullable = True
    elif p.word("PRIMARY", "KEY"):
        found.set_primary_key((column.name,))
        p.word("NOT", "ENFORCED")
    elif p.word("COMMENT"):
        column.comment = p.string()
    elif p.word("METADATA"):
        _source_of(p, column)
        column.metadata = p.string("the key of the metadata") if p.word("FROM") else column.name.text
        column.virtual = p.word("VIRTUAL")
    elif p.ahead("HEADER", "("):
        _source_of(p, column)
        p.step(2)
        column.header = p.string("the key of the header")
        p.expect_symbol(T.R_PAREN, ")")
    elif p.ahead("HEADERS") and first.token_type == T.VAR:
        _source_of(p, column)
        p.step()
        column.metadata, column.virtual = "headers", True
    elif p.ahead("KEY") and first.token_type == T.VAR:
        p.step()
        found.keys.append((column.name, first))
    elif p.word("GENERATED") or p.ahead("AS"):
        _generated(p, column)
    elif p.word("LATENESS"):
        found.set_watermark(Watermark(column.name, _delay(p, p.an_expression(), first), p.since(first)))
    elif p.word("WATERMARK"):
        p.symbol(T.FOR)
        found.set_watermark(_watermark(p, first, column.name))
    else:
        return _refused(p, first)
    return True


def _source_of(p: PenstockParser, column: _Draft) -> None:
    if column.metadata is not None or column.header is not None or column.computed is not None:
        p.fail("one source for the column")


def _generated(p: PenstockParser, column: _Draft) -> None:
    """GENERATED ALWAYS AS (e) [STORED | VIRTUAL], or AS e behind a type"""
    _source_of(p, column)
    if p.taken.text.upper() == "GENERATED":
        p.expect("ALWAYS")
    p.expect("AS")
    if p.ahead("IDENTITY"):
        p.not_yet("identity columns are not there yet", "take the offset: c BIGINT METADATA FROM 'offset'")
    column.computed = _computed(p)
    p.any_word("STORED", "VIRTUAL")


def _refused(p: PenstockParser, first: Token) -> bool:
    if p.ahead("DEFAULT"):
        p.not_yet("DEFAULT values of columns are not there yet", "use a computed column: c AS COALESCE(d, 0)", first)
    if first.text.upper() in {"UNIQUE", "REFERENCES", "CHECK"} and first.token_type != T.IDENTIFIER:
        p.not_yet(f"{first.text.upper()} constraints are not there yet", "leave the constraint out", first)
    return False


def _watermark(p: PenstockParser, first: Token, column: Name | None = None) -> Watermark:
    """… FOR ts [AS ts [- INTERVAL …]]; for an inline watermark the name may be left out."""
    if p.following.token_type == T.DOT:
        raise _bad_watermark(
            p,
            p.current,
            "a watermark stands on a column of the table itself, not on a nested field",
            "add a computed column, such as ts AS r.ts, and write WATERMARK FOR ts",
        )
    name = p.name("the time column") if column is None or p.current.token_type != T.ALIAS else column
    if column is not None and name.text.lower() != column.text.lower():
        raise _bad_watermark(p, first, "the watermark of a column names another column")
    if not p.word("AS"):
        return Watermark(name, 0, p.since(first))
    tree, delay = _behind(p, p.an_expression(), first)
    if not isinstance(tree, exp.Column) or tree.table or tree.name.lower() != name.text.lower():
        raise _bad_watermark(p, first, "a watermark is its column minus a constant interval")
    if p.word("WITH", "TTL"):
        p.not_yet("WITH TTL is not there yet", "set state_ttl on the view", first)
    return Watermark(name, delay, p.since(first))


def _behind(p: PenstockParser, tree: exp.Expr, first: Token) -> tuple[exp.Expr, int]:
    """What the intervals are taken from, and how much they are in all: ts - INTERVAL … [- INTERVAL …]"""
    delay = 0
    while isinstance(tree, exp.Paren | exp.Sub):
        if isinstance(tree, exp.Sub):
            delay += _delay(p, tree.expression, first)
        tree = tree.this
    return tree, delay


def _delay(p: PenstockParser, node: exp.Expr, first: Token) -> int:
    try:
        delay = duration_us(node)
    except NotADuration as problem:
        raise _bad_watermark(p, first, f"the delay of the watermark cannot be used: {problem}") from None
    if delay < 0:
        raise _bad_watermark(p, first, "the delay of a watermark cannot be negative")
    return delay


def _bad_watermark(
    p: PenstockParser, first: Token, message: str, hint: str = "write WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
) -> ResolutionError:
    return ResolutionError("INVALID_WATERMARK", message, hint=hint, span=p.since(first))
