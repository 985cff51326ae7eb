"""How a condition or value of a verb calls the columns of the row that is changed, and those of the other rows."""

from __future__ import annotations

from sqlglot import exp

from hive_acid.spark.read.table_frame import KEY_COLUMNS, ROW_ID, has_row_ids
from hive_acid.spark.sql.hints import direct_sources
from hive_acid.spark.sql.rewriting.edits import Edits
from hive_acid.spark.sql.rewriting.reads import ChangedTable
from hive_acid.spark.values.quoting import quoted


def edit_target(tree: exp.Expr, target: ChangedTable, edits: Edits) -> None:
    """Columns of the changed row by its alias alone, and its ROW__ID as the columns that hold it."""
    alias = target.alias.lower()
    for column in tree.find_all(exp.Column):
        parts = column.parts
        names = [part.name.lower() for part in parts]
        if any("start" not in part.meta for part in parts):
            continue
        source = list(target.source)
        is_source = source and names[: len(source)] == source and names[len(source) :] and source[0] != alias
        if is_source and not _is_shadowed(column, source[-1]):
            edits.replace(parts[0].meta["start"], parts[len(source) - 1].meta["start"], "")
            continue
        if _is_shadowed(column, alias):
            continue
        owners = [[alias]] if target.hides_database else [[target.table.called_in, alias], [alias]]
        qualified = next((len(of) for of in owners if of == names[: len(of)] and names[len(of) :]), 0)
        start, rest = parts[0].meta["start"], parts[qualified]
        names_id = rest.name.upper() == ROW_ID and has_row_ids(target.table)
        if names_id and (qualified or not _is_in_subquery(column)):
            fields = zip(("writeId", "bucketId", "rowId"), KEY_COLUMNS, strict=True)
            struct = ", ".join(f"'{field}', {quoted(target.alias)}.{key}" for field, key in fields)
            edits.replace(start, rest.meta["end"] + 1, "", f"named_struct({struct})")
        elif qualified == 2:
            edits.replace(start, parts[1].meta["start"], "")


def _is_shadowed(column: exp.Column, alias: str) -> bool:
    """Whether a subquery around the column has a table of that name, which its qualifier then means."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        if any(source.alias_or_name.lower() == alias for source in direct_sources(select)):
            return True
        select = select.find_ancestor(exp.Select)
    return False


def _is_in_subquery(column: exp.Column) -> bool:
    select = column.find_ancestor(exp.Select)
    return select is not None and bool(direct_sources(select))
