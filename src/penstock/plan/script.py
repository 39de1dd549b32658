"""From the text of a script to a report on each of its statements."""

from __future__ import annotations

from collections.abc import Callable

from penstock.catalog.model import ChangeMode
from penstock.catalog.snapshot import Catalog
from penstock.errors import NotYetError, PenstockError, ScriptError, Span, bugs_told
from penstock.frozen import frozen
from penstock.options import SETTINGS, hide_option, public_option, setting_key
from penstock.plan.analysis import Analysis
from penstock.plan.analyze import analyze
from penstock.plan.canonical import canonical_statement
from penstock.plan.logical import LogicalPlan
from penstock.plan.made_jobs import check_jobs
from penstock.plan.session import Session
from penstock.sql import statements as s
from penstock.sql.format import format_statement
from penstock.sql.redact import Source
from penstock.sql.script import Parsed, parse_script


@frozen
class StatementReport:
    """What became of one statement: its plan, or its error."""

    span: Span
    kind: str
    source: Source
    statement: s.Statement | None = None
    error: PenstockError | None = None
    canonical: str | None = None
    mode: ChangeMode | None = None
    analysis: Analysis | None = None
    notices: tuple[str, ...] = ()
    session: Session | None = None

    @property
    def ok(self) -> bool:
        return self.error is None

    @property
    def plan(self) -> LogicalPlan | None:
        return self.analysis.plan if self.analysis is not None else None


def analyze_script(
    text: str | bytes, *, lenient: bool = False, catalog: Catalog | None = None, with_jobs: bool = False
) -> list[StatementReport]:
    """Parses, resolves and plans every statement of a script, each against what those before it have defined.

    `with_jobs`: the jobs too, so that a statement whose job this version does not run is in error.
    """
    session = Session(catalog=catalog or Catalog(), lenient=lenient)
    statements, source = read_script(text)
    reports: list[StatementReport] = []
    for parsed in statements:
        report, session = report_statement(parsed, source, session, with_jobs=with_jobs)
        reports.append(report)
    return reports


def read_script(text: str | bytes) -> tuple[list[Parsed], Source]:
    """The statements of a script, and its text with everything masked that may be secret.

    One source for the whole script: what may be shown of any statement may be shown beside an error in another.
    """
    statements = parse_script(text)
    if not statements:
        return [], Source("", "")
    public = [span for parsed in statements if parsed.statement is not None for span in _public_spans(parsed.statement)]
    return statements, statements[0].source.revealing(public)


def report_statement(
    parsed: Parsed, source: Source, session: Session, *, with_jobs: bool = False
) -> tuple[StatementReport, Session]:
    """The report on one statement, and the session after it; `with_jobs` as in `analyze_script`."""
    statement = parsed.statement
    if statement is None:
        if parsed.error is not None and parsed.error.span is None:
            parsed.error.span = parsed.span
        return StatementReport(parsed.span, parsed.kind, source, error=parsed.error), session
    try:
        with bugs_told():
            shown = canonical_statement(statement)
            canonical = format_statement(shown, hide=hidden_values(shown))
            analysis = analyze(statement, session)
        if with_jobs:
            try:
                with bugs_told():
                    check_jobs(statement, analysis, session)
            except PenstockError as error:
                # What the statement defines is well formed: what is built on it is checked, too.
                return _failed(parsed, source, statement, error, _mode(analysis)), analysis.session
    except PenstockError as error:
        told = error.mode if isinstance(error, NotYetError) else None
        return _failed(parsed, source, statement, error, told), session
    except RecursionError:
        too_deep = ScriptError(
            "STATEMENT_TOO_DEEP",
            "the statement is nested too deeply to be planned",
            hint="store a part of it as a materialized view, which is read by its name",
            span=parsed.span,
        )
        return _failed(parsed, source, statement, too_deep, None), session
    report = StatementReport(
        parsed.span,
        parsed.kind,
        source,
        statement=statement,
        canonical=canonical,
        mode=_mode(analysis),
        analysis=analysis,
        notices=analysis.notices,
        session=session,
    )
    return report, analysis.session


def _mode(analysis: Analysis) -> ChangeMode | None:
    return analysis.mode.value if analysis.mode is not None else None


def _failed(
    parsed: Parsed, source: Source, statement: s.Statement, error: PenstockError, mode: ChangeMode | None
) -> StatementReport:
    if error.span is None:
        error.span = parsed.span
    return StatementReport(parsed.span, parsed.kind, source, statement=statement, error=error, mode=mode)


def options_of(statement: s.Statement) -> tuple[s.Option, ...]:
    """The options a statement gives, those of a FORMAT clause and of nested statements included."""
    if isinstance(statement, s.Explain | s.ShowRewrite):
        return options_of(statement.statement)
    if isinstance(statement, s.StatementSet):
        return tuple(option for insert in statement.inserts for option in insert.options)
    found: tuple[s.Option, ...] = getattr(statement, "options", ())
    clause = getattr(statement, "format", None)
    return found + (clause.options if isinstance(clause, s.Format) else ())


def hidden_values(statement: s.Statement) -> Callable[[s.Option], bool]:
    """Which option values of a statement are not shown."""
    if isinstance(statement, s.SetSetting):
        public = public_setting(statement)
        return lambda _: not public
    if isinstance(statement, s.CreateSecret):
        return lambda option: option.key.casefold() != "backend"
    return hide_option(options_of(statement))


def _public_spans(statement: s.Statement) -> list[Span]:
    if isinstance(statement, s.SetSetting):
        return [statement.value_span] if public_setting(statement) else []
    options = options_of(statement)
    if not options:
        return []
    public = public_option(options)
    return [option.value_span for option in options if public(option)]


def public_setting(statement: s.SetSetting) -> bool:
    """Whether the value of a SET may be shown: that of a known setting that is not secret."""
    try:
        key = setting_key(statement.key)
    except PenstockError:
        return False
    spec = next(spec for spec in SETTINGS if spec.key == key)
    return not spec.secret and not spec.kind.sensitive(statement.value.reveal())
