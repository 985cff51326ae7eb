"""Write cycles per second over Thrift, beside single-row inserts through psycopg2 on the same Postgres."""

from __future__ import annotations

import random
from collections.abc import Callable

import psycopg2

from hive_acid import connect
from hive_acid.wire import ttypes
from tests.bench.load import rounds_per_second

CONNECTIONS = (1, 8, 32)
TABLES, PARTITIONS = 10, 100


def write_cycle(uri: str, number: int) -> Callable[[], None]:
    """Open, allocate, lock, heartbeat, commit: what one UPDATE of one partition asks of the metastore."""
    connection = connect(uri, user="bench")
    chance = random.Random(number)

    def one() -> None:
        table, partition = f"t{chance.randrange(TABLES)}", f"p={chance.randrange(PARTITIONS)}"
        txn = connection.call("open_txns", ttypes.OpenTxnRequest(num_txns=1, user="bench", hostname="h")).txn_ids[0]
        connection.call(
            "allocate_table_write_ids",
            ttypes.AllocateTableWriteIdsRequest(dbName="bench", tableName=table, txnIds=[txn]),
        )
        component = ttypes.LockComponent(
            type=ttypes.LockType.SHARED_WRITE,
            level=ttypes.LockLevel.PARTITION,
            dbname="bench",
            tablename=table,
            partitionname=partition,
            operationType=ttypes.DataOperationType.UPDATE,
            isTransactional=True,
        )
        request = ttypes.LockRequest(component=[component], txnid=txn, user="bench", hostname="h")
        answer = connection.call("lock", request)
        assert answer.state == ttypes.LockState.ACQUIRED
        connection.call("heartbeat", ttypes.HeartbeatRequest(txnid=txn))
        # The conflict check is made; a conflict with another connection ends the cycle as well.
        try:
            connection.call("commit_txn", ttypes.CommitTxnRequest(txnid=txn, exclWriteEnabled=False))
        except Exception as error:
            if "write conflict" not in str(error):
                raise

    return one


def single_row_insert(url: str, number: int) -> Callable[[], None]:
    """One durable row, in a database transaction of its own."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    cursor = connection.cursor()

    def one() -> None:
        cursor.execute("INSERT INTO bench_row (worker, words) VALUES (%s, %s)", (number, "one durable row"))

    return one


def run(uri: str, postgres_url: str, seconds: float) -> list[tuple[int, float, float]]:
    """(connections, cycles/s, inserts/s), both measured one after the other in the same run."""
    with psycopg2.connect(postgres_url) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_row (worker int, words text)")
    figures = []
    for connections in CONNECTIONS:
        inserts = rounds_per_second(single_row_insert, postgres_url, connections, seconds)
        cycles = rounds_per_second(write_cycle, uri, connections, seconds)
        figures.append((connections, cycles, inserts))
    return figures
