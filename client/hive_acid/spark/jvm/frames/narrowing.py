"""By which rows the joins of a query narrow the partition keys of a table: Spark is asked, about a stand-in.

Spark leaves out partitions of a table while a query runs, by the rows of what it is joined with (dynamic partition
pruning). It knows partition keys as columns of directories, which the scan of ACID files cannot have. A stand-in has
the table's columns, its keys as such columns, and no files. In the plan of a query with it, which is never run, Spark
says by which small query each key would be narrowed: which side a join narrows, and what can be asked before an
aggregation or a window, are its own rules.

Spark runs the small query beside the other one. Here it is run before, so its rows have to be the same both times: what
it reads is a snapshot's, or stands in the plan (`pinned_rows`), and what it makes of that depends on nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from hive_acid.spark.jvm.frames.classic import frame_in_jvm
from hive_acid.spark.jvm.frames.fetched import received, sent
from hive_acid.spark.jvm.frames.planned_rows import planned_size
from hive_acid.spark.jvm.frames.projection import projected
from hive_acid.spark.jvm.frames.scala import elements, frame_of, has_pattern, module, none, nothing, projection
from hive_acid.spark.jvm.job_settings import configured
from hive_acid.spark.jvm.sources import is_of_snapshot

_MOMENT = re.compile(r"\b(?:now|today|tomorrow|yesterday)\b", re.IGNORECASE)
_NAME = "hive_acid.stand_in"
_VALUE = "value"
_EXCLUDED = "spark.sql.optimizer.excludedRules"
_RULES = "org.apache.spark.sql.catalyst.optimizer."
_ON_ROWS_OF_PLANS = (f"{_RULES}ConvertToLocalRelation", f"{_RULES}PropagateEmptyRelation")
"""What Spark makes of rows that stand in a plan. Without it their filters stay, by which it sees that they narrow."""

_ROWS = frozenset({"LocalRelation", "Range", "OneRowRelation"})
_OPERATORS = frozenset({"Project", "Filter", "Join", "Union", "Aggregate"})
"""What is made of the same rows is the same: no LIMIT or sample of rows in no order, no window among equals."""

_WHOLE_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_PRUNING = "DYNAMIC_PRUNING_SUBQUERY"
_OF_THE_MOMENT = "CURRENT_LIKE"
_NOT_REPEATED = ("PYTHON_UDF", "SCALA_UDF", "AGGREGATE_EXPRESSION", _PRUNING)
"""By Spark's names of patterns, what may be another one the next time. A sum depends on the order of rows."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """That a row of the table behind the stand-in `of` counts only if its `key` is a value of a small query."""

    of: str
    place: str
    """Which of the places where the query has the table."""

    key: str
    awaits: frozenset[str]
    """The stand-ins that the query reads: it can be run when their tables are in their places."""

    is_repeatable: bool
    """Whether the query has the same rows whenever it is run, but for those of stand-ins."""

    spark: SparkSession
    query: Any
    value: Any
    """Plan and expression of the JVM."""

    def values(self, *, most: int, most_bytes: int) -> list[object] | None:
        """The values, without null; None if there are more, or the query is larger, as Spark estimates it."""
        spark = self.spark
        if int(str(self.query.stats().sizeInBytes())) > most_bytes:
            return None
        jvm: Any = spark._jvm
        new_id = module(jvm.org.apache.spark.sql.catalyst.expressions, "NamedExpression").newExprId()
        rows = frame_of(spark, projection(spark, self.query, [(self.value, _VALUE, new_id)]))
        kind = rows.schema[_VALUE].dataType
        sent_rows = projected(rows.dropna(), f"{sent(_VALUE, kind)} AS {_VALUE}")
        if planned_size(sent_rows) is None:
            sent_rows = sent_rows.distinct().limit(most + 1)
        found = {str(row[0]): row[0] for row in sent_rows.collect()}
        return None if len(found) > most else [received(value, kind) for value in found.values()]


def stand_in(spark: SparkSession, name: str, columns: t.StructType, keys: Collection[str]) -> DataFrame:
    """A classic frame without rows that has the columns of a table, of which `keys` are those of its partitions."""
    jvm: Any = spark._jvm
    session: Any = vars(spark)["_jsparkSession"]
    sources = jvm.org.apache.spark.sql.execution.datasources
    options = jvm.PythonUtils.toScalaMap({_NAME: name})
    no_files = sources.InMemoryFileIndex(
        session, nothing(spark), options, none(spark), module(sources, "NoopCache"), none(spark), none(spark)
    )
    of_keys, of_files = (
        jvm.org.apache.spark.sql.types.DataType.fromJson(
            t.StructType([field for field in columns if (field.name in keys) is are_keys]).json()
        )
        for are_keys in (True, False)
    )
    form = sources.orc.OrcFileFormat()
    relation = sources.HadoopFsRelation(no_files, of_keys, of_files, none(spark), form, options, session)
    return DataFrame(session.baseRelationToDataFrame(relation), spark)


def names_moment(text: str) -> bool:
    """Whether SQL, or what Python shows of a Column, may have a text such as 'now', a time that goes on."""
    return _MOMENT.search(text) is not None


def narrowings(frame: DataFrame, stand_ins: Collection[str]) -> list[Narrowing]:
    """What narrows the tables behind those `stand_ins` that a classic frame narrows wherever it reads them."""
    spark, of_jvm = frame.sparkSession, frame_in_jvm(frame)
    has = partial(has_pattern, spark)
    if has(of_jvm.queryExecution().analyzed(), _OF_THE_MOMENT):
        return []
    excluded = spark.conf.get(_EXCLUDED, None)
    with configured(spark, {_EXCLUDED: ",".join((*([excluded] if excluded else []), *_ON_ROWS_OF_PLANS))}):
        plan = of_jvm.queryExecution().optimizedPlan()
    if not has(plan, _PRUNING):
        return []
    found = list(_pruned(plan, partial(_has_pruning, spark)))
    read = Counter(_stand_in_of(leaf) for leaf in _leaves(plan))
    read -= Counter(_stand_in_of(leaf) for _, _, _, pruning in found for leaf in _leaves(pruning.buildQuery()))
    places = Counter(name for name, _ in {(name, place) for name, place, _, _ in found})
    made = []
    for of, place, key, pruning in found:
        if of in stand_ins and read[of] == places[of] and _is_simple(pruning):
            query, at = pruning.buildQuery(), pruning.broadcastKeyIndices().apply(0)
            leaves = _leaves(query)
            awaits = frozenset(name for leaf in leaves if (name := _stand_in_of(leaf)) is not None)
            is_repeatable = (
                bool(query.deterministic())
                and not has(query, *_NOT_REPEATED)
                and all(_is_lasting(leaf) or _stand_in_of(leaf) is not None for leaf in leaves)
                and all(map(_is_plain, (query, *elements(query.subqueriesAll()))))
            )
            value = pruning.buildKeys().apply(at)
            made.append(Narrowing(of, place, key, awaits, is_repeatable, spark, query, value))
    return made


def _has_pruning(spark: SparkSession, plan: Any) -> bool:
    return has_pattern(spark, plan, _PRUNING)


def _pruned(plan: Any, has_pruning: Callable[[Any], bool], place: str = "") -> Iterator[tuple[str, str, str, Any]]:
    """The stand-ins right below filters by which Spark would leave out partitions, where, the key, and by what."""
    if not has_pruning(plan):
        return
    children = elements(plan.children())
    if plan.nodeName() == "Filter" and (name := _stand_in_of(children[0])) is not None:
        for condition in _conjuncts(plan.condition()):
            if condition.nodeName() == "DynamicPruningSubquery":
                key = _key(condition.pruningKey())
                if key is not None:
                    yield name, place, key, condition
    for number, child in enumerate(children, 1):
        yield from _pruned(child, has_pruning, f"{place}{number}.")


def _is_simple(pruning: Any) -> bool:
    """Whether values of one column are asked; not so since 4.3 where they are computed of those of a broadcast."""
    is_computed = pruning.productArity() > 7 and pruning.productElement(7).isDefined()
    return pruning.broadcastKeyIndices().size() == 1 and not is_computed


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.nodeName() == "And":
        yield from _conjuncts(condition.left())
        yield from _conjuncts(condition.right())
    else:
        yield condition


def _key(asked: Any) -> str | None:
    """The key whose very values are asked: itself, or a whole number that is as much in a wider type."""
    if asked.nodeName() == "Cast" and asked.dataType().simpleString() in _WHOLE_NUMBERS:
        inner = asked.child()
        is_wider = inner.dataType().simpleString() in _WHOLE_NUMBERS
        return _key(inner) if is_wider and inner.dataType().defaultSize() < asked.dataType().defaultSize() else None
    return str(asked.name()) if asked.nodeName() == "AttributeReference" else None


def _leaves(plan: Any) -> list[Any]:
    """All that a plan reads, in its subqueries as well."""
    return [leaf for part in (plan, *elements(plan.subqueriesAll())) for leaf in elements(part.collectLeaves())]


def _files(leaf: Any) -> Any:
    """The relation of files that a leaf reads; None for others."""
    relation = leaf.relation() if leaf.nodeName() == "LogicalRelation" else None
    return relation if relation is not None and relation.getClass().getSimpleName() == "HadoopFsRelation" else None


def _stand_in_of(leaf: Any) -> str | None:
    files = _files(leaf)
    found = None if files is None else files.options().get(_NAME)
    return str(found.get()) if found is not None and found.isDefined() else None


def _is_lasting(leaf: Any) -> bool:
    """Whether a leaf has the same rows whenever it is read."""
    files = _files(leaf)
    return leaf.nodeName() in _ROWS if files is None else is_of_snapshot(files)


def _is_plain(plan: Any) -> bool:
    children = elements(plan.children())
    return not children or ((plan.nodeName() in _OPERATORS or _is_of_all(plan)) and all(map(_is_plain, children)))


def _is_of_all(plan: Any) -> bool:
    """Whether a node is a sample of all rows, as tables of many columns have one."""
    return (
        plan.nodeName() == "Sample" and (plan.lowerBound(), plan.upperBound()) == (0, 1) and not plan.withReplacement()
    )
