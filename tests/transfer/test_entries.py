"""Functions, roles, privileges, constraints and statistics move too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from metastore.store.database import Database
from tests.served import Served
from tests.transfer.world import export, fill_registries, move_in

KINDS = {"function": 1, "role": 1, "role_grant": 1, "privilege": 1, "constraint": 2, "statistics": 2}


@pytest.fixture
def rich(old: Served) -> Any:
    fill_registries(old.uri)
    return old


def test_over_thrift(rich: Any, new: Served) -> None:
    report = move_in(new.db, rich.uri)
    assert report.is_complete, report.text()
    assert {kind: report.counts[kind]["added"] for kind in KINDS} == KINDS
    again = move_in(new.db, rich.uri)
    assert {kind: again.counts[kind] for kind in KINDS} == {kind: {"equal": number} for kind, number in KINDS.items()}
    with new.caller() as caller:
        assert caller.call("get_function", "sales", "mask").resourceUris[0].uri == "file:/x.jar"
        assert caller.call("get_table_column_statistics", "sales", "plain", "id").statsObj[0].colType == "bigint"


def test_through_a_file_exactly(rich: Any, db: Database, tmp_path: Path) -> None:
    first = export(rich.db, tmp_path / "first.json")
    report = move_in(db, tmp_path / "first.json")
    assert report.is_complete, report.text()
    assert {kind: report.counts[kind]["added"] for kind in KINDS} == KINDS
    assert export(db, tmp_path / "second.json") == first


def test_what_differs_is_told_and_replaced_on_demand(rich: Any, new: Served) -> None:
    move_in(new.db, rich.uri)
    with new.caller() as caller:
        function = caller.call("get_function", "sales", "mask")
        function.className = "y.Mask"
        caller.call("alter_function", "sales", "mask", function)
    report = move_in(new.db, rich.uri)
    (finding,) = [one for one in report.findings if one.outcome == "different"]
    assert (finding.kind, finding.name) == ("function", "sales mask")
    assert "class_name: 'y.Mask' here, 'x.Mask' there" in finding.words
    assert move_in(new.db, rich.uri, update=True).is_complete
    with new.caller() as caller:
        assert caller.call("get_function", "sales", "mask").className == "x.Mask"
