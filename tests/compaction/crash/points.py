"""The steps that the code of the services can make, read from it: what the runs of the scenarios have to reach.

From the Python of the slices every call of a function of `hive_acid.filesystem.files` that changes something, by its
place, and every function of the database that is named there; from their SQL every function that may change something.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import hive_acid
import metastore
from metastore.store.schema.functions import SLICES
from tests.compaction.crash.steps import changing_files, writing_functions

WATCHED_SLICES = ("compaction", "housekeeping")
_CLIENTS = "clients call it"
_WITHIN = "part of what a client asks for: in its database transaction"
_COMMIT = "part of a commit: in its database transaction"
_CLOCK = "only when the clock of the database has moved"

UNREACHED: Mapping[str, str] = {
    "abort_compactions": _CLIENTS,
    "submit_for_cleanup": _CLIENTS,
    "set_hadoop_jobid": _CLIENTS,
    "update_compaction_metric": _CLIENTS,
    "remove_compaction_metric": _CLIENTS,
    "compaction_forget_partitions": _WITHIN,
    "compaction_forget_table": _WITHIN,
    "compaction_give_back": _WITHIN,
    "compaction_keep_dropped": _WITHIN,
    "compaction_keep_homes": _WITHIN,
    "compaction_rename_partition": _WITHIN,
    "compaction_rename_table": _WITHIN,
    "compaction_settings_changed": _WITHIN,
    "compaction_settle_clock": _CLOCK,
    "catalog_settle_clock": _CLOCK,
    "submit_replaced": _WITHIN,
    "compaction_committed": _COMMIT,
    "queue_next_round": _COMMIT,
    "record_compactions_committed": _COMMIT,
    "files.remove in compaction.cleaner.orphans.Orphans._remove": "operators ask for it; the next search finds more",
}
"""What no background service reaches, and why."""


def file_points() -> set[str]:
    """Each call that changes files, as `Steps` names it without the service."""
    return {f"files.{name} in {place}" for place, name in _file_calls()}


def database_points() -> set[str]:
    """Each function of the database that the slices have or name, if it may change something."""
    own = {file.stem for name in WATCHED_SLICES for file in _slice(name).glob("sql/*.sql")}
    return (own | set(_names())) & writing_functions()


JOB_MODULES = (
    "spark.compact.compaction",
    "spark.compact.bucket_merge",
    "spark.compact.arrow_merge",
    "spark.write.stage",
    "write.staging",
    "spark.compact.stripe_concatenation",
    "spark.compact.insert_only",
    "filesystem.joining",
)
"""The modules of the Spark program that make files, below `hive_acid`."""

JOB_UNREACHED: Mapping[str, str] = {
    "files.remove in spark.compact.arrow_merge.ArrowMerge.written": "for what pyarrow cannot do after all, which fails",
    "files.remove in spark.compact.bucket_merge.BucketMerge._by_arrow": "for large files of another version of pyarrow",
    "files.remove in write.staging.Staging.remove": "for writers: what a compaction has made the worker removes",
    "files.remove in write.staging.Staging.undo": "for writers: what a compaction has made the worker removes",
}
"""Calls of theirs that compactions do not come to, and why."""


def job_points() -> set[str]:
    """Each call of the Spark program that changes files, and each write of Spark."""
    found = set()
    for name in JOB_MODULES:
        tree = ast.parse((Path(hive_acid.__path__[0]) / f"{name.replace('.', '/')}.py").read_text())
        for place, node in _within(name, tree):
            match node:
                case ast.Attribute(value=ast.Name(id="files"), attr=called) if called in changing_files():
                    found.add(f"files.{called} in {place}")
                case ast.Attribute(attr="save"):
                    found.add(f"save in {place}")
    return found


def _slice(name: str) -> Path:
    assert name in SLICES
    return Path(metastore.__path__[0]) / name


def _modules() -> Iterator[tuple[str, ast.Module]]:
    for name in WATCHED_SLICES:
        for file in sorted(_slice(name).rglob("*.py")):
            module = ".".join(file.relative_to(_slice(name).parent).with_suffix("").parts)
            yield module, ast.parse(file.read_text())


def _names() -> Iterator[str]:
    for _, tree in _modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def _file_calls() -> Iterator[tuple[str, str]]:
    for module, tree in _modules():
        for place, node in _within(module, tree):
            match node:
                case ast.Attribute(value=ast.Name(id="files"), attr=name) if name in changing_files():
                    yield place, name


def _within(place: str, node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """All nodes, each with the qualified name of the function that it is in."""
    for child in ast.iter_child_nodes(node):
        yield place, child
        is_named = isinstance(child, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
        yield from _within(f"{place}.{child.name}" if is_named else place, child)  # type: ignore[attr-defined]
