"""What a fork leaves in a child: copies of the parent's objects, with its sockets, locks and files but not its threads.

A lock that another thread held stays locked in the child for good. A socket that both use gives each the other's
answers, and a file that both have open gets what either writes. Whatever has such a thing renews itself in the child,
before the child runs anything else.
"""

from __future__ import annotations

import logging
import os
from typing import Protocol
from weakref import WeakSet

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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
