"""The files of the metastore's own Postgres are nobody's table: no verb takes a place there, none removes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest

from hive_acid.errors import InvalidObjectError, InvalidOperationError, MetaError
from hive_acid.wire import ttypes
from tests.catalog.conftest import ACID, Rpc, column, partition, storage, table

REFUSED = "cannot lie at .*the metastore's own database"
EXTERNAL = {"tableType": "EXTERNAL_TABLE", "parameters": {"external.table.purge": "true"}}


@pytest.fixture(scope="module")
def cluster(postgres_url: str) -> Path:
    with closing(psycopg2.connect(postgres_url)) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW data_directory")
        return Path(cursor.fetchone()[0])


def taken(cluster: Path, elsewhere: Path) -> Iterator[str]:
    link = elsewhere / "link"
    link.symlink_to(cluster.parent)
    yield str(cluster)
    yield str(cluster / "base")
    yield f"file://{cluster}//./base/../"
    yield f"{link}/cluster"
    yield f"{link}/postgres.log"
    yield str(cluster.parent / "owner.lock")
    yield f"file:{cluster.parent}"
    yield f"{link}/"


def files(cluster: Path) -> set[Path]:
    return {path for path in cluster.parent.rglob("*") if path.is_file() and "base" not in path.parts[:-1]}


def test_no_place_is_taken_there(rpc: Rpc, cluster: Path, tmp_path: Path) -> None:
    rpc.create_table(table("parted", keys=(column("p", "string"),)))
    rpc.create_table(table("other"))
    for location in taken(cluster, tmp_path):
        for more in ({}, EXTERNAL, {"parameters": ACID}):
            with pytest.raises((InvalidObjectError, MetaError), match=REFUSED):
                rpc.create_table(table("mine", sd=storage(location=location), **more))
        with pytest.raises((InvalidObjectError, MetaError), match=REFUSED):
            rpc.add_partition(partition(["1"], "parted", sd=storage(location=location)))
        changed = rpc.get_table("default", "other")
        changed.sd.location = location
        with pytest.raises((InvalidObjectError, InvalidOperationError, MetaError), match=REFUSED):
            rpc.alter_table("default", "other", changed)


def test_no_database_lies_in_it(rpc: Rpc, cluster: Path) -> None:
    for place in (cluster, cluster / "base", cluster.parent / "postgres.log"):
        with pytest.raises(InvalidObjectError, match=REFUSED):
            rpc.create_database(ttypes.Database(name="mine", locationUri=f"file:{place}", parameters={}))


def test_what_lies_above_it_is_not_removed(rpc: Rpc, cluster: Path) -> None:
    """Around the warehouse there may be an external table, or a database."""
    before = files(cluster)
    rpc.create_table(table("all", sd=storage(location=str(cluster.parent)), tableType="EXTERNAL_TABLE"))
    rpc.drop_table("default", "all", True)
    rpc.create_database(ttypes.Database(name="all", locationUri=f"file:{cluster.parent}", parameters={}))
    rpc.drop_database("all", True, True)
    assert files(cluster) >= {path for path in before if path.name in ("PG_VERSION", "postgres.log", "owner.lock")}
