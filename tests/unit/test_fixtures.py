"""Every SQL fixture through the front end: accepted, refused, equal spellings, the seed documents (A1-A18, B, C, D).

The files under `tests/fixtures` hold blocks separated by a line `---`. Lines `-- key: value` in front of a block say
what it is (`KEYS` lists them); what follows is the SQL. `setup` names a file of definitions the block is planned
against. `{{'x' * 3}}` stands for `xxx`, so that very long texts need no very long files. A line `>>>` ends the SQL of
an accepted block where the canonical text of its last statement follows. Positions count from the block's SQL.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from penstock.catalog.model import SourceDefinition
from penstock.errors import CONDITIONS
from penstock.plan.explain import explain_json, explain_text
from penstock.plan.made_jobs import reads_once
from penstock.plan.script import analyze_script
from penstock.plan.spark_text import spark_sql
from penstock.sql.format import format_statement
from penstock.sql.script import parse_script
from penstock.sql.statements import CreateRelation, Insert, Statement

if TYPE_CHECKING:
    from penstock.catalog.snapshot import Catalog
    from penstock.plan.script import StatementReport
    from penstock.sql.statements import Option

FIXTURES = Path(__file__).parent.parent / "fixtures"
KEYS = {
    *("name", "ids", "setup", "lenient", "mode", "canonical"),  # accepted
    *("condition", "at", "support", "hint", "statement", "bytes", "line-ends"),  # refused
    *("compare", "seed"),  # equal spellings, seed documents
}
META = re.compile(r"-- ([a-z-]+):(?: (.*))?$")
REPEAT = re.compile(r"\{\{'(.+?)' \* (\d+)\}\}")
CONTRACT_ID = re.compile(r"[A-W]\d{1,2}|DEC\d{1,2}|SC\d{1,2}")

# what the front end alone cannot raise: bugs of ours, the disk, the installation
NOT_IN_FIXTURES = {"INTERNAL_ERROR", "INSTALLATION_UNUSABLE", "STATE_PATH_UNUSABLE"}
# What only the engine raises: its own tests show each of them.
NOT_IN_FIXTURES |= {
    "BAD_RECORD",
    "BROKER_FAILED",
    "CHANGELOG_EXPIRED",
    "CHECKPOINT_DAMAGED",
    "CHECKSUM_MISMATCH",
    "CONNECTOR_FAILED",
    "CONNECTOR_MISSING",
    "DATABASE_CLOSED",
    "DATA_ERROR",
    "DIMENSION_MISSING",
    "DOWNLOAD_FAILED",
    "DUPLICATE_KEYS",
    "ENGINE_ALREADY_RUNNING",
    "FILE_NOT_FOUND",
    "FUNCTION_FAILED",
    "FUNCTION_MISSING",
    "INVALID_ROWS",
    "JAVA_MISSING",
    "JOB_FAILED",
    "JOB_STATE",
    "LATE_ROW",
    "PARTITIONS_CHANGED",
    "REGISTRY_REFUSED",
    "REGISTRY_UNAVAILABLE",
    "ROWS_CHANGED",
    "SCHEMA_CHANGED",
    "PATH_NOT_ALLOWED",
    "SINK_REFUSED",
    "SINK_UNAVAILABLE",
    "SINK_DAMAGED",
    "SOURCE_DATA_LOST",
    "SOURCE_UNAVAILABLE",
    "SPARK_FAILED",
    "STATE_INCOMPATIBLE",
    "STORAGE_FULL",
    "TOPIC_DAMAGED",
    "TOPIC_MISMATCH",
    "UNBOUNDED_QUERY",
    "UNKNOWN_CHECKPOINT",
}


@dataclass(frozen=True)
class Block:
    """One block of a fixture file: what its first lines say, its SQL, and the canonical text it must give, if any."""

    file: str
    meta: dict[str, str]
    sql: str
    canonical: str | None = None

    @property
    def name(self) -> str:
        return f"{self.file}: {self.meta['name']}"

    @property
    def lenient(self) -> bool:
        return self.meta.get("lenient") == "true"

    @property
    def catalog(self) -> Catalog | None:
        return setup_catalog(self.meta["setup"]) if "setup" in self.meta else None

    def text(self) -> str | bytes:
        """The script to analyze."""
        whole = self.sql
        if self.meta.get("line-ends") == "crlf":
            whole = whole.replace("\n", "\r\n")
        return whole.encode("latin-1") if self.meta.get("bytes") == "true" else whole


@cache
def setup_catalog(name: str) -> Catalog:
    """The catalog after a file of definitions."""
    found = analyze_script((FIXTURES / "setup" / f"{name}.sql").read_text(encoding="utf-8"))
    for report in found:
        assert report.error is None, f"setup {name}: {report.error}"
    last = found[-1].analysis
    assert last is not None
    return last.session.catalog


def repeated(match: re.Match[str]) -> str:
    return match[1].encode().decode("unicode_escape") * int(match[2])


def read_block(file: str, text: str) -> Block:
    lines = text.split("\n")
    meta: dict[str, str] = {}
    while (match := META.match(lines[0])) and match[1] in KEYS:
        meta[match[1]] = match[2] or ""
        lines.pop(0)
    sql, _, canonical = "\n".join(lines).partition("\n>>>\n")
    return Block(file, meta, REPEAT.sub(repeated, sql), canonical.strip() or None)


def blocks(folder: str) -> list[Block]:
    found: list[Block] = []
    for path in sorted((FIXTURES / folder).glob("*.sql")):
        file = f"{folder}/{path.stem}"
        found += [read_block(file, part) for part in re.split(r"(?m)^---\n", path.read_text(encoding="utf-8"))]
    return found


def spellings(block: Block) -> list[str]:
    return re.split(r"(?m)^===\n", block.sql)


ACCEPTED, REFUSED, EQUAL, SEEDS = blocks("accepted"), blocks("refused"), blocks("equal"), blocks("seeds")
each_accepted = pytest.mark.parametrize("block", [*ACCEPTED, *SEEDS], ids=lambda block: block.name)
each_refused = pytest.mark.parametrize("block", REFUSED, ids=lambda block: block.name)
each_group = pytest.mark.parametrize("block", EQUAL, ids=lambda block: block.name)


def reports(block: Block, sql: str | None = None) -> list[StatementReport]:
    """What the front end says of each statement of the block, or of one spelling in it."""
    text = block.text() if sql is None else sql
    return analyze_script(text, lenient=block.lenient, catalog=block.catalog, with_jobs=True)


def shown(_: Option) -> bool:
    return False


def spark_texts(report: StatementReport) -> list[str]:
    return [spark_sql(plan.spark) for plan in report.analysis.plans] if report.analysis is not None else []


def parsed(text: str | bytes) -> list[Statement]:
    found = parse_script(text)
    wrong = [item.error for item in found if item.error is not None]
    assert not wrong, wrong[0]
    return [item.statement for item in found if item.statement is not None]


@each_accepted
def test_accepted(block: Block) -> None:
    """Every statement of an accepted block plans; the last one has the change mode the block says."""
    found = reports(block)
    assert found, "no statement"
    for report in found:
        assert report.error is None, f"{report.kind}: {report.error}"
        assert report.canonical, f"{report.kind} has no canonical text"
    if "mode" in block.meta:
        expected = None if block.meta["mode"] == "none" else block.meta["mode"]
        assert found[-1].mode == expected
    if block.canonical is not None:
        assert found[-1].canonical == block.canonical


@each_accepted
def test_round_trip(block: Block) -> None:
    """Parse, format, parse gives the same statement, and formatting again gives the same text."""
    for statement in parsed(block.text()):
        text = format_statement(statement, hide=shown)
        again = parsed(text)
        assert again == [statement], text
        assert format_statement(again[0], hide=shown) == text


@each_accepted
def test_canonical_text_can_be_pasted(block: Block) -> None:
    """What we print as canonical is a script that means the same: equal canonical texts, modes and texts for Spark."""
    first = reports(block)
    assert all(report.canonical for report in first), [str(report.error) for report in first if report.error]
    second = reports(block, ";\n".join(str(report.canonical) for report in first))
    for before, after in zip(first, second, strict=True):
        assert after.error is None, f"{before.canonical}\n{after.error}"
        assert (after.canonical, after.mode) == (before.canonical, before.mode)
        assert spark_texts(after) == spark_texts(before)


@each_accepted
def test_explained(block: Block) -> None:
    """Every plan explains itself in words and in JSON, whose operators say what they cost (P2, P3)."""
    for report in reports(block):
        for plan in json.loads(json.dumps(explain_json(report)))["plans"]:
            names = [operator["name"] for operator in plan["operators"]]
            flags = {"is_stateful", "is_broadcast", "requires_shuffle"}
            assert names, report.canonical
            assert all(isinstance(operator[flag], bool) for operator in plan["operators"] for flag in flags)
            assert all(name in explain_text(report) for name in names)


@each_accepted
def test_what_is_accepted_runs(block: Block) -> None:
    """A check says of nothing that it is fine where EXPLAIN says that no job runs it."""
    for report in reports(block):
        inserts = isinstance(report.statement, Insert)  # may write what there is, without a job
        if report.error is None and not (inserts and report.plan is not None and reads_once(report.plan)):
            plans = explain_json(report)["plans"]
            assert not [plan["job"] for plan in plans if str(plan["job"]).startswith("not run yet")], report.canonical


@each_refused
def test_refused(block: Block) -> None:
    """The statement at fault is refused with condition, place, support and hint (A10); the others are fine."""
    found = reports(block)
    at_fault = int(block.meta.get("statement", len(found)))
    for number, report in enumerate(found, start=1):
        if number != at_fault:
            assert report.error is None, f"statement {number}: {report.error}"
    error = found[at_fault - 1].error
    assert error is not None, f"accepted as {found[at_fault - 1].canonical}"
    assert error.condition == block.meta["condition"], str(error)
    assert (error.support or "none") == block.meta["support"]
    assert error.span is not None, str(error)
    assert f"{error.span.line}:{error.span.column}" == block.meta["at"], str(error)
    if "hint" in block.meta:
        assert block.meta["hint"].lower() in (error.hint or "").lower(), str(error)


@each_refused
def test_refusals_are_well_told(block: Block) -> None:
    """A message is short, begins in lower case or with a name, has no full stop, and a refusal says what to do."""
    for report in reports(block):
        if (error := report.error) is None:
            continue
        assert error.sqlstate == CONDITIONS[error.condition].sqlstate
        assert not error.message.endswith("."), error.message
        assert len(error.message) < 300, error.message
        first = error.message.split()[0]
        assert first == first.lower() or not first.istitle() or "'" in first, error.message
        assert error.hint or error.support is None, f"a refusal without a way out: {error}"


@each_group
def test_equal(block: Block) -> None:
    """All spellings of a group mean the same (A14, D17): one canonical text, one definition, or one text for Spark."""
    compare = block.meta.get("compare", "canonical")
    found: list[object] = []
    for sql in spellings(block):
        said = reports(block, sql)
        for report in said:
            assert report.error is None, f"{sql}\n{report.error}"
        found.append(meaning(said[-1], compare))
    for sql, meant in zip(spellings(block), found, strict=True):
        assert meant == found[0], sql


def meaning(report: StatementReport, compare: str) -> object:
    """What must be equal: the canonical text; for `spark` the text that would run; for `definition` what is kept."""
    analysis, statement = report.analysis, report.statement
    assert analysis is not None
    if compare == "spark":
        assert analysis.plans
        return spark_texts(report)
    if compare == "definition":
        assert isinstance(statement, CreateRelation)
        kept = analysis.session.catalog.find(statement.name)
        assert isinstance(kept, SourceDefinition)
        options = kept.options
        # what a relation may serve as is no part of what its rows are
        given = {key: options.values[key] for key in options.given - {"type"}}
        return kept.columns, kept.event_time, kept.primary_key, options.connector, options.format, given
    return report.canonical


def test_blocks_are_well_formed() -> None:
    """Every block has a name of its own, contract IDs that look like ones, and only keys we know."""
    for folder in (ACCEPTED, REFUSED, EQUAL, SEEDS):
        names = [block.name for block in folder]
        assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
        for block in folder:
            assert set(block.meta) <= KEYS, block.name
            assert block.sql.strip(), block.name
            assert all(CONTRACT_ID.fullmatch(word) for word in block.meta["ids"].split()), block.name
    for block in REFUSED:
        assert {"condition", "at", "support"} <= set(block.meta), block.name
        assert block.meta["condition"] in CONDITIONS, block.name
    for block in EQUAL:
        assert len(spellings(block)) > 1, block.name
    for block in SEEDS:
        assert re.match(r"00\d_[0-9a-f]{16}\.txt", block.meta["seed"]), block.name


def test_enough_of_them() -> None:
    """At least 230 accepted statements and 130 refusals, with the setups not counted."""
    accepted = sum(len(parse_script(block.sql)) for block in ACCEPTED)
    assert accepted >= 230
    assert len(REFUSED) >= 130


def test_every_condition_is_refused_somewhere() -> None:
    """Each condition the front end can raise occurs in the refusals."""
    told = {block.meta["condition"] for block in REFUSED}
    assert told == set(CONDITIONS) - NOT_IN_FIXTURES


def test_every_contract_item_of_the_front_end_occurs() -> None:
    """A1-A18, B1-B14, C1-C12 and D1-D27, as far as they need no run."""
    told = {word for block in (*ACCEPTED, *REFUSED, *EQUAL, *SEEDS) for word in block.meta["ids"].split()}
    lengths = {"A": 18, "B": 14, "C": 12, "D": 27}
    wanted = {f"{letter}{n}" for letter, length in lengths.items() for n in range(1, length + 1)}
    needs_a_run = {"A8", "A16", "B11", "B12", "B13", "C10", "D13", "D15", "D16", "D21", "D22", "D24", "D25", "D26"}
    assert wanted - told <= needs_a_run, sorted(wanted - told - needs_a_run)
