"""What holds a lease by a name, and which of Spark's errors say that a snapshot's files are gone; without Spark."""

import gc
from typing import Any

import pytest

from hive_acid.spark.snapshots.gone_files import gone_file
from hive_acid.spark.snapshots.lease import Lease, View, Views


@pytest.fixture
def ended() -> Any:
    return []


def view(name: Any, ended: Any, *, is_global: Any = False) -> Any:
    return View(name, is_global, frozenset((Lease(None, lambda: ended.append(name)),)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("statement", "is_over"),
    [
        ("DROP VIEW v", True),
        ("drop view if exists `V`", True),
        ("\n DROP TABLE v", True),
        ("DROP VIEW db.v", False),
        ("DROP VIEW w", False),
        ("CREATE OR REPLACE TEMP VIEW v AS SELECT 1", True),
        ("create or replace temporary view `v` (a) as select 1", True),
        ("CREATE OR REPLACE VIEW v AS SELECT 1", False),
        ("CREATE OR REPLACE GLOBAL TEMP VIEW v AS SELECT 1", False),
        ("SELECT 'DROP VIEW v'", False),
        ("CREATE TEMP VIEW w AS SELECT * FROM v", False),
    ],
)
def test_sql_ends_the_lease_of_a_view(statement: Any, is_over: Any, ended: Any) -> None:
    views = Views(lambda found: not is_over)
    views.add(view("v", ended))
    views.ran(statement, None)
    gc.collect()
    assert ended == (["v"] if is_over else [])


def test_a_view_of_one_name_takes_the_place_of_another(ended: Any) -> None:
    views = Views(lambda found: True)
    views.add(view("v", ended))
    views.add(view("v", ended, is_global=True))
    views.dropped("v")
    assert ended == []
    views.add(view("v", ended))
    assert ended == ["v"]
    views.replaced("V", is_global=True, session=None)
    assert ended == ["v", "v"]
    views.clear()
    assert ended == ["v", "v", "v"]


def test_which_leases_a_query_needs(ended: Any) -> None:
    views = Views(lambda found: True)
    one, other = view("v_1", ended), view("v_12", ended)
    views.add(one)
    views.add(other)
    assert views.leases_of("SELECT * FROM V_1") == one.leases
    assert views.leases_of("SELECT * FROM v_12 JOIN v_1") == one.leases | other.leases
    assert views.leases_of("SELECT 1") == frozenset()
    views.ran("CREATE TEMP VIEW w AS SELECT * FROM v_12", None)
    assert views.leases_of("SELECT * FROM w") == other.leases


@pytest.mark.parametrize(
    ("words", "path"),
    [
        (
            "[FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while reading file file:///w/d.db/t/k=a b/"
            "delta_0000001_0000001_0000/bucket_00000. File does not exist.",
            "b/delta_0000001_0000001_0000/bucket_00000",
        ),
        ("[PATH_NOT_FOUND] Path does not exist: file:/w/t/base_0000003_v0000011. SQLSTATE", "file:/w/t/base_0000003"),
        ("java.io.FileNotFoundException: File s3a://b/t/000000_0 does not exist", "s3a://b/t/000000_0"),
        ("java.io.FileNotFoundException: File file:/w/t/part-00000.parquet does not exist", None),
        ("Error while reading file:///w/t/delta_0000001_0000001/bucket_00000: broken", None),
        ("Table or view `delta_0000001` does not exist", None),
    ],
)
def test_which_errors_are_of_files_that_are_gone(words: Any, path: Any) -> None:
    found = gone_file(words)
    assert found is None if path is None else path in found  # type: ignore[operator]
