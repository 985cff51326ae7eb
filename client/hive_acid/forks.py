"""What a fork leaves in a child: copies of the parent's objects, with its sockets, locks and files but not its threads.

A lock that another thread held stays locked in the child for good. A socket that both use gives each the other's
answers, and a file that both have open gets what either writes. Whatever has such a thing renews itself in the child,
before the child runs anything else. What has threads and cannot be renewed is never freed there: to end what it has, it
would wait for threads that are the parent's alone.
"""

from __future__ import annotations

import ctypes
import logging
import os
from typing import Any, Protocol
from weakref import WeakSet, WeakValueDictionary

LOG = logging.getLogger(__name__)


class Renewed(Protocol):
    """What has sockets, locks or files that a child must not share."""

    def renew_in_child(self) -> None:
        """Let go of what is the parent's, without a word to anybody, and begin as new."""


_known: WeakSet[Renewed] = WeakSet()


def renew_in_children(one: Renewed) -> None:
    """Have `one` renewed in every child that is forked from now on, as long as it lives."""
    _known.add(one)


def _renew_all() -> None:
    for one in list(_known):
        try:
            one.renew_in_child()
        except Exception:  # the others have to be renewed all the same
            LOG.exception("%s of the parent's process is still shared with it", type(one).__name__)


_kept: WeakValueDictionary[int, Any] = WeakValueDictionary()
_held: list[Any] = []
"""References from before a fork until after it: in a child, others free what they have cached before we are asked."""


def keep_in_children(one: Any) -> None:
    """Have `one` never freed in a child that is forked while it lives here, not even as the child ends."""
    _kept[id(one)] = one


def _hold() -> None:
    _held.extend(_kept.values())


def _keep_held() -> None:
    for one in _held:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(one))
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_held.clear, after_in_child=_keep_held)
    os.register_at_fork(after_in_child=_renew_all)
