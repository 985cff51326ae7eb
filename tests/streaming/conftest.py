"""A stream's world without Spark: a metastore of each test's own, an empty database ``d``, rows read with pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.format.rows import RowEvent
from hive_acid.streaming import DelimitedWriter, RecordWriter, StreamingConnection

pytest.register_assert_rewrite("tests.spark.checker")

from tests.spark.checker import check_snapshot, check_table, location_of  # noqa: E402


@dataclass(frozen=True)
class House:
    """One table ``d.t`` and what one asks of it; `connection` is what the checker calls."""

    uri: str
    connection: Connection

    def create(self, columns: Mapping[str, str], keys: Mapping[str, str] | None = None, **more: Any) -> None:
        properties = more.pop("parameters", {})
        self.connection.create_table(
            Table(
                database="d",
                name="t",
                columns=tuple(Column(name, kind) for name, kind in columns.items()),
                partition_keys=tuple(Column(name, kind) for name, kind in (keys or {}).items()),
                parameters={"transactional": "true", **properties},
                **more,
            )
        )

    def stream(self, writer: RecordWriter | None = None, **options: Any) -> StreamingConnection:
        return StreamingConnection(self.uri, "d.t", writer or DelimitedWriter(","), **options)

    def files(self) -> dict[str, dict[str, list[RowEvent]]]:
        """All files, checked: directory to file name to events."""
        return check_table(self.location)

    def rows(self) -> list[tuple[Any, ...]]:
        """The rows that a snapshot of now sees, by the independent reader, with the partition behind them."""
        self.files()
        found = check_snapshot(self, "d.t")
        return sorted(
            ((*event.row, *([partition] if partition else [])) for partition in found for event in found[partition]),
            key=str,
        )

    @property
    def location(self) -> Path:
        return location_of(self, "d.t")

    @property
    def parameters(self) -> dict[str, str]:
        return self.connection.table("d", "t").parameters


@pytest.fixture
def house(metastore: Callable[..., str]) -> Iterator[House]:
    uri = metastore()
    with connect(uri) as connection:
        connection.create_database("d")
        yield House(uri, connection)


@pytest.fixture
def simple(house: House) -> House:
    house.create({"id": "int", "name": "string"})
    return house
