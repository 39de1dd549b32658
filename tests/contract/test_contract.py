"""The page of the contract is what the tests say, and the tests name nothing that is not in it."""

from __future__ import annotations

from tests.contract.coverage import ids_in, ids_in_name, not_here, proofs, sections
from tests.contract.page import PAGE, page, verdict


def test_the_page_is_up_to_date() -> None:
    """`python -m tests.contract.page` brings it up to date."""
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_contract_has_all_its_items() -> None:
    letters = "A18 B14 C12 D27 E25 F5 G21 H18 I22 J8 K23 L21 M15 N9 O6 P9 Q7 R8 S6 T5 U13 V10 W10 DEC15 SC40"
    wanted = {word.rstrip("0123456789"): int(word.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")) for word in letters.split()}
    assert {section.letter: len(section.items) for section in sections()} == wanted
    assert sum(count for letter, count in wanted.items() if len(letter) == 1) == 312
    for section in sections():
        assert list(section.items) == [f"{section.letter}{number + 1}" for number in range(len(section.items))]
        assert all(text.strip() for text in section.items.values())


def test_tests_name_only_items_that_exist() -> None:
    known = {number for section in sections() for number in section.items}
    assert {number: tests for number, tests in proofs().items() if number not in known} == {}


def test_what_is_not_here_is_in_the_contract_and_named_by_no_test() -> None:
    known = {number for section in sections() for number in section.items}
    assert set(not_here()) <= known
    assert all(len(reason) > 20 for reason in not_here().values())
    assert set(not_here()) & set(proofs()) == set()


def test_nothing_counts_but_tests() -> None:
    """DEC12: a check mark in a text is a requirement. An item is shown by the tests that name it, or it is open."""
    named, gone = proofs(), not_here()
    for section in sections():
        for number in section.items:
            told = verdict(number, named, gone)
            assert (told == "open") == (number not in named and number not in gone), number
            assert verdict(number, {}, {}) == "open"
    assert "✅" not in PAGE.read_text(encoding="utf-8")


def test_what_the_texts_call_in_progress() -> None:
    """W9: the connector for Kafka, window state that is read, watermarks, barriers, the life of a window and the whole way
    through the API are shown by tests of their own."""
    named, gone = proofs(), not_here()
    told = {number: verdict(number, named, gone) for number in ("I9", "H1", "E5", "K2", "E12", "M13")}
    assert set(told.values()) <= {"job", "unit"}, told


def test_how_tests_name_items() -> None:
    assert ids_in("E21 to E23, DEC1, K1-K2 (A7): 'V1' in a word like EV12 or A123") == [
        "E21", "E22", "E23", "DEC1", "K1", "K2", "A7", "V1",
    ]  # fmt: skip
    assert ids_in_name("test_e2_sc13_rows") == ["E2", "SC13"]
    assert ids_in_name("test_rows_e2") == []


def test_running_tests_are_told_from_others() -> None:
    """The strongest proof stands first."""
    found = proofs()
    assert found["SC33"][0].level == "job"
    assert found["A17"][0].level == "unit"
    assert [proof.level for proof in found["A1"]][-1] == "text"
