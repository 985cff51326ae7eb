"""UPDATE, DELETE and MERGE where Spark, Delta and Hive differ, or could: what docs/compatibility.md says of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hive_acid.errors import ColumnError, HiveAcidError, MergeCardinalityError, SqlError
from hive_acid.spark import AcidSession

T = [(1, 10, 1), (2, 20, None), (None, 30, 3)]
"""Of ``d.t`` the columns id, n and s.a; the struct of the second row is null."""

ON = "MERGE INTO t USING s ON t.id = s.id"
ALL = "WHEN MATCHED THEN UPDATE SET n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"

CHANGES: dict[str, list[tuple[Any, ...]]] = {
    # keys that are null
    f"MERGE INTO t USING s ON t.id = s.id {ALL}": [T[0], (2, 200, None), T[2], (3, 300, None), (None, 0, None)],
    f"MERGE INTO t USING s ON t.id <=> s.id {ALL}": [T[0], (2, 200, None), (None, 0, 3), (3, 300, None)],
    # clauses: the first one whose condition holds, and none if none does
    """MERGE INTO t USING s ON t.id <=> s.id WHEN MATCHED AND s.n > 100 THEN DELETE
       WHEN MATCHED AND t.n = 30 THEN UPDATE SET n = 31 WHEN MATCHED THEN UPDATE SET n = 99""": [T[0], (None, 31, 3)],
    """MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.n < 0 THEN DELETE
       WHEN NOT MATCHED AND s.n < 0 THEN INSERT (id) VALUES (s.id)""": T,
    """MERGE INTO t USING s ON t.id = s.id WHEN NOT MATCHED BY SOURCE AND t.n > 20 THEN DELETE
       WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = t.n + 1""": [(1, 11, 1), T[1]],
    # a row of the table that several of the source match, of which no clause or one applies
    "MERGE INTO t USING twice AS s ON t.id = s.id WHEN MATCHED AND s.n > 1000 THEN UPDATE SET n = s.n": T,
    "MERGE INTO t USING twice AS s ON t.id = s.id WHEN MATCHED AND s.n = 201 THEN UPDATE SET n = s.n": [
        T[0],
        (2, 201, None),
        T[2],
    ],
    "MERGE INTO t USING twice AS s ON t.n = s.n WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, n)": [
        *T,
        (2, 200, None),
        (2, 201, None),
    ],
    # subqueries
    """MERGE INTO t USING s ON t.id = s.id AND s.n IN (SELECT n FROM twice)
       WHEN MATCHED AND EXISTS (SELECT 1 FROM s AS o WHERE o.n > t.n)
       THEN UPDATE SET n = (SELECT max(n) FROM twice)""": [T[0], (2, 201, None), T[2]],
    "DELETE FROM t WHERE id IN (SELECT id FROM s)": [T[0], T[2]],
    "DELETE FROM t WHERE id NOT IN (SELECT id FROM s)": T,
    "DELETE FROM t WHERE id NOT IN (SELECT id FROM s WHERE id IS NOT NULL)": [T[1], T[2]],
    "DELETE FROM t WHERE EXISTS (SELECT 1 FROM s WHERE s.id = t.id AND s.n > t.n)": [T[0], T[2]],
    "DELETE FROM t WHERE n = (SELECT max(n) FROM t AS o)": T[:2],
    "UPDATE t SET n = (SELECT max(n) FROM s WHERE s.id = t.id) WHERE id = 2": [T[0], (2, 200, None), T[2]],
    # conditions that are unknown, and none at all
    "DELETE FROM t WHERE id > 1": [T[0], T[2]],
    "DELETE FROM t WHERE NOT (id = 1)": [T[0], T[2]],
    "DELETE FROM t": [],
    # values: all of the old row; fields of structs, of one that is null as well; the word DEFAULT
    "UPDATE t SET id = n, n = id WHERE id IS NOT NULL": [(10, 1, 1), (20, 2, None), T[2]],
    "UPDATE t AS x SET x.s.a = x.n WHERE x.n < 30": [(1, 10, 10), (2, 20, 20), T[2]],
    "UPDATE t SET n = DEFAULT WHERE id = 1": [(1, None, 1), T[1], T[2]],
    "UPDATE t SET n = '7' WHERE id = 1": [(1, 7, 1), T[1], T[2]],
    # sources of all kinds, the table itself too
    f"MERGE INTO t USING (SELECT id, n + 1 AS n FROM t) AS s ON t.id = s.id {ALL}": [
        (1, 11, 1),
        (2, 21, None),
        T[2],
        (None, 31, None),
    ],
    f"MERGE INTO t USING (VALUES (1, 5)) AS s(id, n) ON t.id = s.id {ALL}": [(1, 5, 1), T[1], T[2]],
    f"WITH c AS (SELECT * FROM s WHERE id = 3) MERGE INTO t USING c AS s ON t.id = s.id {ALL}": [*T, (3, 300, None)],
    f"MERGE INTO t USING s ON false {ALL}": [*T, (2, 200, None), (3, 300, None), (None, 0, None)],
}

REFUSED: dict[str, tuple[type[HiveAcidError], str]] = {
    "MERGE INTO t USING twice AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n": (
        MergeCardinalityError,
        "1 of",
    ),
    "MERGE INTO t USING twice AS s ON t.id = s.id WHEN MATCHED THEN DELETE": (MergeCardinalityError, "1 of its rows"),
    f"{ON} WHEN MATCHED THEN DELETE WHEN MATCHED THEN UPDATE SET n = 1": (ColumnError, "it could never apply"),
    ON: (ColumnError, "MERGE into d.t has no clause"),
    f"{ON} WHEN MATCHED THEN INSERT *": (SqlError, "UPDATE or DELETE was expected"),
    f"{ON} WHEN MATCHED THEN UPDATE SET *": (ColumnError, "the source of the MERGE into d.t has no column s"),
    f"{ON} WHEN NOT MATCHED THEN INSERT *": (ColumnError, "the source of the MERGE into d.t has no column s"),
    f"{ON} WHEN NOT MATCHED THEN INSERT (id, n) VALUES (1)": (ColumnError, "INSERT has 2 columns (id, n) and 1 values"),
    f"{ON} WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)": (SqlError, "INSERT names a column twice"),
    f"{ON} WHEN NOT MATCHED THEN INSERT (id) VALUES (t.n)": (ColumnError, "`t`.`n` cannot be resolved"),
    f"{ON} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET n = s.id": (
        ColumnError,
        "rows of the table alone, not the source",
    ),
    "MERGE INTO t USING s ON max(t.id) = s.id WHEN MATCHED THEN DELETE": (ColumnError, "UNSUPPORTED_EXPR_FOR_OPERATOR"),
    f"{ON} AND rand() < 2 WHEN MATCHED THEN DELETE": (ColumnError, "INVALID_NON_DETERMINISTIC_EXPRESSIONS"),
    "MERGE INTO v USING s ON v.id = s.id WHEN MATCHED THEN DELETE": (SqlError, "d.v is a view"),
    "UPDATE t SET n = 1, N = 2": (ColumnError, "'n' is given twice"),
    "UPDATE t SET s.a = 1, s = NULL": (ColumnError, "s is given twice, or is a part of what is given as a whole"),
    "UPDATE t SET n = 'x' WHERE id = 1": (ColumnError, "a value of string does not fit into d.t.n int: x"),
    "UPDATE t SET n = 3000000000 WHERE id = 1": (ColumnError, "a value of bigint does not fit into d.t.n int"),
    "UPDATE t SET n = max(n)": (ColumnError, "MISSING_GROUP_BY"),
    "DELETE FROM t WHERE n": (ColumnError, "a condition is true or false, and n is of type int"),
}


@pytest.fixture
def tables(acid: AcidSession) -> AcidSession:
    acid.sql("USE d")
    acid.sql("CREATE TABLE t (id INT, n INT, s STRUCT<a: INT, b: STRING>)")
    acid.sql("CREATE TABLE s AS SELECT * FROM VALUES (2, 200), (3, 300), (NULL, 0) AS s(id, n)")
    acid.sql("CREATE TABLE twice AS SELECT * FROM VALUES (2, 200), (2, 201) AS s(id, n)")
    acid.sql("CREATE VIEW v AS SELECT * FROM t")
    return acid


def _rows(acid: AcidSession) -> list[Any]:
    return sorted((tuple(row) for row in acid.sql("SELECT id, n, s.a FROM t").collect()), key=repr)


def test_what_row_level_statements_do(tables: AcidSession) -> None:
    for text, wanted in CHANGES.items():
        tables.sql("TRUNCATE TABLE t")
        tables.sql(
            """INSERT INTO t VALUES (1, 10, named_struct('a', 1, 'b', 'x')), (2, 20, NULL),
               (NULL, 30, named_struct('a', 3, 'b', 'z'))"""
        )
        tables.sql(text)
        assert _rows(tables) == sorted(wanted, key=repr), text


def test_what_they_refuse(tables: AcidSession) -> None:
    tables.sql("INSERT INTO t VALUES (1, 10, NULL), (2, 20, NULL)")
    before = _rows(tables)
    for text, (error, words) in REFUSED.items():
        with pytest.raises(error, match=re.escape(words)):
            tables.sql(text)
    assert _rows(tables) == before
