"""Insert-only tables of every format, from a client's request to the Cleaner's end: real server, worker and Spark.

Rows are read by the rules of `hive_acid.format` and by pyarrow, so that nothing of the product's reader is believed.
"""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet
import pytest

from hive_acid.catalog.table import Column, Table
from hive_acid.connection import Connection, connect
from hive_acid.filesystem import files
from hive_acid.format import avro_file
from hive_acid.format.state import directory_state
from hive_acid.operators.compactions import wait
from hive_acid.transactions.states import TransactionKind
from hive_acid.transactions.transaction import Transaction
from hive_acid.wire import ttypes
from tests.client.test_joining import avro, longs
from tests.sampling import Sample
from tests.spark.read.test_insert_only import FORMATS, INSERT_ONLY
from tests.waiting import until

SETTINGS = {
    "metastore.compactor.initiator.on": "false",
    "hive.compactor.worker.sleep.time": "100ms",
    "hive.compactor.cleaner.run.interval": "200ms",
}
WITHIN_MS = 120_000
TIMES = {"id": "int", "at": "timestamp", "day": "date", "name": "string"}
SCHEMA = pa.schema([("id", pa.int32()), ("at", pa.timestamp("ns")), ("day", pa.date32()), ("name", pa.string())])


def times(first: int, number: int, day: dt.date = dt.date(1500, 2, 27)) -> pa.Table:
    """Days before the calendar's change, and moments that a zone's clocks leave out."""
    start = dt.datetime(2024, 3, 31, 1, 30)
    return pa.table(
        {
            "id": range(first, first + number),
            "at": [start + dt.timedelta(minutes=17 * n) for n in range(number)],
            "day": [day + dt.timedelta(days=n) for n in range(number)],
            "name": [None if n % 5 == 0 else f"n{n}" for n in range(number)],
        },
        SCHEMA,
    )


def write_orc(path: Path, first: int, number: int) -> None:
    """Old days not, as pyarrow does not look which calendar a file says that it has."""
    pyarrow.orc.write_table(times(first, number, dt.date(1900, 2, 27)), path)


def write_parquet(path: Path, first: int, number: int) -> None:
    pyarrow.parquet.write_table(times(first, number), path, use_deprecated_int96_timestamps=True)


def write_plain_parquet(path: Path, first: int, number: int) -> None:
    pyarrow.parquet.write_table(times(first, number).select(["id", "name"]), path)


def write_avro(path: Path, first: int, number: int) -> None:
    avro(path, [list(range(first, first + number))], bytes([first % 256]) * avro_file.MARKER_BYTES)


def write_text(path: Path, first: int, number: int) -> None:
    """Lists in a line; and lines that are no rows of the table, as a text file may have them."""
    path.write_text("".join(f"{n}\x011\x022\x023\n" for n in range(first, first + number)) + "\nno row\x01\x01\n")


def of_table(found: pa.Table) -> list[Any]:
    return [tuple(row.values()) for row in found.to_pylist()]


@dataclass(frozen=True)
class Form:
    """A format: the columns of its table, and how its files are written and read."""

    stored_as: str
    columns: Mapping[str, str]
    write: Callable[[Path, int, int], None]
    read: Callable[[Path], list[Any]]


def read_orc(path: Path) -> list[Any]:
    return of_table(pyarrow.orc.read_table(path))


def read_parquet(path: Path) -> list[Any]:
    return of_table(pyarrow.parquet.read_table(io.BytesIO(path.read_bytes())))


FORMS = {
    "orc": Form("orc", TIMES, write_orc, read_orc),
    "parquet_with_times": Form("parquet", TIMES, write_parquet, read_parquet),
    "parquet": Form("parquet", {"id": "int", "name": "string"}, write_plain_parquet, read_parquet),
    "avro": Form("avro", {"id": "bigint"}, write_avro, lambda path: [n for block in longs(path)[1] for n in block]),
    "text": Form("text", {"id": "int", "tags": "array<int>"}, write_text, lambda path: path.read_text().splitlines()),
}


class Scene:
    """A table with its writers and readers."""

    def __init__(self, connection: Connection, name: str, form: Form) -> None:
        self._connection, self.name, self._form = connection, name, form
        input_format, serde = FORMATS[form.stored_as]
        columns = tuple(Column(*pair) for pair in form.columns.items())
        table = Table("d", name, columns, (), INSERT_ONLY, input_format=input_format).to_wire("me")
        table.sd.serdeInfo = ttypes.SerDeInfo(serializationLib=serde, parameters={})
        connection.call("create_table", table)
        self.location = Path(connection.table("d", name).location.removeprefix("file:"))

    def write(self, first: int, number: int, *, aborts: bool = False) -> None:
        with_id = self._connection.begin()
        write_id = with_id.write_id("d", self.name)
        directory = self.location / f"delta_{write_id:07}_{write_id:07}_0000"
        directory.mkdir(parents=True)
        self._form.write(directory / "000000_0", first, number)
        if aborts:
            with_id.abort()
        else:
            with_id.commit()

    def reader(self) -> Reader:
        return Reader(self, self._connection.begin(TransactionKind.READ))

    def rows(self, transaction: Transaction) -> list[Any]:
        state = directory_state(
            files.list_tree(str(self.location)),
            transaction.write_ids("d", self.name),
            transaction.snapshot,
            lambda path: (self.location / path).read_bytes(),
        )
        return sorted(
            (row for of in state.data for file in of.files for row in self._form.read(self.location / file.path)),
            key=str,
        )

    def directories(self) -> list[str]:
        return sorted(path.name for path in self.location.iterdir())


class Reader:
    """A snapshot that is held."""

    def __init__(self, scene: Scene, transaction: Transaction) -> None:
        self._scene, self._transaction = scene, transaction
        self.rows = scene.rows(transaction)

    def check(self) -> None:
        assert self._scene.rows(self._transaction) == self.rows

    def end(self) -> None:
        self.check()
        self._transaction.commit()


@pytest.mark.spark
@pytest.mark.slow
def test_minor_and_major(metastore: Callable[..., str], sample: Sample) -> None:
    with connect(metastore(**SETTINGS)) as connection:
        connection.create_database("d")
        of_day = sample.of(FORMS, turns=2)
        scenes = [Scene(connection, name, form) for name, form in FORMS.items() if name in of_day]
        for scene in scenes:
            scene.write(0, 30)
            scene.write(100, 30)
        before = [scene.reader() for scene in scenes]
        for scene in scenes:
            scene.write(900, 30, aborts=True)
            scene.write(200, 1)
        for kind, left in (("minor", "delta_0000001_0000004_v"), ("major", "base_0000005_v")):
            late = [scene.reader() for scene in scenes]
            wait(connection, [one for scene in scenes for one in connection.compact("d", scene.name, kind)], WITHIN_MS)
            new = [scene.reader() for scene in scenes]
            assert [reader.rows for reader in new] == [reader.rows for reader in late]
            for reader in (*before, *late, *new):
                reader.end()
            for scene in scenes:
                (found,) = clean(scene)
                assert found.startswith(left), (scene.name, found)
                (file,) = (path.name for path in (scene.location / found).iterdir() if path.name[0] not in "._")
                assert file == "000000_0"
                scene.write(300, 10)
            before = [scene.reader() for scene in scenes]
            assert {len(reader.rows) - len(old.rows) for reader, old in zip(before, new, strict=True)} <= {10, 12}


def clean(scene: Scene) -> list[str]:
    """What the Cleaner leaves when nobody reads any more."""
    until(lambda: len(scene.directories()) <= 1, told=scene.directories)
    return scene.directories()
