"""Files without rows, read by an ORC library."""

from pathlib import Path

import pytest
from pyarrow import orc

from hive_acid.errors import FormatError
from hive_acid.format.orc.file import ACID_FIELDS, empty_acid_file, empty_file

COLUMNS = [
    ("a", "int"),
    ("b", "STRING"),
    ("c", "decimal(12, 3)"),
    ("d", "varchar(5)"),
    ("e", "map<string,array<struct<x:int,y:timestamp>>>"),
    ("a name, with: signs", "boolean"),
    ("g", "decimal"),
    ("h", "char(2)"),
    *((kind, kind) for kind in ("tinyint", "smallint", "bigint", "float", "double", "binary", "date", "timestamp")),
]


def test_an_orc_library_reads_them(tmp_path: Path) -> None:
    (tmp_path / "acid").write_bytes(empty_acid_file(COLUMNS))
    (tmp_path / "plain").write_bytes(empty_file(COLUMNS))
    acid, plain = orc.ORCFile(tmp_path / "acid"), orc.ORCFile(tmp_path / "plain")
    assert (acid.nrows, plain.nrows) == (0, 0)
    assert acid.schema.names == [*(name for name, _ in ACID_FIELDS), "row"]
    assert plain.schema.names == [name for name, _ in COLUMNS]
    assert [str(field.type) for field in acid.schema.field("row").type] == [str(kind) for kind in plain.schema.types]
    assert str(plain.schema.field("c").type) == "decimal128(12, 3)"
    assert "struct<x: int32, y: timestamp[ns]>" in str(plain.schema.field("e").type)
    assert acid.schema.metadata[b"hive.acid.version"] == b"2"
    assert acid.read().num_rows == 0


@pytest.mark.parametrize("kind", ["", "foo", "map<int", "decimal(x)", "int>", "struct<int>", "array<>int"])
def test_what_is_no_type(kind: str) -> None:
    with pytest.raises(FormatError, match="is not a type"):
        empty_file([("a", kind)])
