"""What the demo shows: steps with their times, tables, trees of directories."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from hive_acid.operators.show import Listing

MAX_ROWS = 14


class Screen:
    """Prints to a terminal with a moving progress line, to a file with plain lines."""

    def __init__(self) -> None:
        self.console = Console(highlight=False)
        if not self.console.is_terminal:
            self.console = Console(highlight=False, width=120)
        self._started = time.monotonic()

    def chapter(self, number: int, title: str) -> None:
        """A new part of the story."""
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        self.console.print()
        self.console.rule(f"[bold]{number}. {title}[/]  [dim]{minutes}:{seconds:02d}[/]", align="left")

    @contextlib.contextmanager
    def step(self, words: str) -> Iterator[list[str]]:
        """One piece of work; text put into the list it yields is shown behind it when it is done."""
        details: list[str] = []
        started = time.monotonic()
        with self.console.status(words):
            yield details
        took = time.monotonic() - started
        detail = f": {'; '.join(details)}" if details else ""
        self.console.print(f"  [green]✓[/] {words}{detail} [dim]({took:.1f} s)[/]", soft_wrap=True)

    def say(self, words: str) -> None:
        """A sentence between steps."""
        self.console.print(f"  {words}", soft_wrap=True)

    def listing(self, listing: Listing) -> None:
        """A table, cut where it is long."""
        table = Table(title=listing.title, title_justify="left", title_style="bold")
        for column in listing.columns:
            table.add_column(column, overflow="fold")
        for row in listing.rows[:MAX_ROWS]:
            table.add_row(*row)
        self.console.print(table, markup=False)
        if len(listing.rows) > MAX_ROWS:
            self.say(f"[dim]… and {len(listing.rows) - MAX_ROWS} more[/]")

    def tree(self, title: str, root: Path) -> None:
        """The directories below `root`, with their files' sizes."""
        tree = Tree(f"[bold]{title}[/]")
        for directory in sorted(path for path in root.iterdir() if path.is_dir()):
            files = sorted(file for file in directory.rglob("*") if file.is_file() and not file.name.startswith("."))
            shown = ", ".join(f"{file.name} {file.stat().st_size:,} B" for file in files)
            tree.add(f"{directory.name}  [dim]{shown}[/]")
        self.console.print(tree)
