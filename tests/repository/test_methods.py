"""The table of all methods: complete, current, and what the server really does."""

from __future__ import annotations

from collections.abc import Callable

from thriftpy2.thrift import TApplicationException

from hive_acid.wire import service
from tests.caller import INTERNAL, Caller, Refused
from tests.repository.methods import DOCUMENT, OURS, document, methods

ONEWAY = {"shutdown", "reinitialize"}


def test_table_is_complete() -> None:
    names = [method.name for method in methods()]
    assert sorted(names) == sorted(service.thrift_services)
    assert names == sorted(names, key=lambda name: (name.lower(), name))
    assert all(method.what for method in methods())
    assert {method.tier for method in methods()} == {1, 2, 3, 4}
    known = {"2.3", "3.1", "4.0", "4.1", "4.2", OURS}
    assert all(method.releases and set(method.releases.split()) <= known for method in methods())


def test_document_is_current() -> None:
    assert DOCUMENT.read_text() == document(), "run: python -m tests.repository.methods"


def test_tiers_are_served(metastore: Callable[..., str]) -> None:
    """Tiers 1 to 3 are served; tier 4 is answered with exactly the text that Spark and Flink search for."""
    with Caller(metastore()) as caller:
        wrong = {}
        for method in methods():
            if method.name not in ONEWAY and _is_served(caller, method.name) != method.is_served:
                wrong[method.name] = method.tier
        assert not wrong


def test_shutdown_stops_nothing_but_its_connection(metastore: Callable[..., str]) -> None:
    """Every Java client sends it when it closes (wire.md §2.4)."""
    uri = metastore()
    with Caller(uri) as other:
        for method in sorted(ONEWAY):
            with Caller(uri) as caller:
                caller.send(method)
        assert other.call("getName") == "metastore"
        with Caller(uri) as later:
            assert later.call("getName") == "metastore"


def _is_served(caller: Caller, method: str) -> bool:
    """Called without arguments; what is served refuses that in its own words, or does nothing."""
    try:
        caller.call(method)
    except (Refused, TApplicationException) as error:
        return str(error) != f"{INTERNAL}: Invalid method name: '{method}'"
    return True
