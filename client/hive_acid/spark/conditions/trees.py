"""A user's condition as a tree that can be looked into: SQL text and Columns, classic or Connect, each to sqlglot's.

The tree serves for hints only. Where the words of a condition could mean two things (a text within quotes that a
setting turns into a name, escapes in literals, odd column names in the text of a Column) there is no tree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import sqlglot
from py4j.protocol import Py4JError
from pyspark.sql import Column
from sqlglot import exp
from sqlglot.errors import SqlglotError

_LONGEST_CONDITION = 100_000
_LONGEST_KEPT = 1_000
_KEPT = 256
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_QUOTES = re.compile(r"""'[^']*'|`[^`]*`|"|\\""")
"""What stands in quotes, and signs by which it is not clear what does."""

SINCE = "__acid_since"
"""A function that stands for some day that is not before the one given, in a condition that is a hint."""

DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
"""How a day is written in full; not each such text is one."""

DAY_OR_TIME = re.compile(rf"{DAY.pattern}(?: \d{{2}}:\d{{2}}:\d{{2}}(?:\.\d{{1,6}})?)?")
"""As `DAY`, or with a time."""

_TEXT_OF_COLUMN = re.compile(r"Column<'(.*)'>", re.DOTALL)
_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[(),]|[^'(),]+", re.DOTALL)

_ELEMENT_AT = ("element_at", "try_element_at")
_CONSTANTS: dict[str, exp.Condition] = {
    "true": exp.Boolean(this=True),
    "false": exp.Boolean(this=False),
    "null": exp.Null(),
}
_BINARY: dict[str, type[exp.Binary]] = {
    "=": exp.EQ, "==": exp.EQ, "<=>": exp.NullSafeEQ, "<": exp.LT, "<=": exp.LTE, ">": exp.GT, ">=": exp.GTE,
    "and": exp.And, "or": exp.Or, "like": exp.Like, "ilike": exp.ILike, "rlike": exp.RegexpLike,
}  # fmt: skip


def condition_tree(
    condition: Column | str,
    names: Sequence[str],
    *,
    with_escapes: bool = False,
    meant: Callable[[str], str] | None = None,
) -> exp.Condition | None:
    """The tree of a condition, None where it cannot be told; `names` are those of all columns that it may mean.

    `meant` gives a text in other words that mean the same here, of SQL and of what PySpark shows of a Column.

    With `with_escapes` it may have texts with a backslash, whose value is not told, but which end where they seem to,
    and it may be as long as it likes, since it is for more than a hint: RecursionError says that it is too deep.
    The tree of a text is not to be changed: whoever asks for it again gets the same.
    """
    if with_escapes:
        return _tree(condition, names, with_escapes=True)
    try:
        return _tree(condition, names, longest=_LONGEST_CONDITION, meant=meant or str)
    except RecursionError:
        return None


def _tree(
    condition: Column | str,
    names: Sequence[str],
    *,
    longest: int | None = None,
    with_escapes: bool = False,
    meant: Callable[[str], str] = str,
) -> exp.Condition | None:
    if isinstance(condition, str):
        if longest is not None and len(condition) > longest:
            return None
        condition = meant(condition)
        return (_kept if len(condition) <= _LONGEST_KEPT else _parsed)(condition, with_escapes=with_escapes)
    if is_of_connect(condition):
        return _of_connect(vars(condition)["_expr"])
    shown = str(condition)
    if longest is not None and len(shown) > longest:
        return None
    if (with_escapes and "[" in shown) or any(
        name.lower() in shown.lower() for name in names if not _is_plain_name(name)
    ):
        # In the text names and literals stand without quotes, and keys of maps. For a hint its nodes are too dear.
        return _of_node(condition) if with_escapes else None
    match = _TEXT_OF_COLUMN.fullmatch(shown)
    return _of_text(meant(match[1])) if match else None


def _is_plain_name(name: str) -> bool:
    """Whether a name without quotes is surely a column's."""
    return _PLAIN_NAME.fullmatch(name) is not None and name.lower() not in _CONSTANTS


def bare(tree: exp.Expr | None) -> exp.Expr | None:
    """A tree without the parentheses around it; None for an argument that is missing."""
    return None if tree is None else tree.unnest()


def column_named(tree: exp.Expr | None) -> tuple[str, str] | None:
    """The qualifier, "" without one, and the name of a tree that is a column, both in lower case."""
    column = bare(tree)
    if not isinstance(column, exp.Column) or column.args.get("db") or not isinstance(column.this, exp.Identifier):
        return None
    return column.table.lower(), column.name.lower()


def dated(tree: exp.Expr | None) -> exp.Expr | None:
    """What a tree takes the day of, as ``date(…)``, ``to_date(…)`` or a cast; None for other trees."""
    tree = bare(tree)
    is_cast = isinstance(tree, exp.Cast) and tree.to.this is exp.DataType.Type.DATE
    is_day = is_cast or (isinstance(tree, exp.TsOrDsToDate) and not tree.args.get("format"))
    return tree.this if tree is not None and is_day else None


def sql_text(condition: Column) -> str | None:
    """The text of a Column that is made of one, as `F.expr` makes it."""
    if is_of_connect(condition):
        expression = vars(condition)["_expr"]
        return str(expression._expr) if type(expression).__name__ == "SQLExpression" else None
    try:
        node = vars(condition)["_jc"].node()
        return str(node.expression()) if node.getClass().getSimpleName() == "SqlExpression" else None
    except Py4JError:
        return None


def is_of_connect(condition: Column) -> bool:
    """Whether a Column is one of a Connect session, which may hold references to frames."""
    return "_expr" in vars(condition)


def _parsed(text: str, *, with_escapes: bool = False) -> exp.Condition | None:
    if "${" in text or (not with_escapes and _is_unclear(text)):
        return None
    try:
        parsed = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError:
        return None
    return parsed if isinstance(parsed, exp.Condition) else None


@lru_cache(maxsize=_KEPT)
def _kept(text: str, *, with_escapes: bool) -> exp.Condition | None:
    """As `_parsed`: a statement asks several times for the tree of one text, and a loop of statements again."""
    return _parsed(text, with_escapes=with_escapes)


def _is_unclear(text: str) -> bool:
    """Whether a text has parts that may be texts or names, or texts whose value is a setting's to say.

    Where they end is clear: Spark's words end in the same places by all settings. Where double quotes are those of
    names, such a name is taken for a text, and has no type then.
    """
    if '"' not in text and "\\" not in text:
        return False
    return any(found[0] in '"\\' or (found[0] == "'" and "\\" in found) for found in _QUOTES.findall(text))


def _call(name: str, arguments: Sequence[exp.Condition | None]) -> exp.Condition | None:
    """A function of a Column by its name in Spark; an argument that cannot be told is an unknown one of AND and OR."""
    name = name.lower()
    known = [argument for argument in arguments if argument is not None]
    if name in ("and", "or") and len(arguments) == 2:
        left, right = (argument or exp.Placeholder() for argument in arguments)
        return _BINARY[name](this=left, expression=right)
    if len(known) != len(arguments) or not known:
        return None
    first, rest = known[0], known[1:]
    if name in _BINARY and len(rest) == 1:
        return _BINARY[name](this=first, expression=rest[0])
    if name in ("not", "!") and not rest:
        return exp.Not(this=first)
    if name in ("isnull", "isnotnull") and not rest:
        is_null = exp.Is(this=first, expression=exp.Null())
        return is_null if name == "isnull" else exp.Not(this=is_null)
    if name == "in" and rest:
        return exp.In(this=first, expressions=rest)
    if name == "get" and len(rest) == 1:
        return exp.Anonymous(this=name, expressions=known)
    if name in _ELEMENT_AT and len(rest) == 1:
        return exp.Bracket(this=first, expressions=rest, offset=1, safe=name == "try_element_at")
    if name == SINCE:
        return exp.Anonymous(this=SINCE, expressions=known)
    return None


def _name(text: str) -> exp.Condition | None:
    parts = text.split(".")
    if len(parts) > 2 or not all(map(_PLAIN_NAME.fullmatch, parts)):
        return None
    return exp.column(parts[-1], table=parts[0] if len(parts) == 2 else None)


# --- Columns of a classic session, by their text -------------------------------------------------


def _of_text(text: str) -> exp.Condition | None:
    """``and(>=(k, 1), =(name, 'x'))``: functions in front, names and numbers bare, texts quoted."""
    tokens = _TOKEN.findall(text)
    if "".join(tokens) != text:
        return None
    try:
        tree, at = _argument(tokens, 0)
    except IndexError:
        return None
    return tree if at == len(tokens) else None


def _argument(tokens: list[str], at: int) -> tuple[exp.Condition | None, int]:
    """The tree that begins at a token, and the place of the comma, bracket or end behind it."""
    begin = at = at + tokens[at].isspace()
    name = tokens[at].strip()
    at += 1
    if at < len(tokens) and tokens[at] == "(" and " " not in name:
        arguments: list[exp.Condition | None] = []
        while tokens[at] != ")" and tokens[at + 1] != ")":
            argument, at = _argument(tokens, at + 1)
            arguments.append(argument)
        tree, at = _call(name, arguments), at + 1
    else:
        tree = _leaf(name)
    if at < len(tokens) and tokens[at] not in ",)":
        # No function but SQL text, which a Column may be made of, or a form that is not looked into.
        end = _end_of_argument(tokens, at)
        return _parsed("".join(tokens[begin:end])), end
    return tree, at


def _end_of_argument(tokens: list[str], at: int) -> int:
    depth = 0
    while at < len(tokens) and (depth or tokens[at] not in ",)"):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        at += 1
    return at


def _leaf(text: str) -> exp.Condition | None:
    if text.startswith("'"):
        return None if "\\" in text else exp.Literal.string(text[1:-1])
    if _NUMBER.fullmatch(text):
        return _signed(text)
    if DAY.fullmatch(text):
        return exp.cast(exp.Literal.string(text), "date")
    if (constant := _CONSTANTS.get(text.lower())) is not None:
        return constant.copy()
    return _name(text) or _parsed(text)


def _signed(text: str) -> exp.Condition:
    number = exp.Literal.number(text.removeprefix("-"))
    return exp.Neg(this=number) if text.startswith("-") else number


# --- those of them whose text is not clear, by the nodes of the JVM, each of which costs some calls ----------------


def _of_node(condition: Column) -> exp.Condition | None:
    of_jvm: Any = vars(condition).get("_jc")
    try:
        return _node(of_jvm.node())
    except Py4JError:  # a node of another kind than is known here
        return None


def _node(node: Any) -> exp.Condition | None:
    match node.getClass().getSimpleName():
        case "UnresolvedAttribute":
            names = _of_seq(node.nameParts())
            if len(names) > 2:
                return None
            return exp.column(*(exp.to_identifier(name, quoted=True) for name in reversed(names)))
        case "ExpressionColumnNode":
            return _of_expression(node.expression())
        case "UnresolvedFunction":
            arguments = [] if node.isDistinct() else _of_seq(node.arguments())
            return _call(node.functionName(), [_node(argument) for argument in arguments])
        case "UnresolvedExtractValue":
            return _extracted(_node(node.child()), _node(node.extraction()))
        case "Literal":
            return None if node.dataType().isDefined() else _constant(node.value())
        case "SqlExpression":
            return _parsed(node.expression())
    return None


def _of_expression(found: Any) -> exp.Condition | None:
    """A column that a frame has given, or a field of one."""
    kind = found.getClass().getSimpleName()
    if kind == "Alias":
        return _of_expression(found.child())
    return _parsed(found.sql()) if kind in ("AttributeReference", "GetStructField") else None


def _extracted(of: exp.Condition | None, key: exp.Condition | None) -> exp.Condition | None:
    """An element of an array, a value of a map or a field of a struct."""
    return None if of is None or key is None else exp.Bracket(this=of, expressions=[key])


def _of_seq(found: Any) -> list[Any]:
    """Scala's list as Python's."""
    return [found.apply(at) for at in range(found.size())]


def _constant(value: object) -> exp.Condition | None:
    if value is None:
        return exp.Null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, int):
        return _signed(str(value))
    return exp.Literal.string(value) if isinstance(value, str) and "\\" not in value else None


# --- Columns of a Connect session, which are trees themselves ------------------------------------


def _of_connect(expression: Any) -> exp.Condition | None:
    build = _CONNECT.get(type(expression).__name__)
    return build(expression) if build else None


def _connect_literal(expression: Any) -> exp.Condition | None:
    value, kind = expression._value, type(expression._dataType).__name__
    if kind == "NullType":
        return exp.Null()
    if kind == "StringType":
        return exp.Literal.string(value)
    if kind == "BooleanType":
        return exp.Boolean(this=value)
    if kind in ("ByteType", "ShortType", "IntegerType", "LongType", "DecimalType") and _NUMBER.fullmatch(str(value)):
        return _signed(str(value))
    if kind == "DateType" and DAY.fullmatch(str(expression)):
        return exp.cast(exp.Literal.string(str(expression)), "date")
    return None


def _column(text: str) -> exp.Condition | None:
    """A name with quotes."""
    parsed = _parsed(text)
    is_name = isinstance(parsed, exp.Column) and not parsed.args.get("db")
    return parsed if is_name else None


_CONNECT: dict[str, Callable[[Any], exp.Condition | None]] = {
    "LiteralExpression": _connect_literal,
    "ColumnReference": lambda found: _name(found._unparsed_identifier) or _column(found._unparsed_identifier),
    "SQLExpression": lambda found: _parsed(found._expr),
    "UnresolvedExtractValue": lambda found: _extracted(_of_connect(found._child), _of_connect(found._extraction)),
    "UnresolvedFunction": lambda found: (
        None if found._is_distinct else _call(found._name, [_of_connect(argument) for argument in found._args])
    ),
}
