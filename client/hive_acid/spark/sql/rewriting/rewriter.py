"""Queries and expressions with the metastore's tables taken out of them, each replaced by a place for its frame.

The text stays the user's but for the names: the syntax tree only tells where they are. What comes out is a template
for `SparkSession.sql`, which takes frames by name and leaves no view behind.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from hive_acid.catalog.table import Table
from hive_acid.errors import SqlError
from hive_acid.spark.conditions.nesting import deeply_nested
from hive_acid.spark.jvm.frames.narrowing import names_moment
from hive_acid.spark.read.table_frame import has_row_ids
from hive_acid.spark.sql.arguments import Arguments
from hive_acid.spark.sql.hints import asked_totals, key_conditions, wanted_text
from hive_acid.spark.sql.names import Names
from hive_acid.spark.sql.parsing import SHOWN_LENGTH, parsed, with_cut_times, without_table_statements
from hive_acid.spark.sql.rewriting.char_columns import CharColumns, hides_chars
from hive_acid.spark.sql.rewriting.edits import Edits, put_frame
from hive_acid.spark.sql.rewriting.reads import (
    ChangedTable,
    KeyWords,
    OtherNames,
    StoredQuery,
    TableRead,
    ViewQuery,
    tables_of,
)
from hive_acid.spark.sql.rewriting.references import (
    Reference,
    asks_for_rows,
    hide_row_ids,
    mentions_row_id,
    shorten_columns,
)
from hive_acid.spark.sql.rewriting.target_columns import edit_target
from hive_acid.spark.values.quoting import quoted

_WITH_CATALOG = 3
"""So many parts has a name that names its catalog, too."""
_CHOOSING = ("sample", "version", "when", "changes", "partition")
"""Clauses behind a name that is not ours by which it is read otherwise than a frame is."""
_WHEN = "acid_when_"
"""How the names of places for conditions begin."""
_MEANT = {"acid.fetch.deleted.rows": "{}.deletes lists rows that are deleted"}
"""What to say instead of an option of Hive's readers."""


class Rewriter:
    """The templates of one statement, and the frames that they need."""

    def __init__(self, names: Names, arguments: Arguments = None, ctes: Iterable[str] = ()) -> None:
        """`ctes` are the names of those that stand before the statement, which its expressions may read."""
        self._names = names
        self._arguments = arguments
        self._ctes = {name.lower(): f"acid_cte_{position}" for position, name in enumerate(ctes)}
        self.sources: dict[str, TableRead] = {}
        self.conditions: dict[str, KeyWords] = {}
        """What stands in the places of conditions on partition keys, in the template of a query."""
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
        edits = Edits(text)
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

    def query(self, text: str, *, places_conditions: bool = False) -> str:
        """The template of a query; with `places_conditions` it has places for conditions on partition keys, too.

        Raises SqlError if it cannot be understood, UnsupportedTableError.
        """
        self.for_spark = with_cut_times(text)
        text = without_table_statements(self.for_spark, self._names)
        with deeply_nested(text):
            return self._edited(text, parsed(text, text), None, places_conditions=places_conditions)

    def expression(self, text: str, target: ChangedTable | None = None) -> str:
        """The template of a value or a condition over the rows of `target`. Raises SqlError."""
        lead, text = "SELECT ", with_cut_times(text)
        with deeply_nested(text):
            tree = parsed(lead + text, text)
            clauses = [clause for clause, value in tree.args.items() if value and clause != "expressions"]
            if clauses or len(tree.expressions) != 1 or isinstance(tree.expressions[0], exp.Alias | exp.Aliases):
                raise SqlError(f"'{text[:SHOWN_LENGTH]}' is not one value or condition")
            return self._edited(lead + text, tree, target)[len(lead) :]

    def _edited(
        self, text: str, tree: exp.Expr, target: ChangedTable | None, *, places_conditions: bool = False
    ) -> str:
        edits = Edits(text)
        references = list(self._references(tree, edits))
        placed: list[tuple[str, str, str]] = []
        asked = asks_for_rows(tree, references)
        self.joins = _has_joins(tree)
        for reference in references:
            is_asked = asked and not reference.node.find_ancestor(exp.Lateral)
            key = self._replace(reference, edits, is_asked=is_asked)
            if target is None and places_conditions:
                placed += self._place_conditions(reference, key, edits, len(placed))
        shorten_columns(tree, references, edits)
        hide_row_ids(references, edits)
        chars = CharColumns(references, target, self._names, self._is_cte)
        if chars.may_be_compared:
            self.compares_chars = True
            chars.compare(tree, edits)
        if target is not None:
            edit_target(tree, target, edits)
        template = edits.template()
        self.conditions = {place: KeyWords(key, edits.within(place), bare) for place, key, bare in placed}
        views = [found.view for found in self.sources.values() if found.view is not None]
        self.names_moment = names_moment(text) or any(view.names_moment for view in views)
        self.joins |= any(view.joins for view in views)
        if self.joins and target is None:
            self.others = self._with_others(tree, edits)
        return template

    def _with_others(self, tree: exp.Expr, edits: Edits) -> OtherNames:
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
            put_frame(node, place, edits)
        return OtherNames(edits.template(), {place: name for name, place in places.items()})

    def _references(self, tree: exp.Expr, edits: Edits) -> Iterator[Reference]:
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
                yield Reference(node, table, node.find_ancestor(exp.Select))
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

    def _replace(self, reference: Reference, edits: Edits, *, is_asked: bool) -> str:
        """Put a place for a table's frame; the name of its source."""
        select = reference.select
        with_row_id = has_row_ids(reference.table) and select is not None and mentions_row_id(select)
        where = None
        if select is not None and not edits.is_ambiguous:
            where = wanted_text(edits.text, select, reference.node, reference.table, self._arguments)
            if where is not None and hides_chars(where, reference.table):
                where = None
        view = self._view(reference.table) if reference.table.is_view else None
        totals_of = None if select is None else asked_totals(select, reference.node, reference.table)
        read = TableRead(reference.table, with_row_id, where, is_asked, totals_of, view)
        key = self._key(read)
        put_frame(reference.node, key, edits)
        return key

    def _place_conditions(
        self, reference: Reference, key: str, edits: Edits, before: int
    ) -> Iterator[tuple[str, str, str]]:
        """Put places for a table's conditions on partition keys: each place, `key`, its source, and bare words."""
        select, table = reference.select, reference.table
        if select is None or edits.is_ambiguous or self.sources[key].where is None or _WHEN in edits.text:
            return
        for number, found in enumerate(key_conditions(edits.text, select, reference.node, table), before):
            place = f"{_WHEN}{number}"
            edits.place(found.start, found.end, place)
            yield place, key, found.bare

    def _view(self, view: Table) -> ViewQuery:
        within = Rewriter(self._names.of_view(view))
        return ViewQuery(within.query(view.view_text), within.sources, within.joins, within.names_moment)

    def _is_cte(self, node: exp.Table) -> bool:
        """Whether a name means a CTE of the statement, unless one of the query itself has it."""
        parts = node.parts
        return len(parts) == 1 and isinstance(parts[0], exp.Identifier) and node.name.lower() in self._ctes

    def _replace_cte(self, node: exp.Table, edits: Edits) -> None:
        key = self._ctes[node.name.lower()]
        self.read_ctes[key] = node.name.lower()
        put_frame(node, key, edits)

    def _qualify(self, node: exp.Table, edits: Edits) -> None:
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


def _has_joins(tree: exp.Expr) -> bool:
    return tree.find(exp.Join, exp.Exists) is not None or any(one.args.get("query") for one in tree.find_all(exp.In))
