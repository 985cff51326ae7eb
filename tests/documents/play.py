"""Plays the code blocks of a page as its reader does: in order, against a metastore and a Spark."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hive_acid.spark import AcidSession
from metastore.cli import main
from tests.documents.pages import Block

OTHER = "thrift://old:9083"
"""The address of another metastore, from which a page imports."""
_ASK = {"transactions", "locks", "compactions", "why", "sql", "removals", "orphans", "undrop"}
"""Commands that ask a running server."""
_DATABASE = {"serve", "doctor", "import", "export"}
"""Commands that open its database."""


class Player:
    """A reader of one page. What a page calls by these names is the test's own: the address and ``/data``."""

    def __init__(self, uri: str, database_url: str, home: Path, port: int, other: str = "") -> None:
        self._database_url, self._home, self._uri = database_url, home, uri
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self._meant = {
            "thrift://localhost:9083": uri,
            OTHER: other,
            "/data": str(home / "data"),
            "backup.json.gz": str(home / "backup.json.gz"),
            "metrics.port=9084": f"metrics.port={port}",
        }

    def play(self, block: Block, page: str) -> None:
        """Run a block; what fails raises. A language that nobody runs, as that of an output, is passed by."""
        text = block.text
        for name, meant in self._meant.items():
            text = text.replace(name, meant)
        match block.language:
            case "python":
                self._names["print"] = _Checked(text, block.line).print
                code = compile("\n" * (block.line - 1) + text, page, "exec")
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(code, self._names)
            case "sql":
                for statement in re.split(r";[ ]*(?:--[^\n]*)?(?:\n|$)", text):
                    if statement.strip():
                        self._names["acid"].sql(statement.strip()).collect()
            case "sh":
                for words in _commands(text):
                    self._run(words)

    def close(self) -> None:
        """End the sessions that the page has opened."""
        for value in self._names.values():
            if isinstance(value, AcidSession):
                value.close()

    def _run(self, words: list[str]) -> None:
        assert words[0] == "metastore", f"{words[0]} is not run here: say why by <!-- skip: … -->"
        command, *rest = words[1:]
        if command in _ASK:
            rest += ["--uri", self._uri]
        elif command in _DATABASE:
            rest += ["--database-url", self._database_url, "--warehouse", str(self._home / "warehouse")]
        if command == "serve":
            _serve([*rest, "--port", "0"])
            return
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = main([command, *rest])
        assert status == 0, f"{shlex.join(words)}: {said.getvalue()}"


class _Checked:
    """Holds what a block prints against the comment behind the `print`, which begins with the output."""

    def __init__(self, text: str, line: int) -> None:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
        calls = [
            node
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]
        self._expected = {
            number + line - 1: comments[call.end_lineno]
            for call in calls
            if call.end_lineno in comments
            for number in range(call.lineno, call.end_lineno + 1)
        }

    def print(self, *values: object) -> None:
        """In place of the built-in one."""
        said = " ".join(map(str, values))
        expected = self._expected.get(sys._getframe(1).f_lineno)
        assert expected is None or expected.startswith(said), f"prints {said}, not {expected}"


def _commands(text: str) -> Iterator[list[str]]:
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield words


def _serve(arguments: list[str]) -> None:
    """Start a server, wait until it listens, and end it as an operator does."""
    command = [str(Path(sys.executable).parent / "metastore"), "serve", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        first = server.stdout.readline()
        server.terminate()
        _, errors = server.communicate(timeout=60)
    assert first.startswith("listening on"), errors
    assert server.returncode == 0, errors
