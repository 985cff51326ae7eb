"""Fields of structs meet those of the table's column by name, at every depth, by whatever verb they come."""

from random import Random
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import types as t

from hive_acid.errors import ColumnError
from hive_acid.spark import AcidSession
from hive_acid.spark.values.structs import matched, widened
from hive_acid.spark.values.types import hive_type, spark_type
from tests.spark.checker import check_table, location_of
from tests.spark.compaction import compact_table

LEAVES = [t.IntegerType(), t.StringType(), t.DoubleType()]
NAMES = ["a", "b", "c", "d"]


def any_type(random: Any, depth: Any = 3) -> Any:
    """A struct of some fields, in which there are structs, arrays of them and maps."""
    kinds = [
        any_type(random, depth - 1) if depth > 1 and random.random() < 0.6 else random.choice(LEAVES) for _ in "123"
    ]
    wrap = [lambda of: of, t.ArrayType, lambda of: t.MapType(t.StringType(), of)]
    return t.StructType(
        [
            t.StructField(name, random.choice(wrap)(kind))
            for name, kind in zip(random.sample(NAMES, 3), kinds, strict=True)
        ]
    )


def any_value(random: Any, of: Any) -> Any:
    if random.random() < 0.15:
        return None
    if isinstance(of, t.StructType):
        return {field.name: any_value(random, field.dataType) for field in of.fields}
    if isinstance(of, t.ArrayType):
        return [any_value(random, of.elementType) for _ in range(random.randrange(3))]
    if isinstance(of, t.MapType):
        return {f"k{at}": any_value(random, of.valueType) for at in range(random.randrange(3))}
    number = random.randrange(1000)
    return {"integer": number, "string": str(number), "double": number / 8}[of.typeName()]


def mapped(of: Any, struct: Any) -> Any:
    """A type with all its structs, from the outside, as `struct` makes them of their fields."""
    if isinstance(of, t.StructType):
        return t.StructType([t.StructField(name, mapped(kind, struct)) for name, kind in struct(of)])
    if isinstance(of, t.ArrayType):
        return t.ArrayType(mapped(of.elementType, struct))
    return t.MapType(of.keyType, mapped(of.valueType, struct)) if isinstance(of, t.MapType) else of


def shuffled(random: Any, of: Any) -> Any:
    """The same type with its fields in another order, some in upper case."""

    def struct(one: Any) -> Any:
        fields = [(random.choice([str.upper, str.lower])(field.name), field.dataType) for field in one.fields]
        return random.sample(fields, len(fields))

    return mapped(of, struct)


def numbered(of: Any) -> Any:
    """The same type with the names that Spark has for fields without one."""
    return mapped(of, lambda one: [(f"col{at}", field.dataType) for at, field in enumerate(one.fields, 1)])


def fewer(random: Any, of: Any) -> Any:
    """The same type with some fields less."""
    return mapped(of, lambda one: [(field.name, field.dataType) for field in random.sample(one.fields, 2)])


def as_given(value: Any, of: Any, has: Any) -> Any:
    """A value, in which structs are dictionaries, as Spark takes it for type `of`, whose model has type `has`."""
    if value is None or isinstance(of, t.AtomicType):
        return value
    if isinstance(of, t.StructType):
        by_name = {field.name.lower(): field for field in has.fields}
        pairs = [(field, by_name.get(field.name.lower(), has.fields[at])) for at, field in enumerate(of.fields)]
        return tuple(as_given(value[model.name], field.dataType, model.dataType) for field, model in pairs)
    if isinstance(of, t.ArrayType):
        return [as_given(one, of.elementType, has.elementType) for one in value]
    return {key: as_given(one, of.valueType, has.valueType) for key, one in value.items()}


def plain(value: Any) -> Any:
    """What Spark has collected, with dictionaries for structs."""
    if isinstance(value, Row):
        return {name: plain(one) for name, one in value.asDict().items()}
    if isinstance(value, list):
        return [plain(one) for one in value]
    return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value


def completed(value: Any, of: Any, has: Any, old: Any = None) -> Any:
    """The model of evolution: a value of a narrower type as one of `of`; what it lacks is null or that of `old`."""
    if value is None:
        return None
    if isinstance(of, t.StructType):
        kinds = {field.name: field.dataType for field in has.fields}
        return {
            field.name: completed(value[field.name], field.dataType, kinds[field.name], (old or {}).get(field.name))
            if field.name in kinds
            else (old or {}).get(field.name)
            for field in of.fields
        }
    if isinstance(of, t.ArrayType):
        return [completed(one, of.elementType, has.elementType) for one in value]
    if isinstance(of, t.MapType):
        return {key: completed(one, of.valueType, has.valueType) for key, one in value.items()}
    return value


def read(acid: AcidSession, name: Any = "d.t") -> Any:
    return {row["id"]: plain(row["s"]) for row in acid.table(name).collect()}


@pytest.mark.parametrize("seed", range(3))
def test_every_verb_stores_each_field_under_its_name(acid: AcidSession, spark: SparkSession, seed: Any) -> None:
    random = Random(seed)
    kind = any_type(random)
    acid.create_table("d.t", {"id": "int", "s": hive_type(kind)})
    expected: dict[Any, Any] = {}

    def frame(of: Any, ids: Any) -> Any:
        values = {at: any_value(random, kind) for at in ids}
        expected.update(values)
        rows = [(at, as_given(value, of, kind)) for at, value in values.items()]
        schema = t.StructType([t.StructField("id", t.IntegerType()), t.StructField("s", of)])
        return spark.createDataFrame(rows, schema)

    for first, of in ((0, shuffled(random, kind)), (10, numbered(kind))):
        ids = range(first, first + 4)
        acid.insert("d.t", frame(of, ids))
        frame(of, ids).createOrReplaceTempView("given")
        acid.delete("d.t", f"id BETWEEN {first} AND {first + 3}")
        acid.sql("INSERT INTO d.t SELECT * FROM given")
        assert read(acid) == expected, of
        source = frame(of, range(first + 2, first + 6))
        acid.merge("d.t", source, "t.id = s.id").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
        assert read(acid) == expected, of
        acid.update("d.t", {"s": "g.s"}, source=frame(of, ids), on="t.id = g.id", source_alias="g")
        assert read(acid) == expected, of
        acid.overwrite("d.t", frame(of, ids), where=f"id BETWEEN {first} AND {first + 3}")
        assert read(acid) == expected, of
    check_table(location_of(acid, "d.t"))


@pytest.mark.parametrize("seed", range(3))
def test_fields_that_a_column_lacks_are_added(acid: AcidSession, spark: SparkSession, seed: Any) -> None:
    """Old files keep their types; a narrow value has null for what it lacks, or keeps it where a row is updated."""
    random = Random(100 + seed)
    wide = any_type(random)
    narrow = fewer(random, wide)
    acid.create_table("d.t", {"id": "int", "s": hive_type(narrow)}, partitioned_by={"p": "int"})
    expected: dict[Any, Any] = {}

    def frame(of: Any, ids: Any) -> Any:
        values = {at: any_value(random, of) for at in ids}
        schema = t.StructType([t.StructField("id", t.IntegerType()), t.StructField("s", of)])
        rows = [(at, as_given(value, of, of)) for at, value in values.items()]
        return values, spark.createDataFrame(rows, schema).selectExpr("*", "id % 2 AS p")

    def widest() -> Any:
        return spark_type(acid.connection.table("d", "t").columns[1].type)

    def store(values: Any, of: Any, old: Any = None) -> None:
        """Of the model: all rows in the type that the table now has, and the new ones among them."""
        now = widest()
        for at in expected:
            expected[at] = completed(expected[at], now, before)
        for at, value in values.items():
            expected[at] = completed(value, now, of, (old or {}).get(at) and completed(old[at], now, before))

    before = narrow
    values, rows = frame(narrow, range(6))
    acid.insert("d.t", rows)
    store(values, narrow)
    values, rows = frame(wide, range(10, 14))
    if seed % 2:
        acid.insert("d.t", rows, schema_evolution=True)
    else:
        merge = acid.merge("d.t", rows, "t.id = s.id").withSchemaEvolution()
        assert tuple(merge.whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()) == (4, 0, 0)
    store(values, wide)
    before = widest()
    assert read(acid) == expected
    other = fewer(random, wide)
    values, rows = frame(other, range(8, 12))
    rows.createOrReplaceTempView("given")
    acid.sql(
        "MERGE WITH SCHEMA EVOLUTION INTO d.t USING given AS g ON t.id = g.id "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    store(values, other, dict(expected))
    assert read(acid) == expected
    values, rows = frame(other, range(20, 23))
    rows.createOrReplaceTempView("given")
    acid.sql("INSERT WITH SCHEMA EVOLUTION INTO d.t SELECT * FROM given")
    store(values, other)
    assert read(acid) == expected
    spark.conf.set("spark.sql.orc.enableVectorizedReader", "false")
    assert read(acid) == expected
    spark.conf.unset("spark.sql.orc.enableVectorizedReader")
    compact_table(spark, acid, "d.t", "major")
    assert read(acid) == expected
    check_table(location_of(acid, "d.t"))


def test_values_are_never_swapped(acid: AcidSession, spark: SparkSession) -> None:
    acid.sql("CREATE TABLE d.t (id int, s struct<a:int,b:int>, l array<struct<a:int,b:int>>)")
    acid.sql("INSERT INTO d.t VALUES (1, struct(1, 2), array(struct(3, 4)))")
    acid.sql("INSERT INTO d.t SELECT 2, struct(b, a), array(struct(B, A)) FROM VALUES (1, 2) AS v(a, b)")
    acid.sql("INSERT INTO d.t SELECT 3, struct(x, y), array(struct(x, y)) FROM VALUES (1, 2) AS v(x, y)")
    acid.sql("INSERT INTO d.t SELECT 4, struct(a, 2), array(struct(1, b)) FROM VALUES (1, 2) AS v(a, b)")
    acid.sql(
        "MERGE INTO d.t USING (VALUES (1), (5)) AS v(n) ON t.id = v.n "
        "WHEN MATCHED THEN UPDATE SET s = struct(1, 9), t.l = array(named_struct('b', 8, 'a', n)) "
        "WHEN NOT MATCHED THEN INSERT VALUES (n, struct(1, 2), NULL)"
    )
    acid.sql("UPDATE d.t SET s = named_struct('B', 6, 'A', 5) WHERE id = 4")
    found = acid.sql("SELECT id, s.a, s.b, l[0].a, l[0].b FROM d.t ORDER BY id").collect()
    assert found == [(1, 1, 9, 1, 8), (2, 1, 2, 1, 2), (3, 1, 2, 1, 2), (4, 5, 6, 1, 2), (5, 1, 2, None, None)]
    one = spark.sql("SELECT 9 AS id, named_struct('x', 1, 'y', 2) AS s, array(struct(1, 2)) AS l")
    for refused in (
        lambda: acid.insert("d.t", one),
        lambda: acid.sql("INSERT INTO d.t BY NAME SELECT 9 AS id, named_struct('x', 1, 'y', 2) AS s"),
        lambda: acid.sql("INSERT INTO d.t SELECT 9, named_struct('b', 1, 'c', 2), NULL"),
        lambda: acid.sql("INSERT INTO d.t SELECT 9, struct(1), NULL"),
        lambda: acid.sql("INSERT INTO d.t SELECT 9, struct(1, 2, 3), NULL"),
        lambda: acid.sql("INSERT INTO d.t SELECT 9, named_struct('a', 1, 'A', 2), NULL"),
        lambda: acid.sql("INSERT WITH SCHEMA EVOLUTION INTO d.t SELECT 9, struct(1, 2, 3), NULL"),
        lambda: acid.update("d.t", {"s": "named_struct('x', 1, 'y', 2)"}),
        lambda: acid.sql("UPDATE d.t SET s = struct(id, 9)"),
    ):
        with pytest.raises(ColumnError, match=r"d\.t\.s|'a' twice"):
            refused()
    assert len(read(acid)) == 5


@pytest.mark.parametrize(("source", "target", "places"), [
    ("a b", "a b", [0, 1]), ("b a", "a b", [1, 0]), ("B A", "a b", [1, 0]), ("col1 col2", "a b", [0, 1]),
    ("col1 b", "a b", [0, 1]), ("a a", "a b", None), ("a A", "a b", None), ("x y", "a b", None),
    ("col2 col1", "a b", None), ("col2 col1", "col1 col2", [1, 0]), ("a", "a b", None), ("a b c", "a b", None),
])  # fmt: skip
def test_places(source: Any, target: Any, places: Any) -> None:
    structs = [t.StructType([t.StructField(name, t.IntegerType()) for name in of.split()]) for of in (source, target)]
    assert matched(*structs) == places


@pytest.mark.parametrize(("kind", "given", "wider"), [
    ("struct<a:char(3)>", "struct<b:int,A:string>", "struct<a:char(3),b:int>"),
    ("array<struct<a:int>>", "array<struct<b:map<string,int>>>", "array<struct<a:int>>"),
    ("map<char(2),struct<a:int>>", "map<string,struct<a:int,z:date>>", "map<char(2),struct<a:int,z:date>>"),
    ("struct<a:int,b:int>", "struct<col1:int,col2:int>", "struct<a:int,b:int>"),
    ("struct<a:int,b:int>", "struct<b:int>", "struct<a:int,b:int>"),
    ("struct<a:int,b:struct<c:int>>", "struct<b:struct<d:int,c:int>>", "struct<a:int,b:struct<c:int,d:int>>"),
    ("int", "struct<a:int>", "int"),
])  # fmt: skip
def test_wider_types(kind: Any, given: Any, wider: Any) -> None:
    assert widened("x", kind, spark_type(given)) == wider
