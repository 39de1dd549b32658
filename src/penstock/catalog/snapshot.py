"""The catalog as a value: what is defined at one moment.

Every change gives a new `Catalog` and leaves the old one as it was, so a planner can work on one while another is made.
Two laws hold for every catalog: whatever an object is built on is there, and no object is built on itself.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from penstock.catalog import system
from penstock.catalog.dependencies import find_path, in_dependency_order, invert, reachable
from penstock.catalog.model import (
    ConnectionDefinition,
    Definition,
    FunctionDefinition,
    ObjectKey,
    Relation,
    SecretDefinition,
    SinkDefinition,
    SourceDefinition,
    Space,
    SystemTable,
    Unreadable,
)
from penstock.catalog.object_names import name_problem
from penstock.catalog.renaming import renamed_definition
from penstock.catalog.replacement import why_not_replaceable
from penstock.catalog.sameness import same_definition
from penstock.errors import CatalogError, ResolutionError
from penstock.frozen import frozen

if TYPE_CHECKING:
    from penstock.sql.statements import Name, ObjectKind

Folded = tuple[Space, str]

_MISSING: dict[Space, tuple[Literal["UNKNOWN_RELATION", "UNKNOWN_FUNCTION", "UNKNOWN_SECRET"], str]] = {
    "relation": ("UNKNOWN_RELATION", "stream, table or view"),
    "function": ("UNKNOWN_FUNCTION", "function"),
    "secret": ("UNKNOWN_SECRET", "secret"),
}


@frozen
class Catalog:
    """Definitions by key, in the order they were first created."""

    _objects: Mapping[ObjectKey, Definition] = field(default_factory=lambda: MappingProxyType({}))
    _folded: Mapping[Folded, tuple[ObjectKey, ...]] = field(
        default_factory=lambda: MappingProxyType({}), compare=False, repr=False
    )

    @classmethod
    def of(cls, objects: Mapping[ObjectKey, Definition]) -> Catalog:
        """A catalog of these definitions; the caller answers for the two laws."""
        folded: dict[Folded, tuple[ObjectKey, ...]] = {}
        for key in objects:
            place = (key.space, key.name.lower())
            folded[place] = (*folded.get(place, ()), key)
        return cls(MappingProxyType(dict(objects)), MappingProxyType(folded))

    # looking things up

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Definition]:
        return iter(self._objects.values())

    def __contains__(self, key: object) -> bool:
        return key in self._objects

    def __getitem__(self, key: ObjectKey) -> Definition:
        return self._objects[key]

    def relations(self) -> tuple[Relation, ...]:
        """All relations, in the order they were created."""
        return tuple(item for item in self if not isinstance(item, Unreadable))

    def find(self, name: Name) -> Relation | None:
        """The relation of a name: unquoted without regard to case, quoted exactly; None without one answer."""
        found = self._lookup("relation", name)
        return None if isinstance(found, Unreadable) else found

    def find_function(self, name: Name) -> FunctionDefinition | None:
        """The user's function of a name."""
        found = self._lookup("function", name)
        return found if isinstance(found, FunctionDefinition) else None

    def find_secret(self, name: Name) -> SecretDefinition | None:
        """The secret of a name."""
        found = self._lookup("secret", name)
        return found if isinstance(found, SecretDefinition) else None

    def get_connection(self, name: Name) -> ConnectionDefinition:
        """The connection of a name; UNKNOWN_RELATION where there is none."""
        found = self._lookup("relation", name)
        if isinstance(found, ConnectionDefinition):
            return found
        known = {item.name.text.lower(): item.name.text for item in self if isinstance(item, ConnectionDefinition)}
        close = difflib.get_close_matches(name.text.lower(), known, n=1, cutoff=0.6)
        hint = f"did you mean {known[close[0]]}?" if close else "create it first: CREATE CONNECTION … TO KAFKA (…)"
        raise ResolutionError("UNKNOWN_RELATION", f"no connection is named {name}", hint=hint, span=name.span)

    def find_system(self, name: str) -> SystemTable | None:
        """The system table of a dotted name such as `penstock.jobs`."""
        return system.find_system(name)

    def get(self, name: Name) -> Relation:
        """The relation of a name; UNKNOWN_RELATION, with the nearest name as a hint, where there is none."""
        found = self.find(name)
        if found is None:
            raise self._missing("relation", name)
        return found

    def get_secret(self, name: Name) -> SecretDefinition:
        """The secret of a name; UNKNOWN_SECRET where there is none."""
        found = self.find_secret(name)
        if found is None:
            raise self._missing("secret", name)
        return found

    def nearest(self, name: Name | str, space: Space = "relation") -> str | None:
        """The name most like the one given, if any is like it."""
        items = self._objects.items()
        names = {
            key.name.lower(): key.name
            for key, item in items
            if key.space == space and not isinstance(item, ConnectionDefinition)
        }
        close = difflib.get_close_matches(str(name).lower(), names, n=1, cutoff=0.6)
        return names[close[0]] if close else None

    def _lookup(self, space: Space, name: Name) -> Definition | None:
        exact = self._objects.get(ObjectKey(space, name.text))
        if exact is not None or name.quoted:
            return exact
        keys = self._folded.get((space, name.text.lower()), ())
        return self._objects[keys[0]] if len(keys) == 1 else None

    def _several(self, space: Space, name: Name) -> tuple[ObjectKey, ...]:
        """The objects that an unquoted name can mean, where it can mean more than one."""
        keys = () if name.quoted else self._folded.get((space, name.text.lower()), ())
        return keys if len(keys) > 1 else ()

    def _missing(self, space: Space, name: Name) -> ResolutionError:
        condition, word = _MISSING[space]
        several = self._several(space, name)
        if several:
            written = " and ".join(f'"{key.name}"' for key in several)
            message, hint = f"{name} can mean {written}", "quote the name to say which one"
            return ResolutionError(condition, message, hint=hint, span=name.span)
        near = self.nearest(name, space)
        if space == "relation":
            if system.find_system(name.text) is not None:
                message = f"{name} is a system table, and can only be read"
                return ResolutionError("WRONG_OBJECT_KIND", message, hint=f"SELECT * FROM {name}", span=name.span)
            near = system.nearest_system(name.text) or near
        hint = f"did you mean {near}?" if near else f"create the {word} first"
        return ResolutionError(condition, f"no {word} is named {name}", hint=hint, span=name.span)

    # the graph

    def dependents(self, key: ObjectKey) -> tuple[Definition, ...]:
        """Everything that is built on an object, directly or through others, each behind what it is built on."""
        keys = reachable(key, invert(self._needs()))
        return tuple(item for item in self.ordered() if item.object_key in keys)

    def ordered(self) -> tuple[Definition, ...]:
        """All definitions, each behind what it is built on, otherwise in the order they were created."""
        return tuple(in_dependency_order(self, lambda item: item.object_key, lambda item: item.depends_on))

    def _needs(self) -> dict[ObjectKey, frozenset[ObjectKey]]:
        return {key: frozenset(item.depends_on) for key, item in self._objects.items()}

    # changing it

    def put(
        self, definition: Definition, *, or_replace: bool = False, if_not_exists: bool = False
    ) -> tuple[Catalog, tuple[str, ...]]:
        """The catalog with a definition added, and what to tell the user.

        The same definition again changes nothing. Another one under the same name is OBJECT_EXISTS, unless
        `or_replace` is set and whatever is built on the old one can live with the new one.
        """
        name = definition.name
        existing = self._occupant(definition)
        if existing is None:
            _check_name(definition.kind, name)
            self._check_needs(definition)
            return self._with(definition), ()
        if not name.quoted and not existing.name.quoted:
            # Two spellings of one unquoted name: the first one stays, because others refer to the object by it.
            definition = replace(definition, name=replace(existing.name, span=name.span))
        if same_definition(existing, definition):
            return self, (f"{existing.kind} {name} exists already with the same definition",)
        if if_not_exists:
            kept = f"{existing.kind} {existing.name} exists already with another definition and was left as it is"
            return self, (kept,)
        if not or_replace or existing.object_key != definition.object_key:
            other = "under a name that differs only in case" if existing.name != name else "with another definition"
            raise CatalogError(
                "OBJECT_EXISTS",
                f"{existing.kind} {existing.name} exists already {other}",
                hint="drop it first, say OR REPLACE with the same name, or choose another name",
                span=name.span,
            )
        return self._replace(existing, definition), (f"{existing.kind} {existing.name} was replaced",)

    def _with(self, definition: Definition) -> Catalog:
        """The catalog with one definition more; a script of thousands does not look at all of them for each."""
        key = definition.object_key
        place = (key.space, key.name.lower())
        folded = {**self._folded, place: (*self._folded.get(place, ()), key)}
        return Catalog(MappingProxyType({**self._objects, key: definition}), MappingProxyType(folded))

    def _occupant(self, definition: Definition, apart_from: ObjectKey | None = None) -> Definition | None:
        """What already has the name, where names that differ only in case are two names if both are quoted."""
        key = definition.object_key
        alike = [item for item in self._folded.get((key.space, key.name.lower()), ()) if item != apart_from]
        if key in alike and (definition.name.quoted or len(alike) == 1):
            return self._objects[key]
        for other in alike:
            if not (definition.name.quoted and self._objects[other].name.quoted):
                return self._objects[other]
        return None

    def _replace(self, old: Definition, new: Definition) -> Catalog:
        if old.kind != new.kind and {old.kind, new.kind} != {"stream", "table"}:
            raise CatalogError(
                "WRONG_OBJECT_KIND",
                f"{old.name} is a {old.kind} and cannot be replaced by a {new.kind}",
                hint=f"drop the {old.kind} first",
                span=new.name.span,
            )
        self._check_needs(new)
        built = self.dependents(old.object_key)
        reason = why_not_replaceable(old, new) if built else None
        if reason is not None:
            raise CatalogError(
                "DEPENDENT_OBJECTS",
                f"{old.kind} {old.name} cannot be replaced: {reason}, and {_listed(built)} {_is_built(built)} on it",
                hint="keep the columns with their types, or drop what is built on it first",
                span=new.name.span,
            )
        return self._swap(old.object_key, new)

    def _swap(self, old: ObjectKey, new: Definition) -> Catalog:
        # The new definition takes the old one's place in the order, so a script reads the same before and after.
        return Catalog.of(
            {
                (new.object_key if key == old else key): (new if key == old else item)
                for key, item in self._objects.items()
            }
        )

    def _check_needs(self, definition: Definition) -> None:
        key = definition.object_key
        for need in definition.depends_on:
            if need == key:
                raise self._cycle(definition, (key, key))
            if need not in self._objects:
                condition, word = _MISSING[need.space]
                raise ResolutionError(condition, f"no {word} is named {need.name}", span=definition.name.span)
            path = find_path(need, key, self._needs()) if key in self._objects else ()
            if path:
                raise self._cycle(definition, (key, *path))

    def _cycle(self, definition: Definition, path: tuple[ObjectKey, ...]) -> CatalogError:
        return CatalogError(
            "DEPENDENCY_CYCLE",
            f"{definition.kind} {definition.name} would be built on itself",
            detail=" -> ".join(key.name for key in path),
            hint="read from another relation than one that is built on this one",
            span=definition.name.span,
        )

    def drop(
        self, name: Name, kind: ObjectKind, *, cascade: bool = False, if_exists: bool = False
    ) -> tuple[Catalog, tuple[str, ...]]:
        """The catalog without an object, and with `cascade` without all that is built on it, last made first."""
        space = _space_of(kind)
        found = self._lookup(space, name)
        if found is None:
            if if_exists and not self._several(space, name):
                return self, (f"no {kind.lower()} is named {name}",)
            raise self._missing(space, name)
        check_kind(found, kind, name, verb="drop")
        built = self.dependents(found.object_key)
        if built and not cascade:
            raise CatalogError(
                "DEPENDENT_OBJECTS",
                f"{found.kind} {found.name} cannot be dropped: {_listed(built)} {_is_built(built)} on it",
                hint="drop those first, or say CASCADE to drop them too",
                span=name.span,
            )
        notices = tuple(f"dropped {item.kind} {item.name} too" for item in reversed(built))
        return self._without({found.object_key, *(item.object_key for item in built)}), notices

    def _without(self, keys: set[ObjectKey]) -> Catalog:
        return Catalog.of({key: item for key, item in self._objects.items() if key not in keys})

    def rename(
        self,
        name: Name,
        kind: ObjectKind,
        new_name: Name,
        renamed: Callable[[Definition, Name], Definition] = renamed_definition,
    ) -> tuple[Catalog, tuple[str, ...]]:
        """The catalog with an object under another name; `renamed` gives its definition and text under that name.

        An object that others are built on keeps its name, because their statements say it.
        """
        space = _space_of(kind)
        found = self._lookup(space, name)
        if found is None:
            raise self._missing(space, name)
        check_kind(found, kind, name, verb="alter")
        built = self.dependents(found.object_key)
        if built:
            raise CatalogError(
                "DEPENDENT_OBJECTS",
                f"{found.kind} {found.name} cannot be renamed: {_listed(built)} {_is_built(built)} on it",
                hint="drop those first and create them again over the new name",
                span=name.span,
            )
        _check_name(found.kind, new_name)
        definition = renamed(found, new_name)
        other = self._occupant(definition, apart_from=found.object_key)
        if other is not None:
            message = f"{other.kind} {other.name} exists already"
            raise CatalogError("OBJECT_EXISTS", message, hint="choose another name", span=new_name.span)
        return self._swap(found.object_key, definition), ()

    def without_temporary(self) -> Catalog:
        """The catalog as it outlives the connection: temporary objects stay only where something lasting needs them."""
        needs = self._needs()
        kept: set[ObjectKey] = set()
        for item in self:
            if not item.temporary:
                kept |= {item.object_key, *reachable(item.object_key, needs)}
        return self._without(set(self._objects) - kept)


def check_kind(found: Definition, kind: ObjectKind, name: Name, *, verb: str) -> None:
    """WRONG_OBJECT_KIND unless an object may be called a `kind` in DROP, ALTER or SHOW CREATE."""
    words = _words_for(found)
    if kind not in words:
        raise CatalogError(
            "WRONG_OBJECT_KIND",
            f"{found.name} is a {found.kind}, not a {kind.lower()}",
            hint=f"say {verb.upper()} {words[0]} {found.name}",
            span=name.span,
        )


def _check_name(kind: str, name: Name) -> None:
    problem = name_problem(name.text)
    if problem is not None:
        raise CatalogError(
            "INVALID_DEFINITION", f"the name of a {kind} {problem}", hint="choose another name", span=name.span
        )


def _words_for(found: Definition) -> tuple[ObjectKind, ...]:
    by_kind: dict[str, ObjectKind] = {
        "stream": "STREAM",
        "table": "TABLE",
        "source": "SOURCE",
        "sink": "SINK",
        "view": "VIEW",
        "materialized view": "MATERIALIZED VIEW",
        "dimension": "TABLE",
        "function": "FUNCTION",
        "secret": "SECRET",
        "connection": "CONNECTION",
    }
    word = by_kind[found.kind]
    if isinstance(found, SinkDefinition) and found.created_as != "sink":
        return (*_interchangeable(by_kind[found.created_as]), word)
    return _interchangeable(word) if isinstance(found, SourceDefinition) else (word,)


def _interchangeable(word: ObjectKind) -> tuple[ObjectKind, ...]:
    """The word itself and the one that means the same."""
    if word == "STREAM":
        return ("STREAM", "TABLE")
    return ("TABLE", "STREAM") if word == "TABLE" else (word,)


def _space_of(kind: ObjectKind) -> Space:
    if kind == "FUNCTION":
        return "function"
    return "secret" if kind == "SECRET" else "relation"


def _listed(items: tuple[Definition, ...]) -> str:
    return ", ".join(f"{item.kind} {item.name}" for item in items)


def _is_built(items: tuple[Definition, ...]) -> str:
    return "is built" if len(items) == 1 else "are built"
