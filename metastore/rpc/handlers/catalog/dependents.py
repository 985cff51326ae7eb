"""What a client sends along with a new table: constraints, and the privileges of its owner and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metastore.catalog.definition.tables import Dependent
from metastore.catalog.models import Table
from metastore.catalog.registry import constraints, privileges
from metastore.rpc.handlers.catalog.constraints import constraints_of
from metastore.rpc.handlers.catalog.privileges import owner_grants


def dependents_of(struct: Any, table: Table, lists: Sequence[Sequence[Any] | None]) -> list[Dependent]:
    """What stores that of the table `struct`; `lists` are those of its constraints in the order of the wire, if any."""
    given = constraints_of(table, lists) if lists else []
    return [constraints.adder(given), privileges.adder(owner_grants(struct.privileges))]
