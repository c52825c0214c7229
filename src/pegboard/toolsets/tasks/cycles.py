"""Cycles among dependencies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
Needs = Mapping[T, Sequence[T]]


def on_cycles(needs: Needs[T]) -> dict[T, int]:
    """Everything that, step by step, needs itself; what belongs to the same circles has the same number."""
    return _circles(_prune_leaves(needs))


def _prune_leaves(needs: Needs[T]) -> Needs[T]:
    """What is left when all is taken away, again and again, that needs nothing that is left: mostly nothing."""
    needed_by: dict[T, list[T]] = {}
    waiting_for: dict[T, int] = {}
    for node, others in needs.items():
        left = [other for other in others if other in needs]
        waiting_for[node] = len(left)
        for other in left:
            needed_by.setdefault(other, []).append(node)
    free = [node for node, count in waiting_for.items() if not count]
    while free:
        node = free.pop()
        del waiting_for[node]
        for other in needed_by.get(node, ()):
            waiting_for[other] -= 1
            if not waiting_for[other]:
                free.append(other)
    return {node: [other for other in needs[node] if other in waiting_for] for node in waiting_for}


def _circles(needs: Needs[T]) -> dict[T, int]:
    """Tarjan's algorithm, without recursion: a chain may be longer than Python's stack."""
    found: dict[T, int] = {}
    order: dict[T, int] = {}
    low: dict[T, int] = {}
    path: list[T] = []
    on_path: set[T] = set()
    for start in needs:
        if start in order:
            continue
        waiting = [(start, iter(needs.get(start, ())))]
        while waiting:
            node, rest = waiting[-1]
            if node not in order:
                order[node] = low[node] = len(order)
                path.append(node)
                on_path.add(node)
            further = next((other for other in rest if other not in order or other in on_path), None)
            if further is not None and further not in order:
                waiting.append((further, iter(needs.get(further, ()))))
                continue
            if further is not None:
                low[node] = min(low[node], order[further])
                continue
            waiting.pop()
            if waiting:
                low[waiting[-1][0]] = min(low[waiting[-1][0]], low[node])
            if low[node] == order[node]:
                _leave(node, needs, path, on_path, found)
    return found


def way(needs: Needs[T], start: T, end: T) -> list[T] | None:
    """A shortest way from one to another along what each needs; `None` where there is none."""
    return _way(needs, [start], end)


def round_trip(needs: Needs[T], node: T) -> list[T]:
    """A shortest way from something that needs itself back to it, both ends included."""
    return [node, *(_way(needs, needs[node], node) or [])]


def _way(needs: Needs[T], starts: Sequence[T], end: T) -> list[T] | None:
    came_from: dict[T, T] = {}
    edge = list(dict.fromkeys(starts))
    seen = set(edge)
    while edge:
        reached: list[T] = []
        for node in edge:
            if node == end:
                steps = [node]
                while steps[-1] in came_from:
                    steps.append(came_from[steps[-1]])
                return steps[::-1]
            for other in needs.get(node, ()):
                if other not in seen:
                    seen.add(other)
                    came_from[other] = node
                    reached.append(other)
        edge = reached
    return None


def _leave(node: T, needs: Needs[T], path: list[T], on_path: set[T], found: dict[T, int]) -> None:
    """Everything above a node on the path belongs together with it."""
    circle: list[T] = []
    while True:
        last = path.pop()
        on_path.discard(last)
        circle.append(last)
        if last == node:
            break
    if len(circle) > 1 or node in needs.get(node, ()):
        number = len(found)
        found.update(dict.fromkeys(circle, number))
