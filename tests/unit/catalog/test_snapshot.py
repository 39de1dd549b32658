"""The catalog as a value: names, adding, replacing, dropping, renaming (A10, A12)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.catalog.model import Definition, EventTime
from penstock.catalog.snapshot import Catalog
from penstock.errors import PenstockError, Span
from penstock.plan.script import analyze_script
from penstock.sql.statements import Name
from penstock.types import BIGINT, STRING, TIMESTAMP
from tests.unit.catalog.samples import function, relation_key, secret, sink, source, view


def catalog(*definitions: Definition) -> Catalog:
    made = Catalog()
    for definition in definitions:
        made, _ = made.put(definition)
    return made


def refusal(error: pytest.ExceptionInfo[PenstockError]) -> tuple[str, str]:
    return error.value.condition, error.value.message


def test_a12_an_unquoted_name_is_found_in_any_case_and_a_quoted_one_exactly() -> None:
    made = catalog(source("Orders"))
    assert made.find(Name("ORDERS")) is made.find(Name("orders")) is made.get(Name("Orders"))
    assert made.find(Name("Orders", quoted=True)) is not None
    assert made.find(Name("orders", quoted=True)) is None


def test_a12_relations_functions_and_secrets_have_names_of_their_own() -> None:
    made = catalog(source("x"), function("x"), secret("x", "v"))
    assert len(made) == 3
    found = (made.find(Name("X")), made.find_function(Name("X")), made.find_secret(Name("X")))
    assert [item.kind for item in found if item] == ["stream", "function", "secret"]


def test_a10_an_unknown_name_is_refused_with_the_nearest_and_its_place() -> None:
    place = Span(3, 7, 5, 40)
    with pytest.raises(PenstockError) as error:
        catalog(source("orders")).get(Name("ordres", span=place))
    assert refusal(error) == ("UNKNOWN_RELATION", "no stream, table or view is named ordres")
    assert error.value.hint == "did you mean orders?"
    assert error.value.span == place


def test_names_that_differ_only_in_case_are_two_only_when_both_are_quoted() -> None:
    made = catalog(source("Orders", quoted=True), source("ORDERS", quoted=True))
    assert len(made) == 2
    found = made.find(Name("ORDERS"))
    assert found is not None
    assert found.name.text == "ORDERS"
    assert made.find(Name("orders")) is None
    with pytest.raises(PenstockError, match='orders can mean "Orders" and "ORDERS"'):
        made.get(Name("orders"))
    with pytest.raises(PenstockError) as error:
        made.put(source("orders"))
    assert error.value.condition == "OBJECT_EXISTS"


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (False, False)])
def test_names_that_differ_only_in_case_clash_unless_both_are_quoted(first: bool, second: bool) -> None:
    made = catalog(source("Orders", quoted=first))
    with pytest.raises(PenstockError) as error:
        made.put(source("ORDERS", quoted=second, id=STRING))
    assert error.value.condition == "OBJECT_EXISTS"


def test_a10_an_identical_definition_again_is_a_no_op_with_a_notice() -> None:
    made = catalog(source("orders"))
    again, notices = made.put(source("ORDERS"))
    assert again is made
    assert notices == ("stream ORDERS exists already with the same definition",)


def test_the_text_of_a_definition_is_no_part_of_what_it_means() -> None:
    made = catalog(source("orders"))
    again, _ = made.put(replace(source("orders"), text="CREATE  STREAM  orders"))
    assert again is made


def test_a10_another_definition_under_the_same_name_is_refused() -> None:
    with pytest.raises(PenstockError) as error:
        catalog(source("orders")).put(source("orders", id=STRING))
    assert refusal(error) == ("OBJECT_EXISTS", "stream orders exists already with another definition")


def test_a_secret_with_another_value_is_another_definition() -> None:
    made = catalog(secret("password", "one"))
    assert made.put(secret("password", "one"))[0] is made
    with pytest.raises(PenstockError) as error:
        made.put(secret("password", "two"))
    assert error.value.condition == "OBJECT_EXISTS"


def test_if_not_exists_leaves_what_is_there() -> None:
    made = catalog(source("orders"))
    again, notices = made.put(source("orders", id=STRING), if_not_exists=True)
    assert again is made
    assert notices == ("stream orders exists already with another definition and was left as it is",)


def test_or_replace_without_dependents_takes_anything_of_the_same_kind() -> None:
    made, notices = catalog(source("orders"), source("other")).put(source("orders", a=STRING), or_replace=True)
    found = made.get(Name("orders"))
    assert [column.name for column in found.columns] == ["a"]
    assert [item.name.text for item in made] == ["orders", "other"]
    assert notices == ("stream orders was replaced",)


def test_or_replace_does_not_turn_one_kind_into_another() -> None:
    with pytest.raises(PenstockError) as error:
        catalog(source("orders")).put(view("orders"), or_replace=True)
    assert refusal(error) == ("WRONG_OBJECT_KIND", "orders is a stream and cannot be replaced by a view")


def test_or_replace_keeps_what_others_could_use() -> None:
    made = catalog(source("s", id=BIGINT, ts=TIMESTAMP), view("v", "s"))
    wider, _ = made.put(source("s", id=BIGINT, ts=TIMESTAMP, extra=STRING), or_replace=True)
    assert len(wider.get(Name("s")).columns) == 3
    assert wider.dependents(relation_key("s"))[0].name.text == "v"


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (source("s", ts=TIMESTAMP), "column id goes away"),
        (source("s", id=STRING, ts=TIMESTAMP), "column id changes from BIGINT to STRING"),
        (source("s", ts=TIMESTAMP, id=BIGINT), "its columns change their order"),
        (replace(source("s"), event_time=None), "ts is no longer its event time"),
    ],
)
def test_or_replace_is_refused_where_a_dependent_could_miss_something(new: Definition, reason: str) -> None:
    made = catalog(source("s"), view("v", "s"))
    with pytest.raises(PenstockError) as error:
        made.put(new, or_replace=True)
    message = f"stream s cannot be replaced: {reason}, and view v is built on it"
    assert refusal(error) == ("DEPENDENT_OBJECTS", message)


def test_or_replace_of_another_delay_is_fine_for_dependents() -> None:
    made = catalog(source("s"), view("v", "s"))
    later, _ = made.put(replace(source("s"), event_time=EventTime("ts", 9, "watermark")), or_replace=True)
    assert later != made


def test_or_replace_of_a_function_keeps_its_signature() -> None:
    labelled = replace(view("v"), depends_on=(function("label").object_key,))
    made = catalog(function("label"), labelled)
    made.put(replace(function("label"), body="text.other"), or_replace=True)
    with pytest.raises(PenstockError, match="the type it returns changes"):
        made.put(function("label", BIGINT), or_replace=True)


def test_a_definition_over_something_missing_is_refused() -> None:
    with pytest.raises(PenstockError) as error:
        catalog().put(view("v", "gone"))
    assert refusal(error) == ("UNKNOWN_RELATION", "no stream, table or view is named gone")


def test_a_cycle_is_refused_and_told_in_full() -> None:
    made = catalog(source("s"), view("a", "s"), view("b", "a"), view("c", "b"))
    with pytest.raises(PenstockError) as error:
        made.put(view("a", "c"), or_replace=True)
    assert refusal(error) == ("DEPENDENCY_CYCLE", "view a would be built on itself")
    assert error.value.detail == "a -> c -> b -> a"
    with pytest.raises(PenstockError) as error:
        made.put(view("x", "x"))
    assert error.value.condition == "DEPENDENCY_CYCLE"


def test_drop_restrict_names_what_is_built_on_it() -> None:
    made = catalog(source("s"), view("a", "s"), view("b", "a"))
    with pytest.raises(PenstockError) as error:
        made.drop(Name("S"), "STREAM")
    expected = "stream s cannot be dropped: view a, view b are built on it"
    assert refusal(error) == ("DEPENDENT_OBJECTS", expected)
    assert error.value.hint == "drop those first, or say CASCADE to drop them too"


def test_drop_cascade_goes_last_made_first() -> None:
    made = catalog(source("s"), view("a", "s"), view("b", "a"), view("other", "s"), source("t"))
    left, notices = made.drop(Name("s"), "STREAM", cascade=True)
    assert notices == ("dropped view other too", "dropped view b too", "dropped view a too")
    assert [item.name.text for item in left] == ["t"]
    assert len(made) == 5


def test_a12_drop_and_create_again() -> None:
    made, notices = catalog(source("s")).drop(Name("s"), "STREAM")
    assert (len(made), notices) == (0, ())
    made, _ = made.put(source("s", id=STRING))
    assert made.get(Name("s")).columns[0].type == STRING


def test_drop_of_something_that_is_not_there() -> None:
    made, notices = catalog().drop(Name("s"), "STREAM", if_exists=True)
    assert notices == ("no stream is named s",)
    with pytest.raises(PenstockError) as error:
        made.drop(Name("s"), "STREAM")
    assert error.value.condition == "UNKNOWN_RELATION"
    with pytest.raises(PenstockError) as error:
        made.drop(Name("p"), "SECRET")
    assert error.value.condition == "UNKNOWN_SECRET"


def test_drop_by_the_wrong_kind_says_the_right_one() -> None:
    made = catalog(source("s"), sink("k"), replace(sink("t"), created_as="table"))
    for name, hint in (("s", "say DROP STREAM s"), ("k", "say DROP SINK k"), ("t", "say DROP TABLE t")):
        with pytest.raises(PenstockError) as error:
            made.drop(Name(name), "VIEW", if_exists=True)
        assert (error.value.condition, error.value.hint) == ("WRONG_OBJECT_KIND", hint)
    made.drop(Name("t"), "SINK")
    made.drop(Name("t"), "TABLE")


def renamed(definition: Definition, name: Name) -> Definition:
    return replace(definition, name=name)


def test_rename_keeps_the_place_and_refuses_a_taken_name() -> None:
    made = catalog(source("a"), source("b"))
    after, _ = made.rename(Name("a"), "STREAM", Name("c"), renamed)
    assert [item.name.text for item in after] == ["c", "b"]
    with pytest.raises(PenstockError) as error:
        made.rename(Name("a"), "STREAM", Name("B"), renamed)
    assert error.value.condition == "OBJECT_EXISTS"
    same, _ = made.rename(Name("a"), "STREAM", Name("A"), renamed)
    assert same.find(Name("A", quoted=True)) is not None


def test_rename_is_refused_while_statements_say_the_name() -> None:
    with pytest.raises(PenstockError) as error:
        catalog(source("s"), view("v", "s")).rename(Name("s"), "STREAM", Name("t"), renamed)
    assert refusal(error) == ("DEPENDENT_OBJECTS", "stream s cannot be renamed: view v is built on it")


def test_temporary_objects_stay_only_where_something_lasting_needs_them() -> None:
    made = catalog(
        source("kept", temporary=True),
        view("between", "kept", temporary=True),
        view("lasting", "between"),
        source("gone", temporary=True),
        view("also_gone", "lasting", temporary=True),
    )
    assert [item.name.text for item in made.without_temporary()] == ["kept", "between", "lasting"]


def test_a_replaced_object_may_come_to_need_a_younger_one() -> None:
    made = catalog(view("old"), source("young"))
    made, _ = made.put(view("old", "young"), or_replace=True)
    assert [item.name.text for item in made.ordered()] == ["young", "old"]


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("jobs", "name state sql batch_id watermark restarts error started_at"),
        ("job_history", "job at from_state to_state reason"),
        ("watermarks", "job source partition max_event_time current_watermark idle pending_windows"),
        ("connector_offsets", "connector_id partition offset timestamp job end_offset lag topic topic_partition"),
        ("checkpoints", "job batch_id state started_at completed_at size_bytes"),
        ("window_aggregates", "job key window_start count sum min max"),
        ("join_buffers", "job side key ts data"),
        ("late_rows", "job stream partition offset event_time watermark lateness row batch_id topic topic_partition"),
        ("dead_letters", "job stream partition offset raw reason error recorded_at topic topic_partition"),
        ("metrics", "job name value at"),
        ("columns", "relation position name type nullable event_time"),
        ("options", "relation name value source"),
    ],
)
def test_system_tables_have_the_published_columns(table: str, columns: str) -> None:
    found = Catalog().find_system(f"Penstock.{table.upper()}")
    assert found is not None
    assert " ".join(column.name for column in found.columns) == columns
    assert Catalog().find_system(table) is None


@pytest.mark.parametrize(("again", "same"), [("", True), ("WITH (late = 'drop')", False)])
def test_what_a_view_leaves_to_settings_makes_no_other_view(again: str, same: bool) -> None:
    """A10: a script runs again under other settings; the view goes on as it was created."""
    query = "AS SELECT k, COUNT(*) AS n FROM s GROUP BY k"
    reports = analyze_script(
        f"CREATE STREAM s (k INT); SET state_ttl = '1 day'; CREATE MATERIALIZED VIEW v {query}; "
        f"SET state_ttl = '2 days'; CREATE MATERIALIZED VIEW v {again} {query};"
    )
    error = reports[-1].error
    assert (error is None) == same
    assert error is None or error.condition == "OBJECT_EXISTS"
