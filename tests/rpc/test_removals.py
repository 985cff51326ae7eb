"""Directories that cannot be removed, as operators see them, on a real server."""

from collections.abc import Callable
from pathlib import Path

import pytest

import hive_acid
from hive_acid.errors import MetaError, NoSuchObjectError
from hive_acid.filesystem import files
from hive_acid.operators import removals
from hive_acid.operators.why import why_table
from metastore.cli import main
from metastore.store.database import Database
from tests.caller import Caller
from tests.catalog.conftest import table
from tests.waiting import until


@pytest.mark.sampled(of="walks of the service")
def test_a_removal_that_fails_is_seen_and_retried_and_given_up(
    metastore: Callable[..., str],
    db: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with db.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO directory_removal (location, only_if_empty, next_at, owner)"
            " VALUES ('data:,abc', false, clock_timestamp(), 'default.poison')"
        )
    monkeypatch.setattr("metastore.catalog.removal.removals.FIRST_PAUSE_S", 2)
    uri = metastore()  # it starts, whatever there is to remove
    with Caller(uri) as ann, hive_acid.connect(uri) as connection:
        ann.call("create_table", table("t"))
        with monkeypatch.context() as broken:
            broken.setattr(files, "remove", _refused)
            ann.call("drop_table", "default", "t", True)
        (left,) = [one for one in removals.waiting(connection) if one.owner == "default.t"]
        assert (left.attempts, left.location) == (1, f"file:{tmp_path}/warehouse/t")
        assert left.error is not None
        assert "the disk is gone" in left.error
        (answer,) = why_table(connection, ("default", "t"))
        assert (answer.code, answer.subject) == ("removal_fails", left.location)
        assert "the disk is gone" in answer.message
        assert f"--forget {left.id}" in answer.action
        ann.call("create_table", table("other"))  # nobody else minds
        until(lambda: [one.owner for one in removals.waiting(connection)] == ["default.poison"])
        assert not (tmp_path / "warehouse" / "t").exists()
        with pytest.raises(NoSuchObjectError):
            why_table(connection, ("default", "t"))
        (poison,) = removals.waiting(connection)
        assert main(["removals", "--uri", uri]) == 0
        assert "data:,abc" in capsys.readouterr().out
        until(lambda: removals.waiting(connection)[0].next_ms is not None)
        assert main(["removals", "--uri", uri, "--forget", str(poison.id)]) == 0
        assert removals.waiting(connection) == []
        with pytest.raises((NoSuchObjectError, MetaError)):
            removals.forget(connection, poison.id)


def _refused(location: str) -> bool:
    raise OSError(f"the disk is gone under {location}")
