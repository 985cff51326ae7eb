"""How a write's tasks become files: each a bucket of one statement, or each a statement of its own.

``buckets`` is the default: task 3 writes ``delta_W_W_0000/bucket_00003``, and compactions work bucket by bucket. Trino
loses deletes of rows above bucket 0 (acid-format.md §2.8), so for tables that it changes there is ``statements``: task
3 writes ``delta_W_W_0003/bucket_00000``. The table property `LAYOUT_PROPERTY` chooses.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

from hive_acid.catalog.table import Table
from hive_acid.errors import UnsupportedTableError
from hive_acid.format import rows
from hive_acid.format.names import MAX_BUCKET, MAX_STATEMENT_ID
from hive_acid.format.properties import LAYOUT_PROPERTY, word_of
from hive_acid.ids import WriteId


class Layout(enum.Enum):
    """What a task's number stands for."""

    BUCKETS = "buckets"
    STATEMENTS = "statements"

    @property
    def files_per_statement(self) -> int:
        """How many numbers go into one directory before the next statement begins."""
        return 1 if self is Layout.STATEMENTS else MAX_BUCKET + 1


def layout_of(table: Table) -> Layout:
    """The layout that a table's properties ask for. Raises UnsupportedTableError for one that is none."""
    given = word_of(table.parameters, LAYOUT_PROPERTY, default=Layout.BUCKETS.value)
    try:
        layout = Layout(given)
    except ValueError:
        known = ", ".join(known.value for known in Layout)
        raise UnsupportedTableError(
            f"{table.full_name} has {LAYOUT_PROPERTY}={given}, which is none of {known}: change the property"
        ) from None
    if layout is Layout.STATEMENTS and table.bucket_columns:
        raise UnsupportedTableError(
            f"{table.full_name} is CLUSTERED BY ({', '.join(table.bucket_columns)}), so its rows lie in many buckets, "
            f"and {LAYOUT_PROPERTY}={given} wants them all in bucket 0: drop the one or the other"
        )
    return layout


class Write(NamedTuple):
    """The ids under which events are written; tasks that do not fit into the statement take the ids that follow."""

    write_id: WriteId
    statement_id: int
    layout: Layout = Layout.BUCKETS

    def bucket_property(self, number: str) -> str:
        """The SQL of the bucket property (acid-format.md §3.2) of new rows in file `number`, an int: task or bucket."""
        first = rows.encode_bucket(0, self.statement_id)
        if self.layout is Layout.STATEMENTS:
            return f"{first} + {number}"
        return f"{first} + shiftleft({number} & {MAX_BUCKET}, 16) + shiftright({number}, 12)"

    def by_statement(self, numbered: Mapping[int, str]) -> dict[int, dict[int, str]]:
        """Statement id to bucket to file, of files that are numbered by task.

        Raises UnsupportedTableError for more tasks than a transaction has statements for.
        """
        found: dict[int, dict[int, str]] = {}
        for number, path in sorted(numbered.items()):
            above, bucket = divmod(number, self.layout.files_per_statement)
            statement_id = self.statement_id + above
            if statement_id > MAX_STATEMENT_ID:
                raise UnsupportedTableError(
                    f"the write has task {number}, and a transaction has {MAX_STATEMENT_ID + 1} statements with "
                    f"{self.layout.files_per_statement} files each: repartition the rows into fewer and larger parts"
                )
            found.setdefault(statement_id, {})[bucket] = path
        return found
