"""Conditions in which a CHAR column meets texts: blanks at its end do not count, as in Hive.

Spark sees to that itself where such a column is compared with a constant or with another one: see
`hive_acid.spark.values.texts`. Compared with a text that comes from a column, by BETWEEN, and with a pattern, it would
be taken with its blanks: so it is put there without them. What cannot be looked into stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as t
from sqlglot import exp, tokenize
from sqlglot.tokenizer_core import TokenType

from hive_acid.catalog.table import Table
from hive_acid.format.hashing import type_parts
from hive_acid.spark.conditions.nesting import deeply_nested
from hive_acid.spark.conditions.trees import condition_tree, sql_text
from hive_acid.spark.values.types import column_type, spark_type

TypeOf = Callable[[str, str], str | None]
"""The Hive type of a column by its qualifier, which may be empty, and its name; None where it is not known."""

_EQUATIONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.EqualNull)
_ORDERS = (exp.LT, exp.LTE, exp.GT, exp.GTE)
_PATTERNS = (exp.Like, exp.ILike, exp.RegexpLike)
_SAME_ELEMENTS = (
    exp.Reverse, exp.ArraySlice, exp.ArraySort, exp.Shuffle, exp.ArrayDistinct, exp.ArrayCompact, exp.ArrayFilter,
    exp.ArrayExcept, exp.ArrayRemove,
)  # fmt: skip
"""Functions that give elements of the array that they are given first."""

_EACH = (exp.Exists, exp.ArrayFilter, exp.Transform)
"""Functions that ask something of each element; `_EACH_CALLED` are those that have no node of their own."""

_EACH_CALLED = frozenset({"forall", "map_filter", "transform_keys", "transform_values"})
_BRACKET = re.compile(r"[(\[]")
_OPENING = (TokenType.L_PAREN, TokenType.L_BRACKET)
_CLOSING = (TokenType.R_PAREN, TokenType.R_BRACKET)
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
    if isinstance(condition, Column) and (text := sql_text(condition)) is not None:
        meant = _without_blanks(text, own, others, by_alias)
        return condition if meant == text else F.expr(str(meant))
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
        made: list[tuple[int, str]] = []
        for part in found:
            begin, end = part.span(condition)
            made += zip((begin, end), part.around, strict=True)
        # One may lie within another; none begins or ends where another does.
        for at, put in sorted(made, reverse=True):
            condition = condition[:at] + put + condition[at:]
        return condition
    if tree.find(exp.Placeholder):
        return condition
    for part in reversed(found):  # those within others before these
        part.node.replace(exp.var(part.node.sql(dialect="spark").join(part.around)))
    return F.expr(tree.sql(dialect="spark"))


class Part(NamedTuple):
    """A column or literal of an expression that has to be without blanks, as one of several that are in `order`."""

    node: exp.Expr
    in_order: bool

    @property
    def around(self) -> tuple[str, str]:
        """The SQL before and behind what is written."""
        before, behind = ("rtrim(CAST(", " AS STRING))") if isinstance(self.node, exp.HexString) else ("rtrim(", ")")
        # In order, texts have as many blanks as the longest one: a tab comes before a blank.
        return (f"concat({before}", f"{behind}, space({_LONGEST_CHAR}))") if self.in_order else (before, behind)

    def span(self, text: str) -> tuple[int, int]:
        """Where it begins and ends in the text that it was parsed from."""
        marks = [part.meta for part in self.node.walk() if "start" in part.meta]
        return _with_brackets(text, min(mark["start"] for mark in marks), max(mark["end"] for mark in marks) + 1)


def _with_brackets(text: str, begin: int, end: int) -> tuple[int, int]:
    """Where a part of a text begins and ends of whose names and literals this is known: brackets have no marks."""
    if not _BRACKET.search(text, begin, end):
        return begin, end
    tokens = tokenize(text, read="spark")
    places = [at for at, token in enumerate(tokens) if begin <= token.start < end]
    first, last, depth = places[0], places[-1], 0
    for token in tokens[first : last + 1]:
        depth += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        while depth < 0 and first > 0:  # parentheses around what the part begins with
            first -= 1
            depth += 1
    while depth > 0 and last + 1 < len(tokens):
        last += 1
        depth += (tokens[last].token_type in _OPENING) - (tokens[last].token_type in _CLOSING)
    return tokens[first].start, tokens[last].end + 1


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
        # What lies in another value has no blanks, and needs some only in order.
        kind = _type(side, type_of) if in_order or isinstance(side, exp.Column) else None
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
    match node:
        case exp.Column():
            return _of_column([part.name.lower() for part in node.parts], type_of)
        case exp.Bracket():
            key = node.expressions[0]
            return _inner(_type(node.this.unnest(), type_of), key.name.lower() if key.is_string else None)
        case exp.Dot():
            return _inner(_type(node.this.unnest(), type_of), node.name.lower())
        case exp.Identifier():
            return _of_parameter(node, type_of)
    called = _called(node)
    is_same = isinstance(node, _SAME_ELEMENTS)
    is_one = isinstance(node, exp.ArrayMax | exp.ArrayMin) or called == "get"
    is_keys, is_values = isinstance(node, exp.MapKeys), called == "map_values"
    given = _first_given(node) if is_same or is_one or is_keys or is_values else None
    kind = _type(given.unnest(), type_of) if given is not None else None
    if is_same:
        return kind if type_parts(kind or "")[0] == "array" else None
    found = _inner(kind, at=0 if is_keys else -1)
    return found if is_one or found is None else f"array<{found}>"


def _of_column(names: Sequence[str], type_of: TypeOf) -> str | None:
    """The type of what has `names`, with dots between, in lower case."""
    # By its table, alone, or by its table with the database, and the catalogue, before that.
    meanings = [(names[0:2], names[2:]), (["", names[0]], names[1:]), (names[1:3], names[3:]), (names[2:4], [])]
    for of, fields in meanings:
        kind = type_of(*of) if len(of) == 2 else None
        if kind is not None:
            for field in fields:
                kind = _inner(kind, field)
            return kind
    return None


def _of_parameter(name: exp.Identifier, type_of: TypeOf) -> str | None:
    """The Hive type of what a function calls `name` that is asked of all elements of an array, or entries of a map."""
    body = name.find_ancestor(exp.Lambda)
    while body is not None and name.name.lower() not in (names := [one.name.lower() for one in body.expressions]):
        body = body.find_ancestor(exp.Lambda)
    if body is None or not (isinstance(body.parent, _EACH) or _called(body.parent) in _EACH_CALLED):
        return None
    among = _first_given(body.parent)
    shape, inner = type_parts(_type(among.unnest(), type_of) or "") if among is not None else ("", [])
    of_one = inner[:1] if shape == "array" else inner if shape == "map" else []
    at = names.index(name.name.lower())
    return of_one[at] if at < len(of_one) else None


def _called(node: exp.Expr | None) -> str:
    """The name of a function that has no node of its own, in lower case."""
    return node.name.lower() if isinstance(node, exp.Anonymous) else ""


def _first_given(node: exp.Expr | None) -> exp.Expr | None:
    """What a function is given first."""
    if isinstance(node, exp.Anonymous):
        return node.expressions[0] if node.expressions else None
    return node.this if isinstance(node, exp.Func) and isinstance(node.this, exp.Expr) else None


def _inner(kind: str | None, field: str | None = None, at: int = -1) -> str | None:
    """The type of a struct's field, or of an array's elements or a map's values, or its keys `at` 0."""
    name, inner = type_parts(kind or "")
    if name in ("array", "map"):
        return inner[at]
    fields = {of.strip(): type_ for of, _, type_ in (part.partition(":") for part in inner)}
    return fields.get(field or "") if name == "struct" else None


def _is_column(node: exp.Expr, type_of: TypeOf) -> bool:
    """Whether it is a column itself."""
    return isinstance(node, exp.Column) and type_of(node.table.lower(), node.name.lower()) is not None


def _is_char(hive_type: str | None) -> bool:
    return _CHAR.match((hive_type or "").strip()) is not None


def _is_constant(node: exp.Expr) -> bool:
    return not any(isinstance(part, exp.Column | exp.Query) for part in node.walk())
