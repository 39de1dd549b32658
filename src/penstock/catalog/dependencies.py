"""The graph of which object is built on which."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from penstock.catalog.model import ObjectKey

Node = TypeVar("Node")
Edges = Mapping[ObjectKey, frozenset[ObjectKey]]


def invert(depends_on: Mapping[ObjectKey, Iterable[ObjectKey]]) -> dict[ObjectKey, frozenset[ObjectKey]]:
    """From `what it is built on` to `what is built on it`."""
    built: dict[ObjectKey, set[ObjectKey]] = {}
    for key, needs in depends_on.items():
        for need in needs:
            built.setdefault(need, set()).add(key)
    return {need: frozenset(keys) for need, keys in built.items()}


def reachable(start: ObjectKey, edges: Edges) -> set[ObjectKey]:
    """Everything that can be reached from `start` along the edges; `start` itself only if it lies on a cycle."""
    found: set[ObjectKey] = set()
    queue = deque(edges.get(start, ()))
    while queue:
        key = queue.popleft()
        if key not in found:
            found.add(key)
            queue.extend(edges.get(key, ()))
    return found


def find_path(start: ObjectKey, goal: ObjectKey, edges: Edges) -> tuple[ObjectKey, ...]:
    """A shortest way from `start` to `goal`, both included; empty where there is none."""
    came_from: dict[ObjectKey, ObjectKey] = {}
    queue = deque([start])
    while queue:
        key = queue.popleft()
        for following in sorted(edges.get(key, ())):
            if following == goal:
                return (*_walk_back(key, start, came_from), goal)
            if following not in came_from and following != start:
                came_from[following] = key
                queue.append(following)
    return ()


def _walk_back(key: ObjectKey, start: ObjectKey, came_from: Mapping[ObjectKey, ObjectKey]) -> list[ObjectKey]:
    path = [key]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def in_dependency_order(
    nodes: Iterable[Node], key: Callable[[Node], ObjectKey], needs: Callable[[Node], Iterable[ObjectKey]]
) -> list[Node]:
    """The nodes, each behind those it needs, and otherwise in the order given.

    Needs outside the nodes are passed over. A cycle cannot be ordered: its nodes come in the order they are met.
    """
    by_key = {key(node): node for node in nodes}
    ordered: dict[ObjectKey, Node] = {}
    for first in by_key:
        _place(first, by_key, ordered, needs)
    return list(ordered.values())


def _place(
    first: ObjectKey,
    by_key: Mapping[ObjectKey, Node],
    ordered: dict[ObjectKey, Node],
    needs: Callable[[Node], Iterable[ObjectKey]],
) -> None:
    # An explicit stack, because a chain of views may be longer than Python lets functions call each other.
    if first in ordered:
        return
    open_keys: set[ObjectKey] = {first}
    stack: list[tuple[ObjectKey, Iterator[ObjectKey]]] = [(first, iter(tuple(needs(by_key[first]))))]
    while stack:
        current, rest = stack[-1]
        for need in rest:
            if need in by_key and need not in ordered and need not in open_keys:
                open_keys.add(need)
                stack.append((need, iter(tuple(needs(by_key[need])))))
                break
        else:
            stack.pop()
            ordered[current] = by_key[current]
