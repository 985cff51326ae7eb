"""Conditions in which a CHAR column meets texts: blanks at its end do not count, as in Hive.

Spark sees to that itself where such a column is compared with a constant or with another one: see
`hive_acid.spark.values.texts`. Compared with a text that comes from a column, by BETWEEN, and with a pattern, it would
be taken with its blanks: so it is put there without them. What cannot be looked into stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.format.hashing import type_parts
from hive_acid.spark.conditions.nesting import deeply_nested
from hive_acid.spark.conditions.trees import condition_tree
from hive_acid.spark.values.types import column_type, spark_type

TypeOf = Callable[[str, str], str | None]
"""The Hive type of a column by its qualifier, which may be empty, and its name; None where it is not known."""

_EQUATIONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.EqualNull)
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike)
_LONGEST_CHAR = 255
_CHAR = re.compile(r"\bchar\b", re.IGNORECASE)


def has_chars(table: Table) -> bool:
    """Whether CHAR is among the types of a table's columns, or inside of one."""
    return any(_CHAR.search(column.type) for column in table.all_columns)


def without_blanks(
    condition: Column | str, table: Table, alias: str | None = None, source: DataFrame | None = None, called: str = ""
) -> Column | str:
    """`condition` with the CHAR columns of `table` and of `source` compared by Hive's rule.

    Columns are named alone, or by `alias` or, without one, the table's name; those of a `source` that is joined alone,
    or as it is `called`.
    """
    own = {column.name: column.type for column in table.all_columns}
    fields = source.schema.fields if source is not None else []
    # Of a source it matters which columns are texts.
    others = {field.name.lower(): column_type(field) if field.dataType == t.StringType() else None for field in fields}
    if not has_chars(table) and not any(map(_is_char, others.values())):
        return condition
    by_alias: dict[str, dict[str, str | None]] = {called.lower(): others, (alias or table.name).lower(): {**own}}
    with deeply_nested(condition):
        return _without_blanks(condition, own, others, by_alias)


def _without_blanks(
    condition: Column | str,
    own: Mapping[str, str],
    others: Mapping[str, str | None],
    by_alias: Mapping[str, Mapping[str, str | None]],
) -> Column | str:
    tree = condition_tree(condition, [*own, *others], with_escapes=True)
    if tree is None:
        return condition

    def type_of(qualifier: str, name: str) -> str | None:
        if qualifier:
            return by_alias.get(qualifier, {}).get(name)
        return None if name in own and name in others else own.get(name, others.get(name))

    found = list(with_blanks(tree, type_of))
    if not found:
        return condition
    if isinstance(condition, str):
        for begin, end, meant in sorted((part.in_text(condition) for part in found), reverse=True):
            condition = condition[:begin] + meant + condition[end:]
        return condition
    if tree.find(exp.Placeholder):
        return condition
    for part in found:
        part.node.replace(exp.var(part.meant(part.node.sql(dialect="spark"))))
    return F.expr(tree.sql(dialect="spark"))


class Part(NamedTuple):
    """A column or literal of an expression that has to be without blanks, as one of several that are in `order`."""

    node: exp.Expr
    in_order: bool

    def meant(self, text: str) -> str:
        """The SQL for it, out of that of what is written."""
        trimmed = f"rtrim(CAST({text} AS STRING))" if isinstance(self.node, exp.HexString) else f"rtrim({text})"
        # In order, texts have as many blanks as the longest one: a tab comes before a blank.
        return f"rpad({trimmed}, greatest({_LONGEST_CHAR}, char_length({trimmed})), ' ')" if self.in_order else trimmed

    def in_text(self, text: str) -> tuple[int, int, str]:
        """Where it begins and ends in the text that it was parsed from, and the SQL for it."""
        marks = [part.meta for part in self.node.walk() if "start" in part.meta]
        begin, end = min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1
        return begin, end, self.meant(text[begin:end])


def with_blanks(node: exp.Expr, type_of: TypeOf) -> Iterator[Part]:
    """The parts of an expression that have to be without blanks for it to mean what Hive means."""
    seen: set[int] = set()
    for part in _with_blanks(node, type_of):
        if id(part.node) not in seen:  # one that two comparisons have a side of
            seen.add(id(part.node))
            yield part


def _with_blanks(tree: exp.Expr, type_of: TypeOf) -> Iterator[Part]:
    for node in tree.walk(bfs=False, prune=lambda one: isinstance(one, exp.Query)):
        if not isinstance(node, exp.Query):  # the names of one are its own
            yield from _compared_in(node, type_of)


def _compared_in(node: exp.Expr, type_of: TypeOf) -> Iterator[Part]:
    """Those that `node` itself compares."""
    if isinstance(node, _EQUATIONS + _ORDERS):
        yield from _met_by_place([node.this, node.expression], type_of, in_order=isinstance(node, _ORDERS))
    elif isinstance(node, exp.Between):
        sides = [node.this, node.args["low"], node.args["high"]]
        yield from _met(sides, type_of, in_order=True, by_spark=False)
    elif isinstance(node, exp.In) and node.expressions:
        yield from _met_by_place([node.this, *node.expressions], type_of)
    elif isinstance(node, exp.In):
        for leaves in map(_leaves, _row(node.this) or [node.this]):
            if any(_is_char(_type(leaf, type_of)) for leaf in leaves):
                yield from _parts(leaves, type_of, in_order=False)
    elif isinstance(node, exp.Case) and node.this is not None:
        yield from _met([node.this, *(one.this for one in node.args.get("ifs", ()))], type_of)
    elif isinstance(node, exp.DecodeCase):
        yield from _met([node.expressions[0], *node.expressions[1:-1:2]], type_of)
    elif isinstance(node, exp.Nullif):
        yield from _met([node.this, node.expression], type_of, by_spark=False)
    elif isinstance(node, _PATTERNS):
        leaves = [leaf for side in (node.this, *_patterns(node.expression)) for leaf in _leaves(side)]
        yield from (Part(leaf, in_order=False) for leaf in leaves if _is_char(_type(leaf, type_of)))
    elif (sought := _sought(node)) is not None:
        yield from _met_within(node.this.unnest(), sought, type_of)


def _met_by_place(sides: list[exp.Expr], type_of: TypeOf, *, in_order: bool = False) -> Iterator[Part]:
    """Those of the sides of one comparison, which may be rows: these are compared place by place, and not by Spark."""
    rows = [_row(side) for side in sides]
    if not all(rows) or len({*map(len, rows)}) > 1:
        yield from _met(sides, type_of, in_order=in_order)
        return
    for at_one_place in zip(*rows, strict=True):
        yield from _met(at_one_place, type_of, in_order=in_order, by_spark=False)


def _row(side: exp.Expr) -> list[exp.Expr]:
    """What stands in a row, ``(a, b)`` or a struct that is made of its fields; nothing for what is none."""
    side = side if isinstance(side, exp.Query) else side.unnest()
    if not isinstance(side, exp.Tuple | exp.Struct):
        return []
    return [one.expression if isinstance(one, exp.PropertyEQ) else one.unalias() for one in side.expressions]


def _patterns(given: exp.Expr) -> list[exp.Expr]:
    """What a text is compared with by LIKE and its like: one pattern, or those of ANY and ALL."""
    if not isinstance(given, exp.Any | exp.All):
        return [given]
    return given.this.expressions if isinstance(given.this, exp.Tuple) else [given.this]


def _sought(node: exp.Expr) -> exp.Expr | None:
    """What a node looks for among the elements of an array, or the keys of a map; None for another node."""
    if isinstance(node, exp.ArrayContains | exp.ArrayPosition | exp.ArrayRemove):
        found: exp.Expr | None = node.expression
    elif isinstance(node, exp.MapContainsKey):
        found = node.args.get("key")
    else:
        found = node.expressions[0] if isinstance(node, exp.Bracket) and len(node.expressions) == 1 else None
    return found


def _met_within(among: exp.Expr, sought: exp.Expr, type_of: TypeOf) -> Iterator[Part]:
    """Those of what is looked for in an array or a map; within them a CHAR has no blanks."""
    if isinstance(among, exp.Array):
        yield from _met([*among.expressions, sought], type_of, by_spark=False)
        return
    name, inner = type_parts(_type(among, type_of) or "")
    leaves = _leaves(sought)
    kinds = [_type(leaf, type_of) for leaf in leaves] + (inner[:1] if name in ("array", "map") else [])
    if any(map(_is_char, kinds)):
        yield from _parts(leaves, type_of, in_order=False)


def in_subqueries(node: exp.Expr, type_of: TypeOf, inner: Callable[[exp.Select], TypeOf]) -> Iterator[Part]:
    """The parts of subqueries that a comparison has as a side; `inner` gives the types of columns in one.

    Of the side beside a subquery there is none that `with_blanks` gives.
    """
    if isinstance(node, exp.In) and isinstance(node.args.get("query"), exp.Query):
        sides = [node.this, node.args["query"]]
    elif isinstance(node, _EQUATIONS + _ORDERS):
        sides = [node.this, node.expression]
    else:
        return
    selects = [select for side in sides for select in _selects(side)]
    rows = [_row(side) or [side] for side in sides if not isinstance(side.unnest(), exp.Query)]
    width = len(rows[0]) if rows else 1
    if any(len(row) != width for row in rows) or any(len(select.expressions) != width for select in selects):
        return
    for at in range(width):
        found = [(select, one) for select in selects for one in _leaves(select.expressions[at].unalias())]
        beside = [one for row in rows for one in _leaves(row[at])]
        chars = [_is_char(_type(one, type_of)) for one in beside]
        if not found or not (any(chars) or any(_is_char(_type(one, inner(select))) for select, one in found)):
            continue
        in_order = isinstance(node, _ORDERS)
        for select, one in found:
            yield from _parts([one], inner(select), in_order=in_order)
        if not any(chars):
            yield from _parts(beside, type_of, in_order=in_order)


def _selects(side: exp.Expr) -> list[exp.Select]:
    """What a subquery's rows come from; nothing for what is none."""
    if isinstance(side, exp.Select):
        return [side]
    if isinstance(side, exp.SetOperation):
        return [*_selects(side.this), *_selects(side.expression)]
    return _selects(side.this) if isinstance(side, exp.Subquery | exp.Paren) else []


def _leaves(side: exp.Expr) -> list[exp.Expr]:
    """The parts of an expression that have the same blanks at their end as all of it."""
    side = side if isinstance(side, exp.Query) else side.unnest()
    match side:
        case exp.Upper() | exp.Lower() | exp.Max() | exp.Min() | exp.AnyValue() | exp.First() | exp.Last():
            given = [side.this]
        case exp.Coalesce():
            given = [side.this, *side.expressions]
        case exp.If() | exp.Nvl2():
            given = [side.args.get("true"), side.args.get("false")]
        case exp.Nullif():
            given = [side.this]
        case exp.Case():
            given = [*(one.args.get("true") for one in side.args.get("ifs", ())), side.args.get("default")]
        case _:
            return [side]
    return [leaf for one in given if one is not None for leaf in _leaves(one)]


def _met(
    compared: Collection[exp.Expr], type_of: TypeOf, *, in_order: bool = False, by_spark: bool = True
) -> Iterator[Part]:
    """Those of the sides of one comparison; `by_spark` says that Spark knows what to do about a constant."""
    if in_order and any(side.find(exp.Nullif) for side in compared):
        return  # which compares in another form
    sides = [_leaves(side) for side in compared]
    chars = [any(_is_char(_type(leaf, type_of)) for leaf in side) for side in sides]
    # What lies in another value has no blanks, and Spark knows nothing of it; nor of a list with a null.
    every = [leaf for side in sides for leaf in side]
    has_null = any(isinstance(leaf, exp.Null) for leaf in every)
    knows = (
        by_spark
        and not has_null
        and all(_is_column(one.unnest(), type_of) for one, is_char in zip(compared, chars, strict=True) if is_char)
    )
    if not any(chars) or any(_hides_char(leaf, type_of) for leaf in every):
        return  # The blanks of an expression are its own: with them it is Spark's to compare.
    if not (knows and (all(chars) or sum(map(_is_constant, compared)) == len(sides) - 1)):
        yield from _parts(every, type_of, in_order=in_order)


def _hides_char(leaf: exp.Expr, type_of: TypeOf) -> bool:
    """Whether an expression is made of a CHAR, so that the blanks of that may be in it."""
    is_cut = isinstance(leaf, exp.Substring) or (isinstance(leaf, exp.Trim) and leaf.args.get("position") != "LEADING")
    if is_cut or isinstance(leaf, exp.Query | exp.Column) or _type(leaf, type_of) is not None:
        return False
    return any(_is_char(_type(one, type_of)) for one in leaf.find_all(exp.Column))


def _parts(sides: Collection[exp.Expr], type_of: TypeOf, *, in_order: bool) -> Iterator[Part]:
    """The texts among them: columns, fields of columns, and literals."""
    for side in sides:
        kind = _type(side, type_of) if isinstance(side, exp.Column) else None
        is_text = kind is not None and spark_type(kind) == t.StringType()
        if is_text or isinstance(side, exp.RawString) or (isinstance(side, exp.Literal) and side.is_string):
            yield Part(side, in_order)
        elif (
            isinstance(side, exp.Cast)
            and isinstance(side.this, exp.HexString)
            and side.is_type(*exp.DataType.TEXT_TYPES)
        ):
            yield Part(side.this, in_order)  # as our own literals are of texts with quotes


def _type(node: exp.Expr, type_of: TypeOf) -> str | None:
    """The Hive type of a column, or of what lies in one."""
    if isinstance(node, exp.Column):
        names = [part.name.lower() for part in node.parts]
        kind = type_of(*names[:2]) if len(names) > 1 else None
        fields = names[2:]
        if kind is None:
            kind, fields = type_of("", names[0]), names[1:]
        for field in fields:
            kind = _inner(kind, field)
        return kind
    if isinstance(node, exp.Bracket):
        return _inner(_type(node.this.unnest(), type_of))
    if isinstance(node, exp.Anonymous) and node.name.lower() == "get" and node.expressions:
        return _inner(_type(node.expressions[0].unnest(), type_of))
    return None


def _inner(kind: str | None, field: str | None = None) -> str | None:
    """The type of a struct's field, or of an array's elements or a map's values."""
    name, inner = type_parts(kind or "")
    if field is None:
        return inner[-1] if name in ("array", "map") else None
    fields = {of.strip(): type_ for of, _, type_ in (part.partition(":") for part in inner)}
    return fields.get(field) if name == "struct" else None


def _is_column(node: exp.Expr, type_of: TypeOf) -> bool:
    """Whether it is a column itself."""
    return isinstance(node, exp.Column) and type_of(node.table.lower(), node.name.lower()) is not None


def _is_char(hive_type: str | None) -> bool:
    return _CHAR.match((hive_type or "").strip()) is not None


def _is_constant(node: exp.Expr) -> bool:
    return not any(isinstance(part, exp.Column | exp.Query) for part in node.walk())
