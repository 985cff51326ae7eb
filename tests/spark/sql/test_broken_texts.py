"""Statements that work, each with one word cut, lost, doubled, moved or replaced: what comes of it is an answer, or a
readable error: a sentence of ours, or Spark's with its place. Nothing of Java or Python comes through.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, ParseException, PySparkException
from pyspark.sql import SparkSession

from hive_acid.errors import HiveAcidError
from hive_acid.spark import AcidSession
from hive_acid.spark.sql.tokens import tokens_of
from tests.spark.sql.test_statements import WORKS

MOST = int(os.environ.get("HIVE_ACID_TEST_BROKEN_TEXTS", "150"))
"""So many texts for each seed."""

WORDS = [",", "(", ")", ";", ".", "=", "NULL", "1", "nothere", "SELECT", "FROM", "`a b`", "''", "-1", "*", "TABLE", "ı", "?"]


@pytest.fixture
def tables(acid: AcidSession) -> Iterator[AcidSession]:
    acid.sql_script(
        """USE d;
        CREATE TABLE t (id int, name string, p string);
        CREATE TABLE s (id int, name string, p string);
        CREATE TABLE pt (id int, v string) PARTITIONED BY (hr int, ds string);
        INSERT INTO t VALUES (1, 'a', 'x'), (2, 'b', 'y');
        INSERT INTO s VALUES (2, 'c', 'y'), (3, 'd', 'z');
        INSERT INTO pt PARTITION (hr = 11, ds = 'd') VALUES (1, 'a')"""
    )
    yield acid
    acid.sql("USE default")


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
def test_a_broken_text_is_refused_by_a_sentence(
    tables: AcidSession, spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    statements = [line for line in WORKS.replace("{tmp}", str(tmp_path)).splitlines() if line]
    leaks = []
    for _ in range(MOST):
        text = broken(chance.choice(statements), chance)
        try:
            tables.sql(text).collect()
        except HiveAcidError as error:
            if not str(error).strip() or "\n\tat " in str(error):
                leaks.append((text, "without words", str(error)[:300]))
        except (ParseException, AnalysisException) as error:
            said = str(error)
            if "line " not in said and "pos " not in said:
                leaks.append((text, type(error).__name__, said[:200]))
        except PySparkException as error:
            leaks.append((text, type(error).__name__, str(error)[:200]))
        except Exception as error:
            leaks.append((text, type(error).__name__, str(error)[:200]))
    assert leaks == []
