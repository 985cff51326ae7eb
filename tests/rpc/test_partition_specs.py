"""Long lists of partition specs over Thrift: sent while they are read, a spec for each thousand partitions."""

from __future__ import annotations

from pathlib import Path

from hive_acid.wire import ttypes
from tests.catalog.conftest import column, partition, storage, table
from tests.served import served

KEYS = (column("d"), column("hr", "int"))


GROUPED = {"partition.spec.grouping.enabled": "true"}


def test_long_lists_of_specs_come_in_runs(postgres_url: str, template: str, tmp_path: Path) -> None:
    odd = partition(["n1100", "1"], sd=storage(location=str(tmp_path / "elsewhere")))
    some = [partition([f"n{number:04}", "1"]) for number in range(2200) if number != 1100]
    request = ttypes.GetPartitionsRequest(
        dbName="default",
        tblName="p",
        projectionSpec=ttypes.GetProjectionsSpec(),
        filterSpec=ttypes.GetPartitionsFilterSpec(),
    )
    with served(postgres_url, template, tmp_path / "warehouse") as running, running.caller() as ann:
        ann.call("create_table", table("p", keys=tuple(KEYS), parameters=GROUPED))
        ann.call("add_partitions", [*some, odd])
        for specs in (
            ann.call("get_partitions_pspec", "default", "p", -1),
            ann.call("get_part_specs_by_filter", "default", "p", "hr < 100", -1),
            ann.call("get_partitions_with_specs", request).partitionSpec,
        ):
            assert {(spec.dbName, spec.tableName) for spec in specs} == {("default", "p")}
            assert [spec.sharedSDPartitionSpec is None for spec in specs] == [False, True, False]
            runs = [(spec.sharedSDPartitionSpec or spec.partitionList).partitions for spec in specs]
            assert [len(run) for run in runs] == [1000, 1000, 200]
            assert [found.values for run in runs for found in run] == [[f"n{n:04}", "1"] for n in range(2200)]
            (elsewhere,) = [found for found in runs[1] if found.values == odd.values]
            assert elsewhere.sd.location.endswith("/elsewhere")
            assert runs[2][0].relativePath == "/d=n2000/hr=1"
        limited = ann.call("get_partitions_pspec", "default", "p", 500)
        assert [len(spec.sharedSDPartitionSpec.partitions) for spec in limited] == [500]
