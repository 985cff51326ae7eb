"""Queries and expressions with the metastore's tables taken out of them, each replaced by a place for its frame.

The text stays the user's but for the names: the syntax tree only tells where they are. What comes out is a template
for `SparkSession.sql`, which takes frames by name and leaves no view behind.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.errors import SqlError
from hive_acid.spark.conditions.char_conditions import TypeOf, has_chars, in_subqueries, with_blanks
from hive_acid.spark.conditions.nesting import deeply_nested
from hive_acid.spark.jvm.frames.narrowing import names_moment
from hive_acid.spark.read.table_frame import KEY_COLUMNS, ROW_ID, has_row_ids
from hive_acid.spark.read.totals.extremes import Extreme
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.sql.hints import asked_totals, direct_sources, wanted_text
from hive_acid.spark.sql.names import Names
from hive_acid.spark.sql.parsing import SHOWN_LENGTH, parsed, with_cut_times, without_table_statements
from hive_acid.spark.values.quoting import quoted

_WITH_CATALOG = 3
"""So many parts has a name that names its catalog, too."""
_OTHER_TEXTS = ("varchar", "string")
_CHOOSING = ("sample", "version", "when", "changes", "partition")
"""Clauses behind a name that is not ours by which it is read otherwise than a frame is."""
_MEANT = {"acid.fetch.deleted.rows": "{}.deletes lists rows that are deleted"}
"""What to say instead of an option of Hive's readers."""


@dataclass(frozen=True, slots=True)
class TableRead:
    """A table that a statement reads, whether with ROW__ID, and what is surely true of the rows that matter.

    `is_undivided` says that a subquery may ask for its rows (`hive_acid.spark.read.undivided`), `totals_of` that only
    their number and these extremes are asked for.
    """

    table: Table
    row_id: bool
    where: str | None
    is_undivided: bool = False
    totals_of: tuple[Extreme, ...] | None = None
    view: ViewQuery | None = None
    """What a view shows; None for a table."""

    @property
    def tables(self) -> list[str]:
        """The tables that are read, ``db.table``: a view's are those of its query."""
        return [self.table.full_name] if self.view is None else tables_of(self.view.sources)


def tables_of(sources: Mapping[str, TableRead]) -> list[str]:
    """The tables that are read at these places, ``db.table``."""
    return [name for source in sources.values() for name in source.tables]


@dataclass(frozen=True, slots=True)
class ViewQuery:
    """The template of a view's query, what stands at its places, and whether it has joins, or names a moment."""

    template: str
    sources: Mapping[str, TableRead]
    joins: bool = False
    names_moment: bool = False


@dataclass(frozen=True, slots=True)
class OtherNames:
    """A template in which names that are not ours have places, too, and what Spark calls them there."""

    template: str
    names: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class StoredQuery:
    """The text of a view, in which each table of the metastore has its database.

    `is_ours` says whether there is one that Spark does not read itself; `plain` are those that it does, and `foreign`
    the names of what is not the metastore's.
    """

    text: str
    is_ours: bool
    plain: tuple[str, ...]
    foreign: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangedTable:
    """The table whose rows an expression is about, and the one name by which the verb that takes it knows them."""

    table: Table
    alias: str
    source: tuple[str, ...] = ()
    """By which name, in small letters, columns of the other rows may be called as well, ``database.table``."""

    @property
    def hides_database(self) -> bool:
        """Whether ``database.…`` means a column of that name: by it nobody calls a table that has an alias."""
        columns = self.table.all_columns
        return self.alias.lower() != self.table.name and any(one.name == self.table.called_in for one in columns)


@dataclass(frozen=True, slots=True)
class _Reference:
    """A name in a query that means a table of the metastore."""

    node: exp.Table
    table: Table
    select: exp.Select | None

    @property
    def alias(self) -> str:
        return str(self.node.alias or self.node.name)


class Rewriter:
    """The templates of one statement, and the frames that they need."""

    def __init__(self, names: Names, arguments: Arguments = None, ctes: Iterable[str] = ()) -> None:
        """`ctes` are the names of those that stand before the statement, which its expressions may read."""
        self._names = names
        self._arguments = arguments
        self._ctes = {name.lower(): f"acid_cte_{position}" for position, name in enumerate(ctes)}
        self.sources: dict[str, TableRead] = {}
        self.read_ctes: dict[str, str] = {}
        self.has_qualified = False
        """Whether names that are not ours were given their database."""
        self.compares_chars = False
        """Whether there are CHAR columns that may be compared."""
        self.for_spark = ""
        """The query as Spark understands it, names as they were."""
        self.joins = False
        """Whether rows of one table may decide which of another one count."""
        self.names_moment = False
        """Whether it may be another query the next time that it is analysed."""
        self.others = OtherNames("", {})
        """The template of a query, with places for more of its names."""
        self._others: list[exp.Table] = []
        """Names that are not ours."""

    @property
    def tables(self) -> list[str]:
        """The tables that the templates read, ``db.table``."""
        return tables_of(self.sources)

    def stored(self, text: str) -> StoredQuery:
        """A query as a view keeps it. Raises SqlError, also for one of a temporary table."""
        text = without_table_statements(with_cut_times(text), self._names)
        edits = _Edits(text)
        with deeply_nested(text):
            ours = [(reference.node, reference.table) for reference in self._references(parsed(text, text), edits)]
        others = [(node, self._names.plain([part.name for part in node.parts])) for node in self._others]
        plain = [(node, table) for node, table in others if table is not None]
        for node, table in (*ours, *plain):
            if table.is_temporary:
                raise SqlError(f"{table.called} is a temporary table: a view that stays cannot show it")
            if len(node.parts) < _WITH_CATALOG:
                name = ".".join(map(quoted, table.called.split(".")))
                edits.replace(node.parts[0].meta["start"], node.parts[-1].meta["end"] + 1, "", name)
        foreign = (".".join(part.name for part in node.parts) for node, table in others if table is None)
        return StoredQuery(
            edits.template().format(), bool(ours), tuple(table.full_name for _, table in plain), tuple(foreign)
        )

    def query(self, text: str) -> str:
        """The template of a query. Raises SqlError if it cannot be understood, UnsupportedTableError."""
        self.for_spark = with_cut_times(text)
        text = without_table_statements(self.for_spark, self._names)
        with deeply_nested(text):
            return self._edited(text, parsed(text, text), None)

    def expression(self, text: str, target: ChangedTable | None = None) -> str:
        """The template of a value or a condition over the rows of `target`. Raises SqlError."""
        lead, text = "SELECT ", with_cut_times(text)
        with deeply_nested(text):
            tree = parsed(lead + text, text)
            clauses = [clause for clause, value in tree.args.items() if value and clause != "expressions"]
            if clauses or len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Alias | exp.Aliases):
                raise SqlError(f"'{text[:SHOWN_LENGTH]}' is not one value or condition")
            return self._edited(lead + text, tree, target)[len(lead) :]

    def _edited(self, text: str, tree: exp.Expr, target: ChangedTable | None) -> str:
        edits = _Edits(text)
        references = list(self._references(tree, edits))
        asked = _asks_for_rows(tree, references)
        self.joins = _has_joins(tree)
        for reference in references:
            is_asked = asked and not reference.node.find_ancestor(exp.Lateral)
            self._replace(reference, edits, is_asked=is_asked)
        _shorten_columns(tree, references, edits)
        _hide_row_ids(references, edits)
        self._compare_chars(tree, references, target, edits)
        if target is not None:
            _edit_target(tree, target, edits)
        template = edits.template()
        views = [found.view for found in self.sources.values() if found.view is not None]
        self.names_moment = names_moment(text) or any(view.names_moment for view in views)
        self.joins |= any(view.joins for view in views)
        if self.joins and target is None:
            self.others = self._with_others(tree, edits)
        return template

    def _with_others(self, tree: exp.Expr, edits: _Edits) -> OtherNames:
        """As the template of `edits`, which are changed for it. Names by which columns are called stay as they are."""
        places: dict[str, str] = {}
        prefixes = {tuple(part.name.lower() for part in column.parts[:-1]) for column in tree.find_all(exp.Column)}
        for node in self._others:
            written = tuple(part.name.lower() for part in node.parts)
            is_called = len(written) > 1 and any(one[: len(written)] == written for one in prefixes)
            if is_called or any(node.args.get(clause) for clause in _CHOOSING) or "start" not in node.parts[0].meta:
                continue
            parts = [part.name for part in node.parts]
            name = self._names.qualified(parts) or ".".join(map(quoted, parts))
            place = places.setdefault(name, f"acid_other_{len(places)}")
            _put_frame(node, place, edits)
        return OtherNames(edits.template(), {place: name for name, place in places.items()})

    # --- CHAR ----------------------------------------------------------------------------------

    def _compare_chars(
        self, tree: exp.Expr, references: list[_Reference], target: ChangedTable | None, edits: _Edits
    ) -> None:
        """CHAR columns are compared by Hive's rule also where Spark has none.

        The comparisons of `target`'s own rows with anything but a subquery are left to the verb.
        """
        known = [*(found.table for found in references), *([target.table] if target else [])]
        if not any(map(has_chars, known)):
            return
        self.compares_chars = True
        tables = {id(found.node): found.table for found in references}
        for select in tree.find_all(exp.Select):
            self._refuse_joined_blanks(select, tables, target)

        def type_of_in(select: exp.Select | None) -> TypeOf:
            return lambda qualifier, name: self._type_in(select, tables, target, qualifier, name)

        for select in tree.find_all(exp.Select):
            type_of = type_of_in(select)
            parts = [part for child in select.iter_expressions() for part in with_blanks(child, type_of)]
            for part in parts if direct_sources(select) else ():
                start, end, meant = part.in_text(edits.text)
                edits.replace(start, end, "", meant)
        for node in tree.find_all(exp.Predicate):
            for part in in_subqueries(node, type_of_in(node.find_ancestor(exp.Select)), type_of_in):
                start, end, meant = part.in_text(edits.text)
                edits.replace(start, end, "", meant)

    def _type_in(
        self,
        select: exp.Select | None,
        tables: Mapping[int, Table],
        target: ChangedTable | None,
        qualifier: str,
        name: str,
    ) -> str | None:
        """The type of a column in `select`, which sees its own sources, then those of the selects around it."""
        while select is not None:
            sources = [(of.alias_or_name.lower(), self._types_of(of, tables, target)) for of in direct_sources(select)]
            called = [types for alias, types in sources if alias == qualifier]
            if called:
                return (called[0] or {}).get(name)
            if not qualifier:
                having = [types for _, types in sources if types is not None and name in types]
                if having or any(types is None for _, types in sources) or select.args.get("laterals"):
                    return having[0][name] if len(having) == 1 else None
            select = select.find_ancestor(exp.Select)
        if target is None or qualifier not in ("", target.alias.lower()):
            return None
        return _types(target.table).get(name)

    def _types_of(
        self, source: exp.Expr, tables: Mapping[int, Table], target: ChangedTable | None
    ) -> Mapping[str, str | None] | None:
        """The types of a source's columns, None if they are not known; those of a view of Spark's by its schema."""
        if source.args.get("pivots"):
            return None
        called = source.alias_column_names if isinstance(source, exp.Subquery | exp.Table) else []
        if isinstance(source, exp.Subquery):
            return _called(self._shown(source.this, tables, target), called)
        if not isinstance(source, exp.Table):
            return None
        parts = source.parts
        if (table := tables.get(id(source))) is not None:
            return _called(list(_types(table).items()), called)
        if len(parts) == 1 and any(cte.alias.lower() == source.name.lower() for cte in source.root().find_all(exp.CTE)):
            if (cte := _cte(source)) is None:
                return None
            return _called(self._shown(cte.this, tables, target), called or cte.alias_column_names)
        if called or self._is_cte(source) or not all(isinstance(part, exp.Identifier) for part in parts):
            return None
        return self._names.types_of_view([part.name for part in parts])

    def _shown(
        self, query: exp.Expr, tables: Mapping[int, Table], target: ChangedTable | None
    ) -> list[tuple[str, str | None]] | None:
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
                types = [self._types_of(of, tables, target) for of in sources]
                if not types or None in types or star.args.get("except_") or star.args.get("replace"):
                    return None
                found += [column for of in types for column in (of or {}).items()]
            elif isinstance(given, exp.Column):
                names = [part.name.lower() for part in given.parts]
                kind = self._type_in(query, tables, target, *names) if len(names) == 2 else None
                if len(names) == 1:
                    kind = self._type_in(query, tables, target, "", names[0])
                found.append((one.alias_or_name.lower(), kind))
            else:
                found.append((one.alias_or_name.lower(), None))
        return found

    def _refuse_joined_blanks(
        self, select: exp.Select, tables: Mapping[int, Table], target: ChangedTable | None
    ) -> None:
        """Raise SqlError for a join by name of a CHAR with another text: Spark would count the blanks of the CHAR."""
        sources = direct_sources(select)
        for join in select.args.get("joins") or ():
            names = {of.name.lower() for of in join.args.get("using") or ()}
            if not names and join.args.get("method") != "NATURAL":
                continue
            joined = sources[: 1 + next(at for at, of in enumerate(sources) if of is join.this)]
            *left, right = (self._types_of(of, tables, target) or {} for of in joined)
            for name in sorted(names & right.keys() if names else right.keys()):
                kinds = [(of.get(name) or "").strip().lower() for of in (*left, right)]
                has_char, has_text = (any(kind.startswith(of) for kind in kinds) for of in ("char", _OTHER_TEXTS))
                if has_char and has_text:
                    raise SqlError(
                        f"a join by the name {name} would compare a CHAR, with the blanks at its end, and another "
                        f"text: join ON x.{name} = y.{name}"
                    )

    # --- tables --------------------------------------------------------------------------------

    def _references(self, tree: exp.Expr, edits: _Edits) -> Iterator[_Reference]:
        """Names outside of CTEs that the metastore knows. A CTE sees those before it, a recursive one itself too.

        Those of CTEs of the whole statement get their places in `edits`.
        """
        ctes_of_all = {cte.alias.lower() for cte in tree.find_all(exp.CTE)} | self._ctes.keys()
        named = ([part.name for part in node.parts] for node in tree.find_all(exp.Table) if _is_name(node))
        self._names.look_up(parts for parts in named if len(parts) > 1 or parts[0].lower() not in ctes_of_all)
        pending: list[tuple[exp.Expr, frozenset[str]]] = [(tree, frozenset())]
        while pending:
            node, ctes = pending.pop()
            if isinstance(node, exp.Hint):
                continue
            with_ = node.args.get("with_")
            if isinstance(with_, exp.With):
                for cte in with_.expressions:
                    own = frozenset({cte.alias.lower()})
                    pending.append((cte.this, ctes | own if with_.recursive else ctes))
                    ctes |= own
            if isinstance(node, exp.Table) and self._is_cte(node) and node.name.lower() not in ctes:
                self._replace_cte(node, edits)
            elif isinstance(node, exp.Table) and (table := self._table(node, ctes)) is not None:
                yield _Reference(node, table, node.find_ancestor(exp.Select))
            elif isinstance(node, exp.Table) and not (len(node.parts) == 1 and node.name.lower() in ctes):
                if _is_name(node):
                    self._others.append(node)
                self._qualify(node, edits)
            pending += [(child, ctes) for child in node.iter_expressions() if child is not with_]

    def _table(self, node: exp.Table, ctes: frozenset[str]) -> Table | None:
        if isinstance(node.this, exp.Anonymous) and node.this.name.upper() == "IDENTIFIER":
            raise SqlError("IDENTIFIER(…) in the place of a table is not understood: give the table's name itself")
        if isinstance(node.this, exp.Anonymous):
            _refuse_options(node.this)
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) for part in parts):
            return None
        if len(parts) == 1 and parts[0].name.lower() in ctes:
            return None
        table = self._names.source([part.name for part in parts])
        if table is None:
            return None
        alias = node.args.get("alias")
        is_dated = alias is not None and isinstance(alias.this, exp.Parameter)  # ``t@v1``
        if is_dated or node.args.get("version") or node.args.get("when"):
            raise SqlError(
                f"{table.full_name}: AS OF is not supported; `with acid.snapshot():` holds a snapshot for several reads"
            )
        if "start" not in parts[0].meta:
            raise SqlError(f"the place of {table.full_name} in the statement is not understood: write it another way")
        return table

    def _replace(self, reference: _Reference, edits: _Edits, *, is_asked: bool) -> None:
        select = reference.select
        with_row_id = has_row_ids(reference.table) and select is not None and _mentions_row_id(select)
        where = None
        if select is not None and not edits.is_ambiguous:
            where = wanted_text(select, reference.node, reference.table, self._arguments)
            if where is not None and _hides_chars(where, reference.table):
                where = None
        view = self._view(reference.table) if reference.table.is_view else None
        totals_of = None if select is None else asked_totals(select, reference.node, reference.table)
        read = TableRead(reference.table, with_row_id, where, is_asked, totals_of, view)
        _put_frame(reference.node, self._key(read), edits)

    def _view(self, view: Table) -> ViewQuery:
        within = Rewriter(self._names.of_view(view))
        return ViewQuery(within.query(view.view_text), within.sources, within.joins, within.names_moment)

    def _is_cte(self, node: exp.Table) -> bool:
        """Whether a name means a CTE of the statement, unless one of the query itself has it."""
        parts = node.parts
        return len(parts) == 1 and isinstance(parts[0], exp.Identifier) and node.name.lower() in self._ctes

    def _replace_cte(self, node: exp.Table, edits: _Edits) -> None:
        key = self._ctes[node.name.lower()]
        self.read_ctes[key] = node.name.lower()
        _put_frame(node, key, edits)

    def _qualify(self, node: exp.Table, edits: _Edits) -> None:
        """Give a name that is not ours the database in which it is looked for, where Spark would look in another."""
        parts = node.parts
        if not all(isinstance(part, exp.Identifier) and "start" in part.meta for part in parts):
            return
        name = self._names.qualified([part.name for part in parts])
        if name is not None:
            edits.replace(parts[0].meta["start"], parts[-1].meta["end"] + 1, "", name)
            self.has_qualified = True

    def _key(self, source: TableRead) -> str:
        """The name of a source's place; equal sources share theirs."""
        for key, known in self.sources.items():
            if known == source:
                return key
        key = f"acid_{len(self.sources)}"
        self.sources[key] = source
        return key


def _refuse_options(given: exp.Anonymous) -> None:
    """Raise SqlError for ``t('name' = 'value')``, by which Hive's readers are told something."""
    for one in given.expressions:
        if isinstance(one, exp.EQ) and isinstance(one.left, exp.Literal) and isinstance(one.right, exp.Literal):
            meant = _MEANT.get(one.left.name, "leave it out").format(given.name)
            raise SqlError(f"{given.name}('{one.left.name}' = …): options of a table in a query are Hive's: {meant}")


def _is_name(node: exp.Table) -> bool:
    return bool(node.parts) and all(isinstance(part, exp.Identifier) for part in node.parts)


class _Edits:
    """Replacements in a text, made all at once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._made: dict[int, tuple[int, str]] = {}

    @property
    def is_ambiguous(self) -> bool:
        """Whether a WHERE may say something else than it seems to.

        Of steps with ``|>`` between, it may be about what an earlier one has made. What double quotes stand for, a text
        or a name, and what a backslash, are settings of the session; what ``${name}`` stands for, too.
        """
        return any(sign in self.text for sign in ("|>", '"', "\\", "${"))

    def replace(self, start: int, end: int, place: str, literal: str = "") -> None:
        """Put `place`, which belongs to the template, and then the plain text `literal` for a slice."""
        self._made[start] = (end, place + escaped(literal))

    def template(self) -> str:
        parts, at = [], 0
        for start, (end, replacement) in sorted(self._made.items()):
            parts += [escaped(self.text[at:start]), replacement]
            at = end
        return "".join((*parts, escaped(self.text[at:])))


def escaped(text: str) -> str:
    """Plain text as part of a template."""
    return text.replace("{", "{{").replace("}", "}}")


def _put_frame(node: exp.Table, key: str, edits: _Edits) -> None:
    """A place for a frame instead of a name, by which its columns are still called."""
    start, end = node.parts[0].meta["start"], node.parts[-1].meta["end"] + 1
    if node.alias:
        edits.replace(start, end, f"{{{key}}}")
    else:
        edits.replace(start, end, f"({{{key}}} AS ", f"{quoted(node.name)})")


def _has_joins(tree: exp.Expr) -> bool:
    return tree.find(exp.Join, exp.Exists) is not None or any(one.args.get("query") for one in tree.find_all(exp.In))


# --- columns -------------------------------------------------------------------------------------


def _shorten_columns(tree: exp.Expr, references: list[_Reference], edits: _Edits) -> None:
    """``database.table.column`` becomes ``table.column``: the frame is known by its last name only."""
    plain = [reference for reference in references if not reference.node.alias]
    if not plain:
        return
    for column in tree.find_all(exp.Column):
        parts = column.parts
        for reference in plain:
            of_table = [reference.table.called_in, reference.table.name]
            written = [part.name.lower() for part in reference.node.parts]
            for prefix in (written, of_table):
                if len(prefix) > 1 and [part.name.lower() for part in parts[: len(prefix)]] == prefix:
                    edits.replace(parts[0].meta["start"], parts[len(prefix) - 1].meta["start"], "")
                    break


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


def _hides_chars(where: str, table: Table) -> bool:
    """Whether it could not be told if a CHAR is compared in a condition as Hive does."""
    return "\\" in where and has_chars(table)


def _asks_for_rows(tree: exp.Expr, references: list[_Reference]) -> bool:
    """Whether a WHERE has a value from a subquery that may ask for the rows that the WHERE is about."""
    if not any(isinstance(found.this, exp.Query) for found in tree.find_all(exp.Subquery)):
        return False
    columns = {column.name for found in references for column in found.table.all_columns}
    return any(
        not isinstance(query.parent, exp.From | exp.Join | exp.In) and _is_correlated(query, columns)
        for where in tree.find_all(exp.Where)
        for query in where.find_all(exp.Subquery)
    )


def _is_correlated(query: exp.Subquery, columns: Collection[str]) -> bool:
    """Whether a subquery may name what is around it: `columns`, or those of a source that is not its own."""
    own = {of.alias_or_name.lower() for select in query.find_all(exp.Select) for of in direct_sources(select)}
    return any(
        (column.table.lower() not in own if column.table else column.name.lower() in columns)
        for column in query.find_all(exp.Column)
    )


def _mentions_row_id(node: exp.Expr) -> bool:
    return any(found.name.upper() == ROW_ID for found in node.find_all(exp.Identifier))


def _hide_row_ids(references: list[_Reference], edits: _Edits) -> None:
    """ROW__ID is a pseudo column: it is there where a query names it, and no ``*`` shows it."""
    selects = {id(found.select): found.select for found in references if found.select is not None}
    for select in selects.values():
        shown = [found.alias for found in references if found.select is select and has_row_ids(found.table)]
        if not shown or not _mentions_row_id(select):
            continue
        if any(found.args.get("method") == "NATURAL" for found in select.args.get("joins") or ()):
            raise SqlError("ROW__ID beside a NATURAL JOIN would be joined by: name the columns with USING")
        if any(found.find_ancestor(exp.Select) is select for found in select.find_all(exp.Pivot)):
            raise SqlError("ROW__ID beside PIVOT or UNPIVOT would be one of its columns: put the table in a subquery")
        for star in select.find_all(exp.Star):
            if star.find_ancestor(exp.Select) is select and not isinstance(star.parent, exp.Count):
                _except_row_id(star, shown, edits)


def _except_row_id(star: exp.Star, shown: list[str], edits: _Edits) -> None:
    excepted = [f"{quoted(alias)}.{ROW_ID}" for alias in shown]
    if isinstance(star.parent, exp.Column):
        qualifier = star.parent.table.lower()
        if qualifier not in (alias.lower() for alias in shown):
            return
        excepted = [ROW_ID]
    if "start" not in star.meta or star.args.get("except_") or star.args.get("replace"):
        raise SqlError("ROW__ID beside a * with EXCEPT, or one that is not written: name the columns")
    end = star.meta["end"] + 1
    edits.replace(end, end, "", f" EXCEPT ({', '.join(excepted)})")


def _edit_target(tree: exp.Expr, target: ChangedTable, edits: _Edits) -> None:
    """Columns of the changed row by its alias alone, and its ROW__ID as the columns that hold it."""
    alias = target.alias.lower()
    for column in tree.find_all(exp.Column):
        parts = column.parts
        names = [part.name.lower() for part in parts]
        if any("start" not in part.meta for part in parts):
            continue
        source = list(target.source)
        is_source = source and names[: len(source)] == source and names[len(source) :] and source[0] != alias
        if is_source and not _is_shadowed(column, source[-1]):
            edits.replace(parts[0].meta["start"], parts[len(source) - 1].meta["start"], "")
            continue
        if _is_shadowed(column, alias):
            continue
        owners = [[alias]] if target.hides_database else [[target.table.called_in, alias], [alias]]
        qualified = next((len(of) for of in owners if of == names[: len(of)] and names[len(of) :]), 0)
        start, rest = parts[0].meta["start"], parts[qualified]
        names_id = rest.name.upper() == ROW_ID and has_row_ids(target.table)
        if names_id and (qualified or not _is_in_subquery(column)):
            fields = zip(("writeId", "bucketId", "rowId"), KEY_COLUMNS, strict=True)
            struct = ", ".join(f"'{field}', {quoted(target.alias)}.{key}" for field, key in fields)
            edits.replace(start, rest.meta["end"] + 1, "", f"named_struct({struct})")
        elif qualified == 2:
            edits.replace(start, parts[1].meta["start"], "")


def _is_shadowed(column: exp.Column, alias: str) -> bool:
    """Whether a subquery around the column has a table of that name, which its qualifier then means."""
    select = column.find_ancestor(exp.Select)
    while select is not None:
        if any(source.alias_or_name.lower() == alias for source in direct_sources(select)):
            return True
        select = select.find_ancestor(exp.Select)
    return False


def _is_in_subquery(column: exp.Column) -> bool:
    select = column.find_ancestor(exp.Select)
    return select is not None and bool(direct_sources(select))
