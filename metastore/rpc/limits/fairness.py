"""Whoever asks for much waits behind whoever asks for little: clients take turns, each served in its own order.

A client is an address: connections cost nothing, so who opens a thousand of them shall not have a thousand shares.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class FairQueue(Generic[T]):
    """What waits, by client."""

    def __init__(self) -> None:
        self._queues: dict[str, deque[T]] = {}  # the client whose turn is next comes first

    def __bool__(self) -> bool:
        return bool(self._queues)

    def __iter__(self) -> Iterator[T]:
        """All that waits, in no particular order."""
        return (item for queue in self._queues.values() for item in queue)

    def put(self, client: str, item: T) -> None:
        """Let an item wait behind the others of its client."""
        self._queues.setdefault(client, deque()).append(item)

    def take(self, may_go: Callable[[str, T], bool] = lambda client, item: True) -> T | None:
        """The next item that may go, None if none may; its client comes last then."""
        for client, queue in self._queues.items():
            if may_go(client, queue[0]):
                item = queue.popleft()
                del self._queues[client]
                if queue:
                    self._queues[client] = queue
                return item
        return None

    def remove(self, client: str, item: T) -> bool:
        """Take out an item that waits no longer; whether it was there."""
        queue = self._queues.get(client)
        if queue is None or item not in queue:
            return False
        queue.remove(item)
        if not queue:
            del self._queues[client]
        return True
