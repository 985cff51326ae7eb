"""Into a file and back."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import pytest

from hive_acid.errors import FormatError
from metastore.store.database import Database
from metastore.transfer import file_format
from metastore.transfer.importing import ABORTED
from metastore.transfer.models import TransferError
from tests.served import Served
from tests.transfer.world import definitions, export, move_in, snapshots, write

TABLES = ("sales.items", "sales.orders")


def test_a_round_trip_is_exact(old: Served, db: Database, tmp_path: Path) -> None:
    first = export(old.db, tmp_path / "first.json")
    assert move_in(db, tmp_path / "first.json").is_complete
    assert export(db, tmp_path / "second.json") == first


def test_compressed_exports_are_equal_bytes_too(old: Served, db: Database, tmp_path: Path) -> None:
    first = export(old.db, tmp_path / "first.json.gz")
    assert gzip.decompress(first) == export(old.db, tmp_path / "plain.json")
    move_in(db, tmp_path / "first.json.gz")
    assert export(db, tmp_path / "second.json.gz") == first


def test_on_another_server(old: Served, new: Served, tmp_path: Path) -> None:
    export(old.db, tmp_path / "all.json")
    assert move_in(new.db, tmp_path / "all.json").is_complete
    assert definitions(new.uri, *TABLES) == definitions(old.uri, *TABLES)
    assert snapshots(new.uri, *TABLES) == snapshots(old.uri, *TABLES)


def test_aborted_writes_keep_their_partitions_and_transactions(old: Served, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in export(old.db, tmp_path / "all.json").splitlines()]
    writes = [line for line in lines if line["kind"] == "writes"]
    assert [(one["high_water_mark"], one["aborted"]) for one in writes] == [
        (2, [[2, 7, "day=2024-01-01/country=de", "i"]]),
        (5, [[2, 2, "", "i"], [5, 5, "", "i"]]),
    ]


def test_partitions_say_only_what_is_their_own(old: Served, new: Served, tmp_path: Path) -> None:
    move_in(new.db, old.uri)
    lines = [json.loads(line) for line in export(new.db, tmp_path / "all.json").splitlines()]
    partition = next(line["value"] for line in lines if line["kind"] == "partition")
    assert "columns" not in partition
    assert "storage" not in partition
    assert partition["name"] == "day=2024-01-01/country=de"


def test_an_open_transaction_is_refused_or_counts_as_aborted(old: Served, db: Database, tmp_path: Path) -> None:
    with old.caller() as caller:
        caller.write(caller.begin(), "sales/orders", "i")
        with pytest.raises(TransferError, match="transactions are open"):
            export(old.db, tmp_path / "all.json")
        assert not list(tmp_path.glob("all*"))
        export(old.db, tmp_path / "all.json", ABORTED)
    move_in(db, tmp_path / "all.json")
    lines = [json.loads(line) for line in export(db, tmp_path / "again.json").splitlines()]
    assert [line["aborted"] for line in lines if line["kind"] == "writes"][1] == [
        [2, 2, "", "i"],
        [5, 5, "", "i"],
        [6, 8, "", "i"],
    ]


def test_a_file_that_was_cut_off_is_found_out(old: Served, db: Database, tmp_path: Path) -> None:
    whole = export(old.db, tmp_path / "all.json")
    (tmp_path / "cut.json").write_bytes(whole[: whole.rindex(b"\n", 0, -1) + 1])
    with pytest.raises(FormatError, match="cut off"):
        list(file_format.read(tmp_path / "cut.json"))
    (tmp_path / "damaged.json").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FormatError, match="damaged in line"):
        move_in(db, tmp_path / "damaged.json")


def test_a_damaged_or_edited_file_is_told_with_its_line(old: Served, new: Served, tmp_path: Path) -> None:
    """Whatever one line of it has lost or become."""
    whole = export(old.db, tmp_path / "all.json").decode().splitlines()
    kinds = {json.loads(line)["kind"]: number for number, line in enumerate(whole)}
    for kind, number in kinds.items():
        line = json.loads(whole[number])
        worse: list[object] = [{**line, "kind": "nosuch"}, {**line, "kind": [1]}, {"kind": kind}, [1], 5, None]
        if isinstance(line.get("value"), dict):
            values: list[object] = [{}, {**line["value"], "nosuch": 1}, [], None, "x"]
            worse += [{**line, "value": value} for value in values]
        for one in worse:
            (tmp_path / "bad.json").write_text(
                "\n".join([*whole[:number], json.dumps(one), *whole[number + 1 :]]) + "\n"
            )
            with pytest.raises(
                FormatError,
                match=rf"bad.json (is not an export of hive-acid$|.*(line {number + 1}\b|its last line is missing))",
            ):
                move_in(new.db, tmp_path / "bad.json")


def test_damaged_bytes_of_a_compressed_file(old: Served, new: Served, tmp_path: Path) -> None:
    whole = export(old.db, tmp_path / "all.json.gz")
    for number in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[number] ^= 0xFF
        (tmp_path / "bad.json.gz").write_bytes(damaged)
        try:
            for _ in file_format.read(tmp_path / "bad.json.gz"):
                pass
        except FormatError as error:
            assert "bad.json.gz" in str(error)  # noqa: PT017 - some bytes of the head mean nothing


def test_what_is_no_file_is_not_replaced(old: Served, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FormatError, match="pipe is there and is no file"):
        export(old.db, tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "all.json")
    assert export(old.db, tmp_path / "link") == (tmp_path / "elsewhere" / "all.json").read_bytes()
    assert (tmp_path / "link").is_symlink()


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text('{"format": "hive-acid export", "kind": "header", "version": 2}\n')
    with pytest.raises(FormatError, match="version 2, this hive-acid reads 1"):
        list(file_format.read(tmp_path / "x"))


def test_what_came_by_thrift_leaves_as_what_was_there(old: Served, new: Served, tmp_path: Path) -> None:
    """Nothing is lost on the way over Thrift but whose aborted writes they were and where."""
    move_in(new.db, old.uri)
    with new.caller() as caller:
        write(caller, "sales.orders")
    lines = [json.loads(line) for line in export(new.db, tmp_path / "all.json").splitlines()]
    assert [one["high_water_mark"] for one in lines if one["kind"] == "writes"] == [2, 6]
