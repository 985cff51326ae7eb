"""Graphs of transactions: strongly connected components, orders and shortest cycles, none of it recursive."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping

Graph = Mapping[int, Collection[int]]
"""Node to its successors; a node without any may be missing."""


def components(graph: Graph) -> list[list[int]]:
    """The strongly connected components of more than one node, or of one with an edge to itself (Tarjan)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    waiting: list[int] = []
    on_stack: set[int] = set()
    found: list[list[int]] = []
    for root in graph:
        if root in index:
            continue
        index[root] = low[root] = len(index)
        waiting.append(root)
        on_stack.add(root)
        path = [(root, iter(graph.get(root, ())))]
        while path:
            node, successors = path[-1]
            for successor in successors:
                if successor not in index:
                    index[successor] = low[successor] = len(index)
                    waiting.append(successor)
                    on_stack.add(successor)
                    path.append((successor, iter(graph.get(successor, ()))))
                    break
                if successor in on_stack:
                    low[node] = min(low[node], index[successor])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == index[node]:
                    component = []
                    while True:
                        member = waiting.pop()
                        on_stack.discard(member)
                        component.append(member)
                        if member == node:
                            break
                    if len(component) > 1 or node in graph.get(node, ()):
                        found.append(component)
    return found


def shortest_path(graph: Graph, source: int, target: int, within: Callable[[int], bool]) -> list[int] | None:
    """The nodes of a shortest path of at least one edge that passes only nodes for which `within` holds."""
    came_from: dict[int, int] = {}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for successor in graph.get(node, ()):
            if successor == target:
                path = [target, node]
                while path[-1] != source:
                    path.append(came_from[path[-1]])
                return path[::-1]
            if successor not in came_from and successor != source and within(successor):
                came_from[successor] = node
                queue.append(successor)
    return None


def shortest_cycle(graph: Graph, component: Collection[int], tries: int = 64) -> list[int]:
    """A shortest cycle through one of the first `tries` nodes of a component; its first node is its last as well."""
    members = set(component)
    best: list[int] | None = None
    for node in sorted(members)[:tries]:
        cycle = shortest_path(graph, node, node, members.__contains__)
        if cycle is not None and (best is None or len(cycle) < len(best)):
            best = cycle
    assert best is not None, "each node of a component lies on a cycle"
    return best


def topological_positions(graph: Graph, nodes: Iterable[int], priority: Callable[[int], float]) -> dict[int, int]:
    """Node to its place in an order that no edge goes against, small priorities first where there is a choice.

    Nodes on and behind cycles are left out.
    """
    nodes = list(nodes)
    incoming = dict.fromkeys(nodes, 0)
    for node in nodes:
        for successor in graph.get(node, ()):
            incoming[successor] += 1
    ready = [(priority(node), node) for node in nodes if not incoming[node]]
    heapq.heapify(ready)
    positions: dict[int, int] = {}
    while ready:
        _, node = heapq.heappop(ready)
        positions[node] = len(positions)
        for successor in graph.get(node, ()):
            incoming[successor] -= 1
            if not incoming[successor]:
                heapq.heappush(ready, (priority(successor), successor))
    return positions
