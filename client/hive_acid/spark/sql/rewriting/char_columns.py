"""CHAR columns in a statement: they are compared by Hive's rule also where Spark has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.errors import SqlError
from hive_acid.spark.conditions.char_conditions import TypeOf, has_chars, in_subqueries, with_blanks
from hive_acid.spark.sql.hints import direct_sources
from hive_acid.spark.sql.names import Names
from hive_acid.spark.sql.rewriting.edits import Edits
from hive_acid.spark.sql.rewriting.reads import ChangedTable
from hive_acid.spark.sql.rewriting.references import Reference

_OTHER_TEXTS = ("varchar", "string")


class CharColumns:
    """What is known of the types of columns in a statement, by which the comparisons of CHARs are found."""

    def __init__(
        self,
        references: Sequence[Reference],
        target: ChangedTable | None,
        names: Names,
        is_cte_of_statement: Callable[[exp.Table], bool],
    ) -> None:
        self._tables = {id(found.node): found.table for found in references}
        self._target = target
        self._names = names
        self._is_cte_of_statement = is_cte_of_statement

    @property
    def may_be_compared(self) -> bool:
        """Whether there are any."""
        return any(map(has_chars, (*self._tables.values(), *([self._target.table] if self._target else []))))

    def compare(self, tree: exp.Expr, edits: Edits) -> None:
        """Have them compared as Hive does. Raises SqlError where Spark's joins would not.

        The comparisons of the changed table's own rows with anything but a subquery are left to the verb.
        """
        for select in tree.find_all(exp.Select):
            self._refuse_joined_blanks(select)
        for select in tree.find_all(exp.Select):
            type_of = self._type_of_in(select)
            parts = [part for child in select.iter_expressions() for part in with_blanks(child, type_of)]
            for part in parts if direct_sources(select) else ():
                edits.wrap(*part.span(edits.text), *part.around)
        for node in tree.find_all(exp.Predicate):
            for part in in_subqueries(node, self._type_of_in(node.find_ancestor(exp.Select)), self._type_of_in):
                edits.wrap(*part.span(edits.text), *part.around)

    def _type_of_in(self, select: exp.Select | None) -> TypeOf:
        return lambda qualifier, name: self._type_in(select, qualifier, name)

    def _type_in(self, select: exp.Select | None, qualifier: str, name: str) -> str | None:
        """The type of a column in `select`, which sees its own sources, then those of the selects around it."""
        while select is not None:
            sources = [(of.alias_or_name.lower(), self._types_of(of)) for of in direct_sources(select)]
            called = [types for alias, types in sources if alias == qualifier]
            if called:
                return (called[0] or {}).get(name)
            if not qualifier:
                having = [types for _, types in sources if types is not None and name in types]
                if having or any(types is None for _, types in sources) or select.args.get("laterals"):
                    return having[0][name] if len(having) == 1 else None
            select = select.find_ancestor(exp.Select)
        if self._target is None or qualifier not in ("", self._target.alias.lower()):
            return None
        return _types(self._target.table).get(name)

    def _types_of(self, source: exp.Expr) -> Mapping[str, str | None] | None:
        """The types of a source's columns, None if they are not known; those of a view of Spark's by its schema."""
        if source.args.get("pivots"):
            return None
        called = source.alias_column_names if isinstance(source, exp.Subquery | exp.Table) else []
        if isinstance(source, exp.Subquery):
            return _called(self._shown(source.this), called)
        if not isinstance(source, exp.Table):
            return None
        parts = source.parts
        if (table := self._tables.get(id(source))) is not None:
            return _called(list(_types(table).items()), called)
        if len(parts) == 1 and any(cte.alias.lower() == source.name.lower() for cte in source.root().find_all(exp.CTE)):
            if (cte := _cte(source)) is None:
                return None
            return _called(self._shown(cte.this), called or cte.alias_column_names)
        if called or self._is_cte_of_statement(source) or not all(isinstance(part, exp.Identifier) for part in parts):
            return None
        return self._names.types_of_view([part.name for part in parts])

    def _shown(self, query: exp.Expr) -> list[tuple[str, str | None]] | None:
        """The columns that a query shows, with the types of those that are columns in it; None if it is not known.

        Those of a UNION and its like have none.
        """
        if not isinstance(query, exp.Select):
            return None
        found: list[tuple[str, str | None]] = []
        for one in query.expressions:
            given = one.unalias()
            if given.is_star:
                qualifier = given.table.lower() if isinstance(given, exp.Column) else ""
                star = given.this if isinstance(given, exp.Column) else given
                sources = [of for of in direct_sources(query) if qualifier in ("", of.alias_or_name.lower())]
                types = [self._types_of(of) for of in sources]
                if not types or None in types or star.args.get("except_") or star.args.get("replace"):
                    return None
                found += [column for of in types for column in (of or {}).items()]
            elif isinstance(given, exp.Column):
                names = [part.name.lower() for part in given.parts]
                kind = self._type_in(query, *names) if len(names) == 2 else None
                if len(names) == 1:
                    kind = self._type_in(query, "", names[0])
                found.append((one.alias_or_name.lower(), kind))
            else:
                found.append((one.alias_or_name.lower(), None))
        return found

    def _refuse_joined_blanks(self, select: exp.Select) -> None:
        """Raise SqlError for a join by name of a CHAR with another text: Spark would count the blanks of the CHAR."""
        sources = direct_sources(select)
        for join in select.args.get("joins") or ():
            names = {of.name.lower() for of in join.args.get("using") or ()}
            if not names and join.args.get("method") != "NATURAL":
                continue
            joined = sources[: 1 + next(at for at, of in enumerate(sources) if of is join.this)]
            *left, right = (self._types_of(of) or {} for of in joined)
            for name in sorted(names & right.keys() if names else right.keys()):
                kinds = [(of.get(name) or "").strip().lower() for of in (*left, right)]
                has_char, has_text = (any(kind.startswith(of) for kind in kinds) for of in ("char", _OTHER_TEXTS))
                if has_char and has_text:
                    raise SqlError(
                        f"a join by the name {name} would compare a CHAR, with the blanks at its end, and another "
                        f"text: join ON x.{name} = y.{name}"
                    )


def hides_chars(where: str, table: Table) -> bool:
    """Whether it could not be told if a CHAR is compared in a condition as Hive does."""
    return "\\" in where and has_chars(table)


def _types(table: Table) -> dict[str, str | None]:
    return {column.name: column.type for column in table.all_columns}


def _called(columns: Sequence[tuple[str, str | None]] | None, names: Sequence[str]) -> dict[str, str | None] | None:
    """Columns with their types, under other names if there are any; None if they are not known."""
    if columns is None:
        return None
    given = [name.lower() for name in names] if len(names) == len(columns) else [name for name, _ in columns]
    return {name: kind for name, (_, kind) in zip(given, columns, strict=True)}


def _cte(source: exp.Table) -> exp.CTE | None:
    """The CTE that a name means: the nearest one around it, which sees those before it. None for one that recurs."""
    around: exp.Expr = source
    while around.parent is not None:
        within, around = around, around.parent
        with_ = around if isinstance(around, exp.With) else around.args.get("with_")
        if not isinstance(with_, exp.With):
            continue
        if with_.recursive:
            return None
        known = list(takewhile(lambda cte, end=within: cte is not end, with_.expressions))  # type: ignore[misc]
        named = next((cte for cte in reversed(known) if cte.alias.lower() == source.name.lower()), None)
        if isinstance(named, exp.CTE):
            return named
        if around is with_ and around.parent is not None:
            around = around.parent  # whose CTEs these are
    return None
