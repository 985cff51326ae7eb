"""The line that says how far something long is, and the small tables of notebooks."""

import io
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from hive_acid.display import status_line as module
from hive_acid.display.status_line import status_line
from hive_acid.operators.show import Listing
from tests.terminal import Terminal
from tests.waiting import stays, until


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()
    # Pytest sets sys.stderr anew before the test itself.
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=found, modules=sys.modules))
    monkeypatch.setattr(module, "SILENT_S", 0.05)
    monkeypatch.setattr(module, "EACH_S", 0.02)
    return found


def _until(shown: io.StringIO, words: str) -> None:
    until(lambda: words in shown.getvalue(), told=shown.getvalue)


def _on_screen(text: str) -> str:
    """What is left on the line of a terminal."""
    line: list[str] = []
    at = 0
    for letter in text:
        if letter == "\r":
            at = 0
        else:
            line[at : at + 1] = [letter]
            at += 1
    return "".join(line).rstrip()


def test_a_terminal_shows_it_until_the_end(terminal: Terminal) -> None:
    figures = iter(["10 of 200 tasks", *["9 of 9 tasks"] * 10_000])
    with status_line("sh.orders", lambda: next(figures)):
        _until(terminal, "sh.orders: 0 s, 10 of 200 tasks")
        _until(terminal, "sh.orders: 0 s, 9 of 9 tasks")
        assert "200" not in _on_screen(terminal.getvalue())
    assert not _on_screen(terminal.getvalue())
    assert "hive-acid-status-line" not in {thread.name for thread in threading.enumerate()}


def test_a_line_is_no_wider_than_the_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    with status_line("sh." + "t" * 200, lambda: ""):
        _until(terminal, "sh.ttt")
    assert max(map(len, terminal.getvalue().split("\r"))) == 19


def test_nothing_is_said_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(module, "SILENT_S", 0.0)
    with status_line("sh.orders", lambda: "1 of 2 tasks"):
        stays(lambda: not written.getvalue(), 0.1)
    for stream in (None, closed := Terminal()):
        closed.close()
        monkeypatch.setattr(sys, "stderr", stream)
        with status_line("sh.orders", lambda: "1 of 2 tasks"):
            pass
    assert not written.getvalue()


def test_a_notebook_shows_it_too(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(module, "SILENT_S", 0.01)
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    with status_line("sh.orders", lambda: ""):
        _until(written, "sh.orders: 0 s")
    del shell.kernel  # IPython in a shell whose errors go to a file
    assert not module.is_watched(written)


def test_figures_that_fail_or_hang_harm_nothing(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, hanging = threading.Event(), threading.Event()

    def fail() -> str:
        asked.set()
        return f"{1 / 0}"

    def hang() -> str:
        asked.set()
        return str(hanging.wait(30))

    with status_line("sh.orders", fail):
        assert asked.wait(10)
    asked.clear()
    monkeypatch.setattr(module, "PATIENCE_S", 0.1)
    begun = time.monotonic()
    with status_line("sh.orders", hang):
        assert asked.wait(10)
    assert time.monotonic() - begun < 5
    hanging.set()


def test_one_line_at_a_time(terminal: Terminal) -> None:
    with status_line("sh.orders", lambda: ""), status_line("sh.inner", lambda: ""):
        _until(terminal, "sh.orders")
        stays(lambda: "sh.inner" not in terminal.getvalue(), 0.2)
    assert "sh.inner" not in terminal.getvalue()


def test_an_error_goes_through_and_the_line_away(terminal: Terminal) -> None:
    with pytest.raises(KeyError), status_line("sh.orders", lambda: ""):
        _until(terminal, "sh.orders")
        raise KeyError
    assert not _on_screen(terminal.getvalue())
    assert not module._ONE_LINE.locked()


def test_listings_are_tables_in_notebooks() -> None:
    html = Listing("Locks <all>", ("lock", "on"), (("1.1", "a.b & c"), ("2.1", None)))._repr_html_()
    assert "Locks &lt;all&gt;" in html
    assert "<tr><td>1.1</td><td>a.b &amp; c</td></tr>" in html
    assert "<tr><td>2.1</td><td></td></tr>" in html
