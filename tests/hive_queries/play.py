"""One query file on a metastore of its own: its statements one after the other, and what becomes of each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from hive_acid.errors import HiveAcidError, NoSuchObjectError
from hive_acid.spark import AcidSession
from tests.hive_queries.answers import Answers, lines_of, normal
from tests.hive_queries.texts import changed_by, data_sets_of, is_of_shell, statements_of, words_of

_QUERIES = Path("ql/src/test/queries/clientpositive")
_RESULTS = Path("ql/src/test/results/clientpositive/llap")
_DATA = Path("data/files")
_NAMES = re.compile(r"(acid|insert|update|delete|sqlmerge|merge|mm|dbtxnmgr|materialized_view)[_.].*\.q|sqlmerge.*\.q")
_IS_QUERY = re.compile(r"[(\s]*(select|with|values|table|from(?!.*\binsert\b))\b", re.IGNORECASE | re.DOTALL)
_MISSING = re.compile(r"NOT_FOUND|UNRESOLVED|does not exist|has no (table|partition|column)|there are no files")
_BY_SPARK = re.compile(r"Spark (says|does not understand)|nor Spark understands|, and Spark does not")

ACCEPTED, SHELL, REFUSED, FOLLOWS, OTHER = "accepted", "of the shell", "refused by name", "follows a refusal", "other"
SAME, DIFFERS, UNFIT = "same rows", "other rows", "rows of what was refused, or masked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What has become of a statement: `kind`, `rows` for a query whose rows Hive's results tell, and what was said."""

    file: str
    number: int
    statement: str
    kind: str
    rows: str = ""
    said: str = ""


def query_files(hive: Path) -> list[str]:
    """The names of Hive's query files that are about ACID tables, in its checkout."""
    return sorted(path.name for path in (hive / _QUERIES).iterdir() if _NAMES.fullmatch(path.name))


def played(acid: AcidSession, hive: Path, file: str, scratch: Path) -> Iterator[Outcome]:
    """Play a file. Paths of Hive's test data are those of the checkout, what the file writes is in `scratch`."""
    text = (hive / _QUERIES / file).read_text(errors="replace")
    results = hive / _RESULTS / f"{file}.out"
    answers = Answers(results.read_text(errors="replace") if results.exists() else "")
    lost: set[str] = set()
    for name in data_sets_of(text):
        _make(acid, name, hive / _DATA)
    for number, statement in enumerate(statements_of(text), 1):
        if is_of_shell(statement):
            yield Outcome(file, number, statement, SHELL)
            continue
        answer = answers.to(statement)
        is_hit = bool(lost & words_of(statement))
        try:
            frame = acid.sql(_placed(statement, hive, scratch))
            rows = lines_of(frame.collect())
        except Exception as error:
            lost |= changed_by(statement)
            yield Outcome(file, number, statement, _kind(error, is_hit=is_hit), said=f"{type(error).__name__}: {error}")
            continue
        if is_hit:
            lost |= changed_by(statement)
        compared, told = "", ""
        if answer is not None and frame.columns and _IS_QUERY.match(statement):
            ours, theirs = normal(rows), normal(answer.lines)
            compared = SAME if ours == theirs else UNFIT if is_hit or answer.is_masked else DIFFERS
            told = "" if compared != DIFFERS else f"{_beside(ours, theirs)} and not {_beside(theirs, ours)}"
        yield Outcome(file, number, statement, ACCEPTED, compared, told)


def _beside(lines: list[str], others: list[str]) -> list[str]:
    """The first of the lines that are not among the others."""
    return list((Counter(lines) - Counter(others)).elements())[:3]


def _kind(error: Exception, *, is_hit: bool) -> str:
    said = str(error)
    if is_hit and (isinstance(error, NoSuchObjectError) or _MISSING.search(said)):
        return FOLLOWS
    return REFUSED if isinstance(error, HiveAcidError) and not _BY_SPARK.search(said) else OTHER


def _placed(statement: str, hive: Path, scratch: Path) -> str:
    data = str(hive / _DATA)
    for written, meant in {
        "../../data/files": data,
        "${hiveconf:test.data.dir}": data,
        "${system:hive.root}": str(hive),
        "${system:test.tmp.dir}": str(scratch),
        "${hiveconf:hive.metastore.warehouse.dir}": str(scratch),
        "'ql/test/": f"'{scratch}/ql/test/",
    }.items():
        statement = statement.replace(written, meant)
    return statement


_TABLES = {
    "src": ("key string, value string", "kv1.txt", "\x01", ""),
    "src1": ("key string, value string", "kv3.txt", "\x01", ""),
    "srcpart": ("key string, value string", "kv1.txt", "\x01", "ds string, hr string"),
    "part": (
        "p_partkey int, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, p_container string, "
        "p_retailprice double, p_comment string", "tpch/tiny/part.tbl.bz2", "|", "",
    ),
    "alltypesorc": (
        "ctinyint tinyint, csmallint smallint, cint int, cbigint bigint, cfloat float, cdouble double, "
        "cstring1 string, cstring2 string, ctimestamp1 timestamp, ctimestamp2 timestamp, cboolean1 boolean, "
        "cboolean2 boolean",
        "alltypesorc", "", "",
    ),
}  # fmt: skip
"""What files want to be there: its columns, where its rows are, what is between their values, its keys."""


def _make(acid: AcidSession, name: str, data: Path) -> None:
    columns, place, between, keys = _TABLES[name]
    spark: SparkSession = acid.spark
    reader = spark.read.schema(columns)
    rows = reader.csv(str(data / place), sep=between) if between else reader.orc(str(data / place))
    if keys:
        rows = rows.crossJoin(spark.sql("VALUES ('2008-04-08'), ('2008-04-09') AS (ds)"))
        rows = rows.crossJoin(spark.sql("VALUES ('11'), ('12') AS (hr)"))
    acid.sql(f"CREATE TABLE {name} ({columns})" + (f" PARTITIONED BY ({keys})" if keys else ""))
    acid.insert(f"default.{name}", rows)
