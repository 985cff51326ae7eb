"""The catalogue on a fresh database and warehouse, called as the dispatcher calls it."""

import copy
import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_acid.errors import MetastoreError
from hive_acid.wire import service, ttypes
from metastore.catalog.config import CatalogConfig
from metastore.catalog.service import CatalogService
from metastore.observe.calls import CallCounts
from metastore.rpc.call import Call, Session
from metastore.rpc.encoding.codec import Prepared
from metastore.rpc.handlers import session
from metastore.rpc.handlers.catalog import (
    databases,
    functions,
    partition_lists,
    partition_places,
    partitions,
    statistics,
    table_lists,
    tables,
)
from metastore.rpc.limits.workers import Workers
from metastore.store.database import Database
from tests.catalog.acid_world import AcidWorld

ORC = {
    "inputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
    "outputFormat": "org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
}
ACID = {"transactional": "true"}


class Rpc(SimpleNamespace):
    """``rpc.get_table("db", "t")`` calls the handler; an error must be one that the method declares."""

    def __init__(self, catalog: CatalogService) -> None:
        super().__init__()
        settings = {"hive.txn.timeout": "300s", "javax.secret": "s"}
        self.handlers = (
            databases.handlers(catalog)
            | tables.handlers(catalog)
            | table_lists.handlers(catalog)
            | partitions.handlers(catalog)
            | partition_lists.handlers(catalog)
            | partition_places.handlers(catalog.partitions)
            | statistics.handlers(catalog)
            | functions.handlers(catalog.functions)
            | session.handlers(settings, CallCounts(), catalog.uuid, lambda: None)
        )
        self.session = Session(peer="test", user="ann")
        self.workers = Workers(1)
        self.wait = catalog._db.wait
        self.undeclared: list[str] = []

    def __getattr__(self, method: str) -> Callable[..., Any]:
        handler = self.__dict__["handlers"].get(method)
        if handler is None:
            raise AttributeError(method)

        def call(*args: Any) -> Any:
            spec = getattr(service, f"{method}_args").thrift_spec
            filled = [*args, *[None] * (len(spec) - len(args))]
            try:
                found = handler(Call(method, self.session, self.workers), *filled)
                found = self.wait(found) if inspect.iscoroutine(found) else found
                return copy.deepcopy(found.value) if isinstance(found, Prepared) else found  # it is kept
            except MetastoreError as error:
                slots = getattr(service, f"{method}_result").thrift_spec.values()
                declared = {slot[2].__name__ for slot in slots if slot[0] == 12}
                if error.thrift_name not in declared and "MetaException" not in declared:
                    self.undeclared.append(method)
                raise

        return call


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def make_catalog(db: Database, warehouse: Path) -> Callable[..., CatalogService]:
    def make(**config: Any) -> CatalogService:
        catalog = CatalogService(db, str(warehouse), CatalogConfig(**config))
        catalog.start()
        return catalog

    return make


@pytest.fixture
def catalog(make_catalog: Callable[..., CatalogService]) -> CatalogService:
    return make_catalog()


@pytest.fixture
def rpc(catalog: CatalogService) -> Rpc:
    return Rpc(catalog)


@pytest.fixture
def world(db: Database, catalog: CatalogService) -> AcidWorld:
    """Writers, readers and the Cleaner of the catalogue's ACID tables."""
    return AcidWorld(db, catalog)


def column(name: Any, kind: str = "int", comment: str | None = None) -> Any:
    return ttypes.FieldSchema(name=name, type=kind, comment=comment)


def storage(*columns: Any, location: str | None = None, **more: Any) -> Any:
    return ttypes.StorageDescriptor(
        cols=list(columns) or [column("a"), column("b", "string")],
        location=location,
        serdeInfo=ttypes.SerDeInfo(serializationLib="org.apache.hadoop.hive.ql.io.orc.OrcSerde", parameters={}),
        **(ORC | more),
    )


def table(name: Any, database: str = "default", *, keys: tuple[Any, ...] = (), sd: Any = None, **more: Any) -> Any:
    return ttypes.Table(
        tableName=name, dbName=database, sd=sd or storage(), partitionKeys=list(keys), **({"parameters": {}} | more)
    )


def partition(values: list[Any], table: str = "p", database: str = "default", **more: Any) -> Any:
    return ttypes.Partition(values=values, dbName=database, tableName=table, **({"sd": storage()} | more))
