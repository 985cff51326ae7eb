"""Replies to get_table are kept as encoded: they are those that would be made anew, whatever has happened since."""

from __future__ import annotations

import random
from typing import Any

import pytest

from hive_acid.errors import MetaError, NoSuchObjectError
from hive_acid.wire import ttypes
from tests.catalog.conftest import ACID, Rpc, column, storage, table

SEED = 1
STEPS = 400
INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}
KINDS: tuple[dict[str, str], ...] = ({}, ACID, INSERT_ONLY, {"EXTERNAL": "TRUE"})
CLIENTS: tuple[tuple[str, ...] | None, ...] = (
    None,
    (),
    ("HIVEFULLACIDREAD", "HIVEFULLACIDWRITE", "HIVEMANAGEDINSERTREAD"),
    ("EXTREAD",),
    ("EXTREAD", "EXTWRITE", "HIVEBUCKET2"),
    ("ACCEPTS_UNMODIFIED_METADATA",),
)
NAMES = ("a", "b")


def _create(rpc: Rpc, name: str, rng: random.Random) -> None:
    width = rng.choice((1, 3, 400))  # the last is too long to be kept
    parameters = dict(rng.choice(KINDS))
    kind = "EXTERNAL_TABLE" if "EXTERNAL" in parameters else "MANAGED_TABLE"
    buckets: dict[str, Any] = {"numBuckets": 4, "bucketCols": ["c0"]} if rng.random() < 0.3 else {}
    columns = [column(f"c{number}", rng.choice(("int", "string"))) for number in range(width)]
    keys = (column("k", "string"),) if rng.random() < 0.3 else ()
    rpc.create_table(table(name, keys=keys, sd=storage(*columns, **buckets), parameters=parameters, tableType=kind))


def _change(rpc: Rpc, name: str, rng: random.Random) -> None:
    found = _fresh(rpc, name, ("ACCEPTS_UNMODIFIED_METADATA",))
    match rng.randrange(4):
        case 0:
            found.parameters["note"] = rng.choice("xyz")
        case 1:
            found.sd.cols.append(column(f"c{len(found.sd.cols)}", "string"))
        case 2:
            found.owner = rng.choice(("ann", "bob"))
        case _:
            rpc.drop_table("default", name, True)
            return
    rpc.alter_table_req(
        ttypes.AlterTableRequest(
            dbName="default", tableName=name, table=found, processorCapabilities=["HIVEFULLACIDWRITE"]
        )
    )


def _fresh(rpc: Rpc, name: str, capabilities: tuple[str, ...] | None) -> Any:
    """By a call whose replies are always made anew."""
    request = ttypes.GetTablesRequest(
        dbName="default",
        tblNames=[name],
        processorCapabilities=None if capabilities is None else list(capabilities),
        capabilities=ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES]),
    )
    (found,) = rpc.get_table_objects_by_name_req(request).tables
    return found


def _got(rpc: Rpc, name: str, capabilities: tuple[str, ...] | None) -> Any:
    request = ttypes.GetTableRequest(
        dbName="default",
        tblName=name,
        processorCapabilities=None if capabilities is None else list(capabilities),
        capabilities=ttypes.ClientCapabilities(values=[ttypes.ClientCapability.INSERT_ONLY_TABLES]),
    )
    return rpc.get_table_req(request).table


@pytest.mark.slow
def test_what_is_got_is_what_would_be_made_anew(rpc: Rpc) -> None:
    rng = random.Random(SEED)
    compared = 0
    for _ in range(STEPS):
        name, client = rng.choice(NAMES), rng.choice(CLIENTS)
        if name not in rpc.get_all_tables("default"):
            with pytest.raises(NoSuchObjectError):
                _got(rpc, name, client)
            _create(rpc, name, rng)
        elif rng.random() < 0.2:
            _change(rpc, name, rng)
            continue
        assert _got(rpc, name, client) == _fresh(rpc, name, client)
        compared += 1
    print(f"{compared} replies compared")
    assert compared > STEPS / 2


def test_the_guard_looks_each_time(rpc: Rpc) -> None:
    """Who drops the tables of a database is let through, and nobody after that by what is kept."""
    rpc.create_table(table("t", parameters=ACID))
    for _ in range(3):
        with pytest.raises(MetaError, match="ACID table"):
            rpc.get_table("default", "t")
        rpc.session.listed, rpc.session.last_method = "default", "get_all_tables"
        assert rpc.get_table("default", "t").tableName == "t"
        rpc.session.listed, rpc.session.last_method = None, ""


@pytest.mark.parametrize("name", ["a\0", "\0", "ä", '"', "\\", "NULL", "{}", "a,b", ""])
def test_a_name_that_no_table_has_finds_none(rpc: Rpc, name: str) -> None:
    rpc.create_table(table("a"))
    with pytest.raises(NoSuchObjectError):
        rpc.get_table("default", name)
    with pytest.raises(NoSuchObjectError):
        rpc.get_table(f"default{name}", "a") if name else rpc.get_table("default", "")
