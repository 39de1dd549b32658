"""Random walks over the catalog, held against a plain model: what is needed is there, and nothing needs itself."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from penstock.catalog.changes import PutObject, RemoveObject, changes_between
from penstock.catalog.model import Definition, ObjectKey
from penstock.catalog.snapshot import Catalog
from penstock.errors import PenstockError
from penstock.sql.statements import Name
from penstock.types import BIGINT, STRING
from tests.unit.catalog.samples import relation_key, view

NAMES = st.sampled_from("abcdefgh")


def renamed(definition: Definition, name: Name) -> Definition:
    return replace(definition, name=name)


class CatalogWalk(RuleBasedStateMachine):
    """`needs` is the model: for each name, what it is built on. Every view has one column, of a type told by `wide`."""

    def __init__(self) -> None:
        super().__init__()
        self.catalog = Catalog()
        self.needs: dict[str, frozenset[str]] = {}
        self.wide: dict[str, bool] = {}

    def above(self, name: str) -> set[str]:
        found: set[str] = set()
        while True:
            more = {key for key, needs in self.needs.items() if needs & {name, *found}} - found
            if not more:
                return found
            found |= more

    @rule(name=NAMES, needs=st.frozensets(NAMES, max_size=3), or_replace=st.booleans(), wide=st.booleans())
    def put(self, name: str, needs: frozenset[str], or_replace: bool, wide: bool) -> None:
        definition = view(name, *sorted(needs), id=STRING if wide else BIGINT)
        same = self.needs.get(name) == needs and self.wide.get(name) == wide
        missing = bool(needs - set(self.needs)) or name in needs
        cycle = bool(needs & self.above(name))
        narrowed = self.wide.get(name, wide) != wide and bool(self.above(name))
        exists = name in self.needs
        refused = not same and (missing or cycle or (exists and (not or_replace or narrowed)))
        if refused:
            with pytest.raises(PenstockError) as error:
                self.catalog.put(definition, or_replace=or_replace)
            assert error.value.condition in {
                "UNKNOWN_RELATION",
                "DEPENDENCY_CYCLE",
                "OBJECT_EXISTS",
                "DEPENDENT_OBJECTS",
            }
            return
        after, notices = self.catalog.put(definition, or_replace=or_replace)
        assert bool(notices) == exists
        self.step(after)
        self.needs[name], self.wide[name] = needs, wide

    @rule(name=NAMES, cascade=st.booleans())
    def drop(self, name: str, cascade: bool) -> None:
        above = self.above(name)
        if name not in self.needs or (above and not cascade):
            with pytest.raises(PenstockError) as error:
                self.catalog.drop(Name(name), "VIEW", cascade=cascade)
            expected = "UNKNOWN_RELATION" if name not in self.needs else "DEPENDENT_OBJECTS"
            assert error.value.condition == expected
            return
        after, notices = self.catalog.drop(Name(name), "VIEW", cascade=cascade)
        assert len(notices) == len(above)
        self.step(after)
        for gone in {name, *above}:
            del self.needs[gone], self.wide[gone]

    @rule(name=NAMES, new=NAMES)
    def rename(self, name: str, new: str) -> None:
        possible = name in self.needs and not self.above(name) and (new == name or new not in self.needs)
        if not possible:
            with pytest.raises(PenstockError):
                self.catalog.rename(Name(name), "VIEW", Name(new), renamed)
            return
        after, _ = self.catalog.rename(Name(name), "VIEW", Name(new), renamed)
        self.step(after)
        self.needs[new], self.wide[new] = self.needs.pop(name), self.wide.pop(name)

    def step(self, after: Catalog) -> None:
        """Go on with `after`, and check that its changes can be applied one behind the other."""
        keys = {item.object_key for item in self.catalog}
        for change in changes_between(self.catalog, after):
            if isinstance(change, RemoveObject):
                keys.remove(change.key)
            elif isinstance(change, PutObject):
                assert set(change.definition.depends_on) <= keys | {item.object_key for item in after}
                keys.add(change.definition.object_key)
        assert keys == {item.object_key for item in after}
        self.catalog = after

    @invariant()
    def equals_the_model(self) -> None:
        found = {item.name.text: frozenset(key.name for key in item.depends_on) for item in self.catalog}
        assert found == self.needs

    @invariant()
    def needs_come_first_and_nothing_needs_itself(self) -> None:
        seen: set[ObjectKey] = set()
        for item in self.catalog.ordered():
            assert set(item.depends_on) <= seen
            seen.add(item.object_key)
        assert len(seen) == len(self.catalog)

    @invariant()
    def dependents_agree_with_the_model(self) -> None:
        for name in self.needs:
            assert {item.name.text for item in self.catalog.dependents(relation_key(name))} == self.above(name)


TestCatalogWalk = CatalogWalk.TestCase
TestCatalogWalk.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
