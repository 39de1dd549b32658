"""docs/contract.md: every item of the contract with the tests that name it. `python -m tests.contract.page` writes it."""

from __future__ import annotations

from tests.contract.coverage import Proof, Section, not_here, proofs, sections
from tests.project import ROOT

PAGE = ROOT / "docs" / "contract.md"
_SHOWN = 3
_HEAD = """# Contract

What Penstock set out to do: every capability, number and example of the five texts that it answers, as 312 numbered
items, with the rulings where the texts contradict each other and the scenarios that were built from them. Beside each
item stand the tests that name it; nothing on this page is written by hand, and a test fails when it is out of date:

    python -m tests.contract.page

| proof | meaning |
|---|---|
| job | a test names it in which jobs run on Spark |
| unit | a test names it that tries a part of the engine by itself |
| text | only its SQL is shown to be understood, or refused by name |
| open | no test names it |
| not here | it will not be here, and why |
"""


def page() -> str:
    """The whole page."""
    named, gone = proofs(), not_here()
    parts = [_HEAD, _summary(sections(), named, gone)]
    parts += [_section(section, named, gone) for section in sections()]
    return "\n".join(parts)


def verdict(number: str, named: dict[str, list[Proof]], gone: dict[str, str]) -> str:
    """How an item is shown: by the strongest test that names it."""
    if number in named:
        return named[number][0].level
    return "not here" if number in gone else "open"


def _summary(found: list[Section], named: dict[str, list[Proof]], gone: dict[str, str]) -> str:
    verdicts = ("job", "unit", "text", "open", "not here")
    lines = [f"| | items | {' | '.join(verdicts)} |", "|---|" + "---:|" * (1 + len(verdicts))]
    rows: list[list[int]] = []
    for section in found:
        told = [verdict(number, named, gone) for number in section.items]
        counts = [len(told), *(told.count(verdict) for verdict in verdicts)]
        if len(section.letter) == 1:
            rows.append(counts)
        lines.append(f"| [{section.letter} {section.title}](#{_anchor(section)}) | {' | '.join(map(str, counts))} |")
    total = [sum(column) for column in zip(*rows, strict=True)]
    lines.append(f"| A to W | {' | '.join(map(str, total))} |")
    return "\n".join(lines) + "\n"


def _anchor(section: Section) -> str:
    kept = "".join(
        letter for letter in f"{section.letter} {section.title}".lower() if letter.isalnum() or letter in " -"
    )
    return kept.replace(" ", "-")


def _section(section: Section, named: dict[str, list[Proof]], gone: dict[str, str]) -> str:
    lines = [f"## {section.letter} {section.title}\n", "| item | | proof | tests |", "|---|---|---|---|"]
    for number, text in section.items.items():
        told = verdict(number, named, gone)
        where = gone[number] if told == "not here" else _tests(named.get(number, []))
        lines.append(f"| {number} | {_cell(text)} | {told} | {where} |")
    return "\n".join(lines) + "\n"


def _tests(found: list[Proof]) -> str:
    """The strongest tests; how many more there are."""
    shown = "<br>".join(f"`{proof.where.removeprefix('tests/')}`" for proof in found[:_SHOWN])
    more = len(found) - _SHOWN
    return f"{shown}<br>and {more} more" if more > 0 else shown


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
