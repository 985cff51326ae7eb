"""Which databases and tables are meant."""

from typing import Any

import pytest

from metastore.transfer.models import Selection


@pytest.mark.parametrize(
    ("databases", "tables", "chosen"),
    [
        ((), (), ["a.x", "b.x", "b.y", "@lake#a.x"]),
        (("b",), (), ["b.x", "b.y"]),
        ((), ("x",), ["a.x", "b.x", "@lake#a.x"]),
        ((), ("b.*",), ["b.x", "b.y"]),
        (("a",), ("x", "b.y"), ["a.x"]),
        (("@lake#*",), (), ["@lake#a.x"]),
        ((), ("@lake#a.x",), ["@lake#a.x"]),
        ((), ("B.Y",), ["b.y"]),
    ],
)
def test_patterns(databases: Any, tables: Any, chosen: Any) -> None:
    selection = Selection(databases, tables)
    known = [("a", "x"), ("b", "x"), ("b", "y"), ("@lake#a", "x")]
    assert [f"{db}.{name}" for db, name in known if selection.has_table(db, name)] == chosen
    assert {db for db, _ in known if selection.has_database(db)} >= {one.rpartition(".")[0] for one in chosen}


def test_a_catalog_comes_with_what_is_chosen_of_it() -> None:
    assert Selection().has_catalog("lake")
    assert not Selection(("b",)).has_catalog("lake")
    assert Selection(("b",)).has_catalog("hive")
    assert Selection((), ("@la*#a.x",)).has_catalog("lake")
