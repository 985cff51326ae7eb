"""CREATE and DROP of tables, CREATE TABLE AS and LIKE."""

from __future__ import annotations

from pyspark.sql import DataFrame

from hive_acid.catalog.storage_formats import (
    NOT_EXTERNAL,
    StorageFormat,
    format_called,
    is_orc,
    only_orc,
    storage_format,
)
from hive_acid.catalog.table import Table
from hive_acid.errors import ColumnError, NoSuchObjectError, SqlError
from hive_acid.format.properties import (
    TRANSACTIONAL,
    TRANSACTIONAL_PROPERTIES,
    is_full_acid,
    is_transactional,
    property_of,
    with_defaults,
    word_of,
)
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.statements.definitions.constraints import check_constraints, table_elements
from hive_acid.spark.sql.statements.definitions.table_clauses import (
    EXTERNAL,
    OUR_FORMAT,
    OURS,
    TableClauses,
    table_clauses,
)
from hive_acid.spark.sql.tokens import Cursor, Name
from hive_acid.spark.tables.definition import new_table
from hive_acid.spark.values.types import row_type

_TEMPORARY = frozenset({"TEMPORARY", "TEMP"})


def create_table(run: Run, cursor: Cursor) -> DataFrame | None:
    """``CREATE [OR REPLACE] [TEMPORARY] [EXTERNAL] [TRANSACTIONAL] TABLE [IF NOT EXISTS] t (columns) … [AS query]``;
    None if it is Spark's.
    """
    first = cursor.start
    cursor.expect("CREATE")
    replaces = cursor.accept("OR", "REPLACE")
    kinds = set()
    while not cursor.accept("TABLE"):
        kinds.add(cursor.one_of("TABLE", "TRANSACTIONAL", "MANAGED", "EXTERNAL", "TEMPORARY", "TEMP"))
    temporary = not kinds.isdisjoint(_TEMPORARY)
    if "EXTERNAL" in kinds and kinds - _TEMPORARY != {"EXTERNAL"}:
        raise cursor.error("an EXTERNAL table is neither TRANSACTIONAL nor MANAGED")
    said, external = "TRANSACTIONAL" in kinds, "EXTERNAL" in kinds
    if_not_exists = cursor.accept("IF", "NOT", "EXISTS")
    if replaces and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other: leave one of them out")
    name = cursor.name()
    if not run.names.is_ours(name):
        return None
    run.names.makes_ours = True
    if cursor.accept("LIKE"):
        if replaces:
            raise cursor.error("OR REPLACE does not go with LIKE: TRUNCATE the table, or drop it first")
        return _like(run, cursor, name, external=external, if_not_exists=if_not_exists, temporary=temporary)
    columns, constraints = table_elements(run, cursor) if cursor.sees("(") else ([], [])
    definition = table_clauses(run, cursor, TableClauses(columns, constraints=constraints, external=external))
    query = None
    if not cursor.at_end:
        cursor.accept("AS")
        start = cursor.start
        query = cursor.rest()
    cursor.finish()
    if definition.provider not in OURS:
        run.names.refuse_hidden(name)
        return None if query is None else run.query(query, before=run.explains + cursor.text[first:start])
    if said and word_of(definition.properties, TRANSACTIONAL, default="true") != "true":
        raise SqlError(f"CREATE TRANSACTIONAL TABLE {name} with transactional=false: leave one of them out")
    if replaces and not temporary:
        run.acid.temporary.refuse_hidden(run.names.full(name))
    there = run.names.defined_table(name) if replaces and (run.names.temporary(name) or not temporary) else None
    _check_kind(name, definition)
    if there is not None:
        return _replaced(run, there, definition, query)
    if query is not None:
        return _as_query(run, name, definition, query, if_not_exists=if_not_exists, temporary=temporary)
    columns = [*definition.columns, *definition.keys]
    words = {**definition.words(), "external": external}
    constraints = definition.constraints
    if constraints:
        check_constraints(run, new_table(run.names.full(name), columns, **words, constraints=constraints), constraints)
    run.acid.create_table(
        run.names.full(name),
        columns,
        **words,
        constraints=constraints,
        if_not_exists=if_not_exists,
        temporary=temporary,
    )
    return run.nothing()


def _check_kind(name: Name, definition: TableClauses) -> None:
    """Raise SqlError for a format that full-ACID tables, which are made by default, do not have, and for what an
    external table cannot be.
    """
    if definition.external and is_transactional(definition.properties):
        raise SqlError(f"CREATE EXTERNAL TABLE {name}: {NOT_EXTERNAL}")
    if definition.external and not definition.storage.is_given:
        raise SqlError(
            f"CREATE EXTERNAL TABLE {name} has to say how its files are STORED AS: to Hive they would be TEXTFILE, and "
            "tables are ORC here if nothing is said"
        )
    form = definition.storage.form or OUR_FORMAT
    if isinstance(form, str):
        storage_format(form)
    if is_orc(form) or definition.external:
        return
    if is_full_acid(with_defaults(definition.properties, {TRANSACTIONAL: "true"})):
        raise SqlError(only_orc(form if isinstance(form, str) else format_called(form)))


def _as_query(
    run: Run, name: Name, definition: TableClauses, query: str, *, if_not_exists: bool, temporary: bool
) -> DataFrame:
    if definition.columns or definition.keys:
        raise ColumnError(f"CREATE TABLE {name} AS takes its columns from the query: name the partition columns only")
    if if_not_exists and (run.names.temporary(name) or (not temporary and run.names.written(name) is not None)):
        return run.counts(num_affected_rows=0, num_inserted_rows=0)
    full_name, source = run.names.full(name), run.prepared(query)

    def work() -> int:
        frame, constraints = source.frame(), definition.constraints
        words = {**definition.words(), "external": definition.external, "constraints": constraints}
        if constraints:
            check_constraints(run, new_table(full_name, frame.schema, **words), constraints)
        return run.acid.create_table_as(full_name, frame, **words, temporary=temporary)

    is_plain = definition.external or word_of(definition.properties, TRANSACTIONAL, default="true") != "true"
    place = run.acid.temporary.place_of_new(full_name) if temporary else full_name
    rows = work() if is_plain else run.in_transaction(work, [place, *source.tables])
    return run.counts(num_affected_rows=rows, num_inserted_rows=rows)


def _replaced(run: Run, table: Table, definition: TableClauses, query: str | None) -> DataFrame:
    """Have other rows, or none, in a table that is defined in the same way; frames of it keep those that they had."""
    if query is not None and (definition.columns or definition.keys):
        raise ColumnError(f"CREATE TABLE {table.full_name} AS takes its columns from the query: name partition columns")
    source = None if query is None else run.prepared(query)
    columns = [*definition.columns, *definition.keys]

    def work() -> int:
        frame = run.spark.createDataFrame([], row_type(columns)) if source is None else source.frame()
        wanted = new_table(
            table.full_name,
            columns if source is None else frame.schema,
            **definition.words(),
            external=definition.external,
            constraints=definition.constraints,
        )
        if definition.constraints:
            check_constraints(run, wanted, definition.constraints)
        return run.acid.replace_table_as(table, wanted, frame, properties=definition.properties)

    rows = run.in_transaction(work, [table.full_name, *([] if source is None else source.tables)])
    return run.nothing() if source is None else run.counts(num_affected_rows=rows, num_inserted_rows=rows)


def _like(run: Run, cursor: Cursor, name: Name, *, external: bool, if_not_exists: bool, temporary: bool) -> DataFrame:
    """A table with the columns, keys, buckets, kind and format of another one; other properties are those given.

    Of a view it has the columns.
    """
    if cursor.sees("FILE") and cursor.peek(1) not in ("", ";", "."):
        raise cursor.error("LIKE FILE reads no columns here: name them, or CREATE TABLE … AS SELECT from the file")
    at = cursor.name()
    model = run.names.defined(at)
    if model is None:
        raise NoSuchObjectError(f"the metastore has no table {run.names.full(at)}")
    definition = table_clauses(run, cursor, TableClauses([], external=external))
    cursor.finish()
    if definition.provider is not None:
        raise SqlError(f"CREATE TABLE {name} LIKE takes the format of {model.full_name}, or STORED AS: leave USING out")
    kind = () if external or model.is_view else (TRANSACTIONAL, TRANSACTIONAL_PROPERTIES, "bucketing_version")
    inherited = {key: value for key in kind if (value := property_of(model.parameters, key)) is not None}
    is_external = external or (model.table_type == EXTERNAL and not is_transactional(definition.properties))
    if not (is_external or model.is_view or TRANSACTIONAL_PROPERTIES in definition.properties):
        # What says nothing of it is a plain one, and what is made without would be none.
        inherited = with_defaults(inherited, {TRANSACTIONAL: "false"})
    own = StorageFormat(model.input_format, model.output_format, model.serde)
    form = definition.storage.form
    run.acid.create_table(
        run.names.full(name),
        model.all_columns,
        partitioned_by=[key.name for key in model.partition_keys],
        properties=with_defaults(definition.properties, inherited),
        location=definition.location,
        clustered_by=model.bucket_columns,
        buckets=model.buckets if model.bucket_columns else None,
        sorted_by=model.sorted_by,
        skew=model.skew,
        stored_as=form or (OUR_FORMAT if model.is_view else own),
        serde_properties=model.serde_parameters if form is None else definition.storage.serde_properties,
        external=is_external,
        if_not_exists=if_not_exists,
        temporary=temporary,
    )
    return run.nothing()


def drop_table(run: Run, cursor: Cursor) -> DataFrame | None:
    """``DROP TABLE [IF EXISTS] t [PURGE]``; None if the table is not ours."""
    cursor.expect("DROP", "TABLE")
    cursor.accept("IF", "EXISTS")
    name = cursor.name()
    purge = cursor.accept("PURGE")
    cursor.finish()
    if (place := run.names.temporary(name)) is not None:
        run.acid.drop_table(place, purge=True)
        return run.nothing()
    table = run.names.defined_table(name)
    if table is None:
        return None
    run.acid.drop_table(table.full_name, purge=purge)
    return run.nothing()
