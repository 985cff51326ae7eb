"""Tables compared with what pandas says they must hold; every difference fails the demo."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc


class Checks:
    """Counts what was checked; raises AssertionError at the first thing that does not hold."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def holds(self, what: str, condition: bool, found: object = "") -> None:
        """One statement about what was seen."""
        if not condition:
            raise AssertionError(f"{what}: it does not hold. Found: {found}")
        self.done.append(what)

    def same_rows(self, what: str, table: pa.Table, expected: pd.DataFrame) -> int:
        """The same rows, as a bag, column by column and value by value; how many there are."""
        columns = list(expected.columns)
        wanted = pa.Table.from_pandas(expected.reset_index(drop=True), preserve_index=False)
        found = _sorted(table.select(columns), columns, wanted.schema)
        wanted = _sorted(wanted, columns, wanted.schema)
        if found.num_rows != wanted.num_rows:
            raise AssertionError(f"{what}: {found.num_rows:,} rows, expected {wanted.num_rows:,}")
        for column in columns:
            if not found[column].equals(wanted[column]):
                differs = pc.fill_null(pc.not_equal(found[column], wanted[column]), True)
                at = pc.index(pc.and_(differs, pc.true_unless_null(differs)), True).as_py()
                raise AssertionError(
                    f"{what}: column {column} differs, first at sorted row {at}: "
                    f"{found.slice(at, 1).to_pylist()} instead of {wanted.slice(at, 1).to_pylist()}"
                )
        self.done.append(f"{what} ({found.num_rows:,} rows, {len(columns)} columns)")
        return int(found.num_rows)


def _sorted(table: pa.Table, columns: list[str], schema: pa.Schema) -> pa.Table:
    return table.cast(schema).combine_chunks().sort_by([(column, "ascending") for column in columns])
