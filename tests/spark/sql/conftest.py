"""Tables for statements of all kinds."""

from collections.abc import Iterator

import pytest

from hive_acid.spark import AcidSession


@pytest.fixture
def tables(acid: AcidSession) -> Iterator[AcidSession]:
    acid.sql_script(
        """USE d;
        CREATE TABLE t (id int, name string, p string);
        CREATE TABLE s (id int, name string, p string);
        CREATE TABLE pt (id int, v string) PARTITIONED BY (hr int, ds string);
        INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
        INSERT INTO s VALUES (2, 'c', 'y'), (3, 'd', 'z');
        INSERT INTO pt PARTITION (hr = 11, ds = 'd') VALUES (1, 'a')"""
    )
    yield acid
    acid.sql("USE default")
