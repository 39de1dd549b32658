"""The reference names every command, and no link leads nowhere."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from penstock.catalog.system import SYSTEM_TABLES
from penstock.failpoints import NAMES
from penstock.interfaces.cli.commands import cli
from penstock.plan.job_plan import JobKind, plan_job
from penstock.plan.script import analyze_script
from penstock.runtime.states import JobState
from penstock.spark.session import SparkSettings, spark_options
from penstock.sql import statements
from penstock.sql.script import parse_script
from tests.docs.blocks import page_blocks
from tests.project import ROOT, modules, title


@pytest.mark.parametrize("command", cli.commands)
def test_command_is_documented_with_its_help(command: str) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    assert f"## penstock {command}\n" in page
    assert f"$ penstock {command} --help\n" in page


def test_the_readme_shows_the_script_it_runs() -> None:
    script = (ROOT / "examples" / "minutes.sql").read_text(encoding="utf-8")
    assert f"```sql\n{script}```" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_between_pages_lead_somewhere() -> None:
    broken = []
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]:
        for target, _, anchor in re.findall(r"\]\(([^)#:]*)(#([^)]*))?\)", page.read_text(encoding="utf-8")):
            other = page.parent / target if target else page
            if not other.exists() or (anchor and anchor not in anchors(other.read_text(encoding="utf-8"))):
                broken.append(f"{title(page)}: {target}#{anchor}")
    assert broken == []


def anchors(page: str) -> set[str]:
    """The names of a page's headings, as links spell them."""
    headings = re.findall(r"^#+ (.+)$", page, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_reached_from_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")} - {"index.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()


def test_every_page_that_a_message_names_is_there() -> None:
    named = set()
    for module in modules():
        named |= set(re.findall(r"docs/[\w/-]+\.md", module.path.read_text(encoding="utf-8")))
    assert {page for page in named if not (ROOT / page).exists()} == set()


def operations() -> str:
    return (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_system_tables_are_documented_with_their_columns_and_types() -> None:
    page = (ROOT / "docs" / "reference" / "system-tables.md").read_text(encoding="utf-8")
    written = [
        (section.partition("\n")[0], re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, flags=re.MULTILINE))
        for section in page.split("\n## ")[1:]
    ]
    assert written == [
        (table.name, [(column.name, str(column.type)) for column in table.columns]) for table in SYSTEM_TABLES
    ]


def test_the_index_has_four_kinds_of_page_and_each_page_once() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    groups = {
        section.partition("\n")[0]: re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", section, flags=re.MULTILINE)
        for section in index.split("\n## ")[1:]
    }
    assert list(groups) == ["Tutorial", "How to", "Reference", "Explanation", "The project"]
    listed = [page for pages in groups.values() for page in pages]
    assert sorted(set(listed)) == sorted(listed)
    assert {"sql/statements.md", "sql/functions.md", "connectors.md", *REFERENCE} <= set(groups["Reference"])
    assert {"sql/event-time.md", "guarantees.md", "spark.md"} <= set(groups["Explanation"])


REFERENCE = {f"reference/{name}.md" for name in ("options", "errors", "system-tables", "cli")}


def test_the_page_about_spark_names_every_option_that_it_is_started_with() -> None:
    page = (ROOT / "docs" / "spark.md").read_text(encoding="utf-8")
    written = re.findall(r"^\| `(spark\.[^`]+)` \|", page, flags=re.MULTILINE)
    assert written == list(spark_options(SparkSettings(log_directory=ROOT)))


def test_the_page_about_spark_shows_every_kind_of_job() -> None:
    """Each view of the page is named after the kind of job that it becomes."""
    texts = [block.text for language, block in page_blocks(ROOT / "docs" / "spark.md") if language == "sql"]
    found = {
        plan.root.target: plan_job(plan).kind
        for report in analyze_script("\n;\n".join(texts))
        if report.analysis is not None
        for plan in report.analysis.plans
    }
    assert found == {kind: kind for kind in get_args(JobKind)}


def test_every_statement_is_on_its_page() -> None:
    """The blocks of docs/sql/statements.md hold every statement, SHOW of everything, and every order to a job."""
    found = [
        parsed.statement
        for language, block in page_blocks(ROOT / "docs" / "sql" / "statements.md")
        if language == "sql"
        for parsed in parse_script(block.text)
    ]
    known = {
        kind for kind in vars(statements).values() if isinstance(kind, type) and kind.__base__ is statements.Statement
    }
    assert len(known) > 20
    assert {type(statement) for statement in found} == known
    assert {each.kind for each in found if isinstance(each, statements.Show)} == set(get_args(statements.ShowKind))
    orders = {each.action for each in found if isinstance(each, statements.ControlJob)}
    assert orders == {"PAUSE", "RESUME", "RESTART", "STOP", "DROP"}


def test_failpoints_and_states_are_documented() -> None:
    page = operations()
    assert [name for name in (*NAMES, *JobState) if f"`{name}`" not in page] == []


def test_every_public_name_is_documented() -> None:
    """W2."""
    import penstock
    from penstock.interfaces.database import Database
    from penstock.interfaces.result import Result

    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.md"))
    names = [*penstock.__all__, *(name for name in (*vars(Database), *vars(Result)) if not name.startswith("_"))]
    assert [name for name in names if not re.search(rf"\b{name}\b", pages) and name not in INTERNAL] == []


# Public for the command line, which analyses statements itself.
INTERNAL = {"__version__", "run"}
