"""Constraints in CREATE and ALTER TABLE, in Hive's words, and as SHOW CREATE TABLE tells them.

NOT NULL, CHECK, DEFAULT and PRIMARY KEY are enforced and applied by all writers unless they are DISABLEd. Other keys
are only stored, so whoever makes one says DISABLE.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hive_acid.catalog.constraints import Constraint, in_parentheses
from hive_acid.catalog.table import Column, Table
from hive_acid.errors import ColumnError, ConstraintError
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.keys.key_columns import refuse_incomparable
from hive_acid.spark.sql.columns import column_definition, comment, names
from hive_acid.spark.sql.run import Run
from hive_acid.spark.sql.tokens import Cursor, tokens_of
from hive_acid.spark.values.assign import assign, sql_type
from hive_acid.spark.values.quoting import quoted
from hive_acid.spark.values.types import spark_type
from hive_acid.spark.write.constraints import checked
from hive_acid.spark.write.statement import column_errors
from hive_acid.wire import ConstraintKind

_WORDS = {
    ConstraintKind.PRIMARY_KEY: "PRIMARY KEY",
    ConstraintKind.FOREIGN_KEY: "FOREIGN KEY",
    ConstraintKind.UNIQUE: "UNIQUE",
    ConstraintKind.NOT_NULL: "NOT NULL",
    ConstraintKind.DEFAULT: "DEFAULT",
    ConstraintKind.CHECK: "CHECK",
}
_KEYS = (ConstraintKind.FOREIGN_KEY, ConstraintKind.UNIQUE)
_OF_COLUMNS = (ConstraintKind.NOT_NULL, ConstraintKind.DEFAULT)
"""What stands behind its column, and nowhere else."""

_STARTS = ("CONSTRAINT", "NOT", "DEFAULT", "CHECK", "PRIMARY", "UNIQUE", "REFERENCES")
_BEHIND_VALUE = (*_STARTS, "COMMENT", "ENABLE", "ENFORCED", "DISABLE", "VALIDATE", "NOVALIDATE", "RELY", "NORELY", ",")


def table_elements(run: Run, cursor: Cursor) -> tuple[list[Column], list[Constraint]]:
    """``(name type [constraint …] [COMMENT 'text'], …, constraint, …)``."""
    inside = cursor.parentheses("columns")
    columns: list[Column] = []
    constraints: list[Constraint] = []
    while True:
        if _begins_constraint(inside):
            constraints.append(table_constraint(run, inside))
        else:
            column, own = column_element(run, inside)
            columns.append(column)
            constraints += own
        if inside.at_end:
            return columns, constraints
        if not inside.accept(","):
            raise inside.error("a column has a name, a type, constraints and a COMMENT")


def _begins_constraint(cursor: Cursor) -> bool:
    """Whether a constraint of the table comes next; a column may be called as one."""
    word, behind = cursor.peek(), cursor.peek(1)
    if word in ("PRIMARY", "FOREIGN"):
        return behind == "KEY"
    if word == "CONSTRAINT":
        return cursor.peek(2) in ("PRIMARY", "FOREIGN", "UNIQUE", "CHECK")
    return word in ("UNIQUE", "CHECK") and behind == "("


def column_element(run: Run, cursor: Cursor) -> tuple[Column, list[Constraint]]:
    """``name[:] type``, with constraints and a COMMENT in any order; what follows is left."""
    column, found = column_definition(cursor), []
    while True:
        if column.comment is None and cursor.sees("COMMENT"):
            column = replace(column, comment=comment(cursor))
        elif cursor.peek() in _STARTS:
            found.append(column_constraint(run, cursor, column.name))
        else:
            return column, found


def column_constraint(run: Run, cursor: Cursor, column: str) -> Constraint:
    """``[CONSTRAINT name] NOT NULL | DEFAULT value | CHECK (…) | PRIMARY KEY | UNIQUE | REFERENCES t (…)``."""
    name = _name(cursor)
    if cursor.accept("NOT", "NULL"):
        return _with_options(cursor, Constraint(ConstraintKind.NOT_NULL, (column,), name))
    if cursor.accept("DEFAULT"):
        return _with_options(cursor, Constraint(ConstraintKind.DEFAULT, (column,), name, expression=_value(cursor)))
    if cursor.sees("CHECK"):
        return _check(cursor, (column,), name)
    if cursor.accept("PRIMARY", "KEY"):
        return _with_options(cursor, Constraint(ConstraintKind.PRIMARY_KEY, (column,), name))
    if cursor.accept("UNIQUE"):
        return _with_options(cursor, Constraint(ConstraintKind.UNIQUE, (column,), name))
    if cursor.sees("REFERENCES"):
        return _foreign_key(run, cursor, (column,), name)
    raise cursor.error("NOT NULL, DEFAULT, CHECK, PRIMARY KEY, UNIQUE or REFERENCES was expected")


def table_constraint(run: Run, cursor: Cursor) -> Constraint:
    """``[CONSTRAINT name] PRIMARY KEY (…) | UNIQUE (…) | FOREIGN KEY (…) REFERENCES t (…) | CHECK (…)``."""
    name = _name(cursor)
    if cursor.sees("CHECK"):
        return _check(cursor, (), name)
    if cursor.accept("FOREIGN", "KEY"):
        return _foreign_key(run, cursor, _column_names(cursor), name)
    if cursor.accept("PRIMARY", "KEY"):
        return _with_options(cursor, Constraint(ConstraintKind.PRIMARY_KEY, _column_names(cursor), name))
    if cursor.accept("UNIQUE"):
        return _with_options(cursor, Constraint(ConstraintKind.UNIQUE, _column_names(cursor), name))
    raise cursor.error("PRIMARY KEY, FOREIGN KEY, UNIQUE or CHECK was expected")


def _name(cursor: Cursor) -> str | None:
    return cursor.identifier("a constraint's name").lower() if cursor.accept("CONSTRAINT") else None


def _column_names(cursor: Cursor) -> tuple[str, ...]:
    found = tuple(names(cursor, "columns"))
    if len({*found}) < len(found):
        raise cursor.error(f"a key names a column twice: {', '.join(found)}", -1)
    return found


def _value(cursor: Cursor) -> str:
    value = cursor.until(*_BEHIND_VALUE)
    if not value.source:
        raise cursor.error("a value was expected behind DEFAULT")
    return _without_query(value)


def _check(cursor: Cursor, columns: tuple[str, ...], name: str | None) -> Constraint:
    cursor.expect("CHECK")
    asked = cursor.parentheses("a condition")
    if not asked.source:
        raise cursor.error("CHECK has no condition", -1)
    return _with_options(cursor, Constraint(ConstraintKind.CHECK, columns, name, expression=_without_query(asked)))


def _without_query(given: Cursor) -> str:
    if any(token.word == "SELECT" for token in tokens_of(given.source)):
        raise given.error("a constraint looks at one row alone: it has no queries")
    return given.source


def _foreign_key(run: Run, cursor: Cursor, columns: tuple[str, ...], name: str | None) -> Constraint:
    cursor.expect("REFERENCES")
    database, _, table = run.names.full(cursor.name("the table that is referred to")).rpartition(".")
    referred = _column_names(cursor)
    if len(referred) != len(columns):
        raise cursor.error(f"a foreign key of {len(columns)} columns refers to {len(referred)}", -1)
    found = Constraint(ConstraintKind.FOREIGN_KEY, columns, name, parent=(database, table), parent_columns=referred)
    return _with_options(cursor, found)


def _with_options(cursor: Cursor, one: Constraint) -> Constraint:
    """The constraint with ``[ENABLE | DISABLE] [NOVALIDATE] [RELY | NORELY]`` behind it. Raises SqlError."""
    what = _WORDS[one.kind]
    enabled: bool | None = None
    rely: bool | None = None
    validated: bool | None = None
    while True:
        at = cursor.peek()
        if cursor.accept("VALIDATE") or cursor.accept("NOVALIDATE"):
            validated = at == "VALIDATE"
            if validated and one.kind is not ConstraintKind.PRIMARY_KEY:
                raise cursor.error(f"rows that are there are not checked: say NOVALIDATE of {what}", -1)
            continue
        said = _said(cursor)
        if said is None:
            break
        is_rely, value = said
        if (rely if is_rely else enabled) is not None:
            raise cursor.error(f"{what} says twice whether it is to be relied on, or enabled", -1)
        rely, enabled = (value, enabled) if is_rely else (rely, value)
    if one.kind in _KEYS and enabled is not False:
        raise cursor.error(f"{what} is stored and not enforced: say DISABLE NOVALIDATE behind it")
    enabled = enabled is not False
    if one.kind is ConstraintKind.PRIMARY_KEY:
        if validated and not enabled:
            raise cursor.error("rows are not checked for a PRIMARY KEY that is not enforced: say DISABLE NOVALIDATE")
        one = replace(one, validated=enabled)
    return replace(one, enabled=enabled, rely=enabled if rely is None else rely)


def _said(cursor: Cursor) -> tuple[bool, bool] | None:
    """Whether a word is about RELY, and what it says; None if none comes."""
    for words, said in _OPTIONS.items():
        if cursor.accept(*words):
            return said
    return None


_OPTIONS = {
    ("ENABLE",): (False, True),
    ("ENFORCED",): (False, True),
    ("DISABLE",): (False, False),
    ("NOT", "ENFORCED"): (False, False),
    ("RELY",): (True, True),
    ("NORELY",): (True, False),
}


# --- what they may say ---------------------------------------------------------------------------


def check_constraints(run: Run, table: Table, added: Sequence[Constraint]) -> None:
    """Raise ColumnError for constraints that `table`, which has them, could not keep to."""
    columns = {column.name: column for column in table.all_columns}
    for one in added:
        if unknown := [name for name in one.columns if name not in columns]:
            raise ColumnError(f"{table.full_name} has no column {', '.join(unknown)} for {_WORDS[one.kind]}")
    if any(one.is_enforced or one.is_default for one in added) and not table.is_transactional:
        raise ColumnError(
            f"{table.full_name} is no ACID table, and others write to it unasked: say DISABLE of NOT NULL, CHECK and "
            "DEFAULT"
        )
    refuse_incomparable(table)
    for kind in _OF_COLUMNS:
        told = [one.columns[0] for one in table.constraints if one.kind is kind and one.enabled]
        if twice := sorted({name for name in told if told.count(name) > 1}):
            raise ColumnError(f"column {', '.join(twice)} of {table.full_name} has {_WORDS[kind]} twice")
    if any(one.kind is ConstraintKind.CHECK for one in added):
        # Also those that are disabled are to be understood.
        asked = [replace(one, name=one.name or "of CHECK", enabled=True) for one in added]
        kept = replace(table, constraints=tuple(one for one in asked if one.kind is ConstraintKind.CHECK))
        nulls = (f"CAST(NULL AS {sql_type(spark_type(one.type))}) AS {quoted(one.name)}" for one in table.all_columns)
        checked(kept, run.spark.sql(f"SELECT {', '.join(nulls)}"))
    for one in added:
        if one.kind is ConstraintKind.DEFAULT:
            _check_default(run, table, columns[one.columns[0]], one.expression or "NULL")


def _check_default(run: Run, table: Table, column: Column, value: str) -> None:
    """Raise ConstraintError for a DEFAULT that is no value of its column."""
    where = f"DEFAULT {value} of column {column.name} of {table.full_name}"
    try:
        with column_errors(table):
            # In CASE, so that Spark refuses what would make several rows of one; beside a column, what would count.
            frame = run.spark.sql("SELECT 1 AS __acid_one").selectExpr(
                "*", f"CASE WHEN __acid_one = 1 THEN {in_parentheses(value)} END AS __acid_value"
            )
            given = assign(run.spark, table, column, "__acid_value", frame.schema["__acid_value"].dataType)
            projected(frame, f"{given} AS __acid_stored").collect()
    except ColumnError as error:
        raise ConstraintError(f"{where} cannot be stored there: {error}") from error


# --- as they are told ----------------------------------------------------------------------------


def told(one: Constraint, *, of_column: bool = False) -> str:
    """A constraint as CREATE TABLE takes it: behind its column, or by itself."""
    what = _WORDS[one.kind]
    if one.expression is not None:
        is_bare = one.kind is ConstraintKind.DEFAULT and "--" not in one.expression
        what += f" {one.expression if is_bare else in_parentheses(one.expression)}"
    elif not of_column:
        what += f" ({', '.join(map(quoted, one.columns))})"
    if one.parent is not None:
        what += f" REFERENCES {'.'.join(map(quoted, one.parent))} ({', '.join(map(quoted, one.parent_columns))})"
    options = (
        f"{'ENABLE' if one.enabled else 'DISABLE'} {'VALIDATE' if one.validated else 'NOVALIDATE'} "
        f"{'RELY' if one.rely else 'NORELY'}"
    )
    return f"{f'CONSTRAINT {quoted(one.name)} ' if one.name else ''}{what} {options}"


def told_of(constraints: Iterable[Constraint], column: str) -> str:
    """The constraints that stand behind a column, each with a blank before it."""
    return "".join(f" {told(one, of_column=True)}" for one in constraints if stands_behind(one) == column)


def stands_behind(one: Constraint) -> str | None:
    """The column behind which a constraint stands; None for one of the table."""
    is_of_column = one.kind in _OF_COLUMNS or (one.kind is ConstraintKind.CHECK and len(one.columns) == 1)
    return one.columns[0] if is_of_column else None
