"""What children of multiprocessing do with a connection; a module, so that they can import it when they are spawned."""

from __future__ import annotations

from hive_acid.connection import Connection, connect
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction

CALLS = 60

inherited: list[Connection] = []
"""Connections of the parent, for children that are forked."""


def end_with_mixed(uri: str, number: int) -> None:
    """End the process with what `mixed` returns as its status."""
    raise SystemExit(mixed(uri, number))


left_open: list[Transaction] = []


def opened(uri: str) -> Connection:
    """The parent's connection if this process has inherited one, or a new one."""
    return inherited[0] if inherited else connect(uri)


def mixed(uri: str, number: int) -> int:
    """How many of many calls got an answer to another one; each also begins and ends a transaction."""
    connection = opened(uri)
    wrong = 0
    for _ in range(CALLS):
        wrong += connection.table("d", f"t{number}").name != f"t{number}"
        wrong += connection.call("get_config_value", f"hive.of.{number}", f"value {number}") != f"value {number}"
        with connection.begin(TransactionKind.READ) as transaction:
            wrong += transaction.write_ids("d", f"t{number}").high_water_mark != 0
    return wrong


def leave_one_open(uri: str) -> int:
    """Begin to read and to write, and leave both open; the id of the writer."""
    connection = opened(uri)
    left_open.extend([connection.begin(TransactionKind.READ), connection.begin()])
    return left_open[-1].id
