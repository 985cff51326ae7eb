"""The tables as code knows them are the tables of the database, and the hot reads use an index."""

import pytest
from sqlalchemy import inspect

from metastore.catalog.schema import METADATA
from metastore.store.database import Database
from tests.catalog.conftest import Rpc, table


@pytest.mark.parametrize("name", sorted(METADATA.tables))
def test_columns_stand_in_the_order_of_the_database(db: Database, name: str) -> None:
    found = [column["name"] for column in inspect(db.engine).get_columns(name)]
    assert METADATA.tables[name].columns.keys() == found


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("SELECT * FROM catalog_tables('{default}', '{t1}')", "tbl_name"),
        ("SELECT * FROM catalog_database('default')", "database_pkey"),
        ("SELECT * FROM partition WHERE table_id = 1 AND values = ARRAY['1']", "partition_values"),
        ("SELECT name FROM partition WHERE table_id = 1 ORDER BY name LIMIT 10", "partition_name"),
    ],
)
def test_hot_reads_use_their_index(rpc: Rpc, db: Database, query: str, index: str) -> None:
    rpc.create_table(table("t1"))
    with db.engine.connect() as connection:
        connection.exec_driver_sql("SET LOCAL enable_seqscan = off")  # tables this small would be scanned
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {query}").scalars())
    assert index in plan
