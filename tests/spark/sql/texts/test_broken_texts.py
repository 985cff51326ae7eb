"""Statements that work, each with one word cut, lost, doubled, moved or replaced: what comes of it is an answer, or a
readable error: a sentence of ours, or Spark's with its place. Nothing of Java or Python comes through.
"""

import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, NumberFormatException, ParseException
from pyspark.sql import DataFrame, SparkSession

import hive_acid.spark
from hive_acid.errors import HiveAcidError
from hive_acid.spark import AcidSession
from hive_acid.spark.sql.tokens import tokens_of
from tests.spark.sql.test_statements import WORKS

ALSO = """
CREATE TABLE IF NOT EXISTS made (id int NOT NULL, v string DEFAULT 'x', CHECK (id > 0)) PARTITIONED BY (k int)
CREATE TABLE made CLUSTERED BY (id) INTO 2 BUCKETS TBLPROPERTIES ('a' = 'b') AS SELECT * FROM t
CREATE EXTERNAL TABLE made (a int) ROW FORMAT DELIMITED FIELDS TERMINATED BY ',' STORED AS TEXTFILE LOCATION '{tmp}/x'
CREATE TABLE made (a int, b string) SKEWED BY (a, b) ON ((1, 'x'), (2, 'y'))
CREATE OR REPLACE TABLE s AS SELECT id, name, p FROM t
CREATE TABLE made LIKE pt STORED AS ORC
DROP TABLE IF EXISTS made PURGE
CREATE OR REPLACE VIEW seen (a COMMENT 'x', b) COMMENT 'c' TBLPROPERTIES ('k' = 'v') AS SELECT id, name FROM t
ALTER VIEW seen AS SELECT p AS a FROM t
DROP VIEW IF EXISTS seen
ALTER TABLE t ADD COLUMNS (more int COMMENT 'c', others array<struct<a: int, b: map<string, int>>>)
ALTER TABLE t ADD CONSTRAINT c_{n} CHECK (id > 0) DISABLE NOVALIDATE
ALTER TABLE t DROP CONSTRAINT IF EXISTS c_1
ALTER TABLE t CHANGE COLUMN name name string COMMENT 'text'
ALTER TABLE t ALTER COLUMN p SET DEFAULT 'x'
ALTER TABLE pt DROP IF EXISTS PARTITION (hr > 3, ds = 'x'), PARTITION (hr = 1)
ALTER TABLE pt PARTITION (hr = 1, ds = 'x') RENAME TO PARTITION (hr = 2, ds = 'y')
ALTER TABLE pt PARTITION (hr = 11, ds = 'd') COMPACT 'major'
ALTER DATABASE d SET DBPROPERTIES ('a' = 'b')
MERGE INTO t USING s ON t.id = s.id WHEN MATCHED AND s.p = 'x' THEN UPDATE SET p = s.p WHEN NOT MATCHED THEN INSERT *
WITH q AS (SELECT 1 AS id) UPDATE t SET name = 'w', p = upper(name) FROM q WHERE t.id = q.id
INSERT INTO t REPLACE ON t.id = s.id (SELECT * FROM s) AS s
INSERT INTO t (id, p) VALUES (1, DEFAULT), (2, 'b')
INSERT WITH SCHEMA EVOLUTION INTO t BY NAME SELECT 5 AS id, 'n' AS name, 'p' AS p, 1 AS extra
FROM t INSERT INTO s SELECT id, name, p INSERT INTO pt PARTITION (hr = 5, ds = 'm') SELECT id, name WHERE id > 1
LOAD DATA LOCAL INPATH '{tmp}/nothere' OVERWRITE INTO TABLE pt PARTITION (hr = 1, ds = 'x')
EXPORT TABLE pt PARTITION (hr = 11) TO '{tmp}/exported'
IMPORT TABLE imported FROM '{tmp}/exported' LOCATION '{tmp}/imported'
DESCRIBE HISTORY t LIMIT 3
DESCRIBE FORMATTED t name
SHOW PARTITIONS pt PARTITION (hr = 11)
SHOW TBLPROPERTIES t ('a')
SHOW CREATE TABLE t
SHOW COMPACTIONS t ORDER BY starttime DESC LIMIT 5
SHOW TRANSACTIONS WHERE state = 'open'
ABORT TRANSACTIONS 1 2
SELECT t.id, count(*) FROM t JOIN s USING (id) WHERE t.p IN (SELECT p FROM s) GROUP BY t.id ORDER BY 1
SELECT row__id, t.* FROM t WHERE id = 1 AND name LIKE 'a%' AND CASE WHEN id > 1 THEN true ELSE false END
"""
"""More that is broken; some of it is refused as it stands."""

OURS = re.compile(r"(INSERT INTO|UPDATE|MERGE INTO|DELETE FROM|ALTER TABLE|CREATE VIEW) (t|s|pt|made|seen) ")
"""How statements begin that are never Spark's."""

MOST = int(os.environ.get("HIVE_ACID_TEST_BROKEN_TEXTS", "150"))
"""So many texts for each seed."""

WORDS = [
    ",",
    "(",
    ")",
    ";",
    ".",
    "=",
    "NULL",
    "1",
    "nothere",
    "SELECT",
    "FROM",
    "`a b`",
    "''",
    "-1",
    "*",
    "TABLE",
    "ı",
    "?",
]


def broken(text: str, chance: random.Random) -> str:
    """A text with one word that is not as it was."""
    words = [text[token.start : token.end] for token in tokens_of(text)]
    at = chance.randrange(len(words))
    match chance.choice(["cut", "delete", "double", "swap", "replace", "replace"]):
        case "cut":
            words = words[: at + 1]
        case "delete":
            del words[at]
        case "double":
            words.insert(at, words[at])
        case "swap":
            other = chance.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        case "replace":
            words[at] = chance.choice([*WORDS, *words])
    if chance.random() < 0.2:
        words.append(chance.choice([",", ";", ")", "1", "x"]))
    return " ".join(words)


@pytest.mark.parametrize("seed", range(2))
def test_a_broken_text_is_refused_by_a_sentence(tables: AcidSession, tmp_path: Path, seed: int) -> None:
    assert leaking(tables.sql, tmp_path, seed) == []


def test_so_it_is_in_an_enabled_session(tables: AcidSession, spark: SparkSession, tmp_path: Path) -> None:
    with hive_acid.spark.enable(spark, tables.connection.uri):
        spark.sql("USE d")
        try:
            assert leaking(spark.sql, tmp_path, 7) == []
        finally:
            spark.sql("USE default")


def leaking(sql: Callable[[str], DataFrame], tmp_path: Path, seed: int) -> list[Any]:
    """Texts, and what came of them that should not."""
    chance = random.Random(seed)
    statements = [line for line in (WORKS + ALSO).replace("{tmp}", str(tmp_path)).splitlines() if line]
    statements = [line.replace("{n}", str(seed)) for line in statements]
    leaks: list[Any] = []
    for _ in range(MOST):
        text = broken(chance.choice(statements), chance)
        try:
            sql(text).collect()
        except HiveAcidError as error:
            if not str(error).strip() or "\n\tat " in str(error):
                leaks.append((text, "without words", str(error)[:300]))
        except ParseException as error:
            if not re.search(r"line \d+, pos", str(error)) or OURS.match(text):
                leaks.append((text, type(error).__name__, str(error)[:200]))
        except (AnalysisException, NumberFormatException) as error:  # the latter of a value, as '' > 1
            if error.getCondition() is None:
                leaks.append((text, type(error).__name__, str(error)[:200]))
        except Exception as error:
            leaks.append((text, type(error).__name__, str(error)[:200]))
    return leaks
