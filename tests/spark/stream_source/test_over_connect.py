"""Over Spark Connect a table is not read as a stream, and that is said before a query begins."""

from __future__ import annotations

import pytest

from hive_acid.errors import UnsupportedTableError
from hive_acid.spark import AcidSession
from tests.spark.conftest import OVER_CONNECT

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not OVER_CONNECT, reason="a classic session reads streams: test_stream.py"),
]


def test_it_is_refused(acid: AcidSession) -> None:
    acid.sql("CREATE TABLE d.t (id int)")
    with pytest.raises(UnsupportedTableError, match="use a classic session"):
        acid.read_stream("d.t")
