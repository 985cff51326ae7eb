"""What the conditions of a query surely say of the rows of one of its tables, so that less of it is read.

Only hints: Spark applies all conditions itself. A condition counts if it is made of plain comparisons with constants,
and for tables whose rows an outer join cannot replace by nulls.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import accumulate
from typing import NamedTuple

from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.spark.conditions.constants import without_alias
from hive_acid.spark.conditions.sql_tokens import conjuncts, tokens_of
from hive_acid.spark.conditions.trees import dated
from hive_acid.spark.read.totals.extremes import Extreme
from hive_acid.spark.sql.arguments import Arguments

_LOGIC = (exp.And, exp.Or, exp.Paren)
_COMPARISONS = (exp.EQ, exp.NullSafeEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is, exp.Not)
_OPERANDS = (exp.Literal, exp.Neg, exp.Boolean, exp.Null, exp.Identifier, exp.Tuple)
_INNER = ("", "INNER", "CROSS")

_PLAIN = (*_LOGIC, *_COMPARISONS, *_OPERANDS, exp.Column)
_CONSTANT_CASTS = (exp.DataType.Type.DATE, exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPTZ)


def wanted_text(
    text: str, select: exp.Select, reference: exp.Table, table: Table, arguments: Arguments = None
) -> str | None:
    """The conjuncts of `select` that are about `reference` alone, over bare column names; None without.

    `text` is that of the statement.
    """
    if not _keeps_its_rows(select, reference) or not _is_itself(reference):
        return None
    alias = reference.alias_or_name.lower()
    known = {column.name for column in table.all_columns}
    given = (_with_constants(one, arguments) for one in _conjuncts(select))
    found = [_bare(one) for one in given if _is_plain(one, alias, known) and _is_true_or_false(one, table)]
    found += _computed(text, select, alias, known)
    return " AND ".join(f"({text})" for text in found) or None


def _is_true_or_false(condition: exp.Expr, table: Table) -> bool:
    """Whether it is a condition by itself: beside AND Spark makes one of a null, and of a text, too."""
    bare = condition.unnest()
    if isinstance(bare, exp.Column):
        return any(column.name == bare.name.lower() and column.type == "boolean" for column in table.all_columns)
    return isinstance(bare, (*_LOGIC, *_COMPARISONS, exp.Boolean))


_BEHIND_WHERE = frozenset(
    {"group", "order", "having", "limit", "offset", "union", "intersect", "except", "minus", "window", "qualify"}
    | {"cluster", "distribute", "sort", "fetch", ";"}
)


def _computed(text: str, select: exp.Select, alias: str, known: set[str]) -> Iterator[str]:
    """The conjuncts of a WHERE with expressions of literals, as they are written: a tree has them in other words."""
    where = getattr(select.args.get("where"), "this", None)
    if not isinstance(where, exp.Expression) or all(isinstance(of, _PLAIN) for of in where.walk()):
        return
    for tree, tokens, _ in _written(text, select, where):
        if not _is_plain(tree, alias, known) and (bare := without_alias(tokens, alias, known)) is not None:
            yield bare


class KeyCondition(NamedTuple):
    """A part of a WHERE that is about partition keys alone: where it stands in the statement, and its text with bare
    names.
    """

    start: int
    end: int
    bare: str


def key_conditions(text: str, select: exp.Select, reference: exp.Table, table: Table) -> list[KeyCondition]:
    """The conjuncts of the WHERE of `select` that are about partition keys of `reference` alone.

    Rows that they refuse can be left out of the table, as for `wanted_text`.
    """
    where = getattr(select.args.get("where"), "this", None)
    keys = {key.name for key in table.partition_keys}
    if not keys or not isinstance(where, exp.Expression):
        return []
    if not _keeps_its_rows(select, reference) or not _is_itself(reference):
        return []
    alias = reference.alias_or_name.lower()
    is_alone = len(direct_sources(select)) == 1 and not select.args.get("laterals")
    found = []
    for tree, tokens, place in _written(text, select, where):
        columns = list(tree.find_all(exp.Column))
        # Which table a bare name is of, where there are several, is for Spark to say.
        is_of_keys = bool(columns) and (is_alone or all(column.table for column in columns))
        if is_of_keys and _is_plain(tree, alias, keys):
            said = "".join(tokens)
            start = place + len(said) - len(said.lstrip())
            found.append(KeyCondition(start, start + len(said.strip()), _bare(tree)))
    return found


def _written(text: str, select: exp.Select, where: exp.Expr) -> list[tuple[exp.Expr, Sequence[str], int]]:
    """The conjuncts of a WHERE: the tree of each, its tokens and where these begin; none where that is not told."""
    trees = list(where.flatten()) if isinstance(where, exp.And) else [where]
    tokens, place = _where(text, select, where)
    written = []
    for of in conjuncts(tokens):
        said = "".join(of)
        if said.strip().lower() not in ("", "and"):
            written.append((of, place))
        place += len(said)
    if len(written) != len(trees):
        return []
    return [(tree, of, begin) for tree, (of, begin) in zip(trees, written, strict=True)]


def _where(text: str, select: exp.Select, where: exp.Expr) -> tuple[Sequence[str], int]:
    """The tokens of a WHERE, from one of its columns to both sides, and where they begin; none where its place is not
    told.
    """
    starts = (of.this.meta.get("start") for of in where.find_all(exp.Column) if of.parent_select is select)
    start = next((of for of in starts if of is not None), None)
    tokens = tokens_of(text) if start is not None else []
    places = list(accumulate(map(len, tokens), initial=0))
    if start not in places:
        return [], 0
    first, depth = places.index(start), 0
    while first >= 0 and not (depth <= 0 and tokens[first].lower() == "where"):
        depth += (tokens[first] == ")") - (tokens[first] == "(")
        first -= 1
    last, depth = first + 1, 0
    while 0 < last < len(tokens) and depth >= 0 and (depth or tokens[last].lower() not in _BEHIND_WHERE):
        depth += (tokens[last] == "(") - (tokens[last] == ")")
        last += 1
    return (tokens[first + 1 : last - (depth < 0)], places[first + 1]) if first >= 0 else ([], 0)


def _conjuncts(select: exp.Select) -> Iterator[exp.Expr]:
    """What has to be true for a row to be shown, unless an outer join replaces it: of WHERE and of inner joins."""
    joins = [join for join in select.args.get("joins") or () if not join.side and join.kind in _INNER]
    for condition in (*(join.args.get("on") for join in joins), getattr(select.args.get("where"), "this", None)):
        for one in condition.flatten() if isinstance(condition, exp.And) else [condition]:
            if isinstance(one, exp.Expression):
                yield one


def _is_itself(reference: exp.Expr) -> bool:
    """Whether the columns are called as in the table."""
    return not (reference.args.get("pivots") or (isinstance(reference, exp.Table) and reference.alias_column_names))


def asked_totals(select: exp.Select, reference: exp.Table, table: Table) -> tuple[Extreme, ...] | None:
    """The extremes that a query asks of its only source, if it asks nothing else of that but how many rows it has.

    None for any other query.
    """
    clauses = {clause for clause, value in select.args.items() if value}
    named = {part for part, value in reference.args.items() if value}
    if (
        clauses != {"expressions", "from_"}
        or select.args["from_"].this is not reference
        or not named <= {"this", "db", "catalog", "alias"}
        or reference.alias_column_names
    ):
        return None
    alias, known = reference.alias_or_name.lower(), {column.name for column in table.all_columns}
    extremes: dict[Extreme, None] = {}
    for one in select.expressions:
        asked = one.unalias()
        if isinstance(asked, exp.Min | exp.Max) and not asked.expressions:
            column = asked.this
            if not isinstance(column, exp.Column) or not _is_plain_part(column, alias, known):
                return None
            extremes[Extreme(column.name.lower(), isinstance(asked, exp.Max))] = None
        elif not _counts_rows(asked):
            return None
    return tuple(extremes)


def _counts_rows(value: exp.Expr) -> bool:
    if not isinstance(value, exp.Count) or value.expressions:
        return False
    return isinstance(value.this, exp.Literal) or (
        isinstance(value.this, exp.Star) and not any(value.this.args.values())
    )


def direct_sources(select: exp.Select) -> list[exp.Expr]:
    """What the FROM and the joins of `select` name themselves."""
    from_ = select.args.get("from_")
    joins = select.args.get("joins") or ()
    return [clause.this for clause in (from_, *joins) if clause is not None]


def _keeps_its_rows(select: exp.Select, reference: exp.Table) -> bool:
    """Whether a row that the WHERE refuses can be left out of the table: it decides no other row's fate."""
    joins = select.args.get("joins") or []
    if any(join.side in ("RIGHT", "FULL") for join in joins):
        return False
    inner = [join.this for join in joins if not join.side and join.kind in _INNER]
    from_ = select.args.get("from_")
    first = [from_.this] if from_ is not None else []
    return any(reference is source for source in (*first, *inner)) and not reference.args.get("sample")


def _with_constants(condition: exp.Expr, arguments: Arguments) -> exp.Expr:
    """A copy of `condition` with constants for named parameters of the kinds that are compared most."""
    copy = condition.copy()
    if isinstance(arguments, Mapping):
        for mark in list(copy.find_all(exp.Placeholder)):
            constant = _constant(arguments.get(mark.name))
            if constant is not None:
                mark.replace(constant)
    return copy


def _constant(value: object) -> exp.Expr | None:
    match value:
        case bool() | datetime():
            return None
        case int() | Decimal() if value >= 0:
            return exp.Literal.number(f"{value:f}" if isinstance(value, Decimal) else value)
        case str():
            return exp.Literal.string(value)
        case date():
            return exp.cast(exp.Literal.string(value.isoformat()), exp.DataType.Type.DATE)
    return None


def _is_plain(node: exp.Expr, alias: str, known: set[str]) -> bool:
    """Whether a condition compares columns of one table with constants, and does nothing else."""
    parts = node.walk(prune=lambda part: isinstance(part, exp.Column | exp.Cast | exp.TsOrDsToDate))
    return all(_is_plain_part(part, alias, known) for part in parts)


def _is_plain_part(node: exp.Expr, alias: str, known: set[str]) -> bool:
    if isinstance(node, exp.Column):
        names = [part.name.lower() for part in node.parts]
        return names[-1] in known and (len(names) == 1 or (len(names) == 2 and names[0] == alias))
    if isinstance(node, exp.Literal):
        return not node.is_string or not (set("\\'\"") & set(node.name) or "${" in node.name)
    if isinstance(column := dated(node), exp.Column):
        return _is_plain_part(column, alias, known)
    if isinstance(node, exp.Cast):
        return node.to.this in _CONSTANT_CASTS and isinstance(node.this, exp.Literal)
    if isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest") or node.args.get("field")):
        return False
    return isinstance(node, _LOGIC + _COMPARISONS + _OPERANDS)


def _bare(condition: exp.Expr) -> str:
    """The condition's text, its columns without the table's name."""
    bare = condition.copy()
    for column in bare.find_all(exp.Column):
        for qualifier in ("table", "db", "catalog"):
            column.set(qualifier, None)
    return bare.sql(dialect="spark")
