"""Leases on snapshots in classic Spark: objects of the JVM that Python refers to hold them.

PySpark's frames, RDDs, writers and iterators are thin: each has an object of the JVM, which py4j keeps there while
Python refers to it. Whatever reads a snapshot was made by a call on such an object, or with one as argument. So all
calls are watched at the one place through which they go, the gateway's client: what a call returns holds the leases of
the object it was called on and of its arguments, until py4j is told that Python has no use for it.
"""

from __future__ import annotations

import re
import threading
import weakref
from typing import Any

import py4j.java_gateway
from py4j.finalizer import ThreadSafeFinalizer
from py4j.java_gateway import JavaMember, JavaObject
from pyspark.sql import DataFrame

from hive_acid.spark.jvm.forked import check_spark
from hive_acid.spark.jvm.running import check_running
from hive_acid.spark.snapshots.gone_files import gone_file, snapshot_ended
from hive_acid.spark.snapshots.lease import NONE, Lease, Leases, View, Views

_RETURNED = re.compile(r"y[^s](o\d+)")
_TEXT = re.compile(r"c\n[^\n]*\n[^\n]*\n(?:[^s][^\n]*\n)*s([^\n]*)")
_FAILED = "xr"

_READS_NOTHING = frozenset(
    ("apply", "col", "colRegex", "columns", "context", "dtypes", "schema", "sparkContext", "sparkSession", "sqlContext")
)
"""Methods whose results do not read rows, and may live for long."""

_COLLECTING = frozenset(("add", "append", "put"))
_MAKING_VIEWS = {
    "createTempView": False,
    "createOrReplaceTempView": False,
    "registerTempTable": False,
    "createGlobalTempView": True,
    "createOrReplaceGlobalTempView": True,
}
"""Methods that give a frame a name, and whether it is one for all sessions."""

_ENDING = frozenset(("unpersist", "stop", "close", "toString", "sparkSession", "getClass", "hashCode"))
"""What may be done with a frame whose snapshot has ended."""
_DROPPING_VIEWS = frozenset(("dropTempView", "dropGlobalTempView"))
_STARTING_QUERIES = frozenset(("start", "toTable"))
_ENDING_QUERIES = frozenset(("awaitTermination", "stop"))
_MOST_CAUSES = 8
_INSTALLING = threading.Lock()


def hold(frame: DataFrame, lease: Lease) -> None:
    """Let the object of a frame hold a lease, and all that will be made of it."""
    of_jvm: Any = frame._jdf
    client = of_jvm._gateway_client
    with _INSTALLING:
        leases = vars(client).get("_hive_acid_leases")
        if leases is None:
            leases = client._hive_acid_leases = JvmLeases(client)
    leases.hold(of_jvm._target_id, frozenset((lease,)))


class JvmLeases:
    """The objects of one gateway that hold leases, and what holds them in the JVM by itself."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._send = client.send_command
        self._collect = client.garbage_collect_object
        self._held: dict[str, Leases] = {}
        self._views = Views(_exists)
        self._queries: dict[str, tuple[Any, Leases]] = {}
        client.send_command = self._send_command
        client.garbage_collect_object = self._garbage_collect_object

    def hold(self, target: str, leases: Leases) -> None:
        """Let the object hold `leases` until Python does not refer to it any more."""
        self._forget_ended_queries()
        self._held[target] = leases

    def _garbage_collect_object(self, target: str, *arguments: Any) -> None:
        self._held.pop(target, None)
        self._collect(target, *arguments)

    def _send_command(self, command: str, *arguments: Any, **options: Any) -> Any:
        if command.startswith("m\n"):  # memory
            return self._send(command, *arguments, **options)
        # Nothing of this ends while the call is under way.
        leases = self._leases_of(command)
        for lease in leases:
            check_spark(lease.spark)
            if lease.ended is not None and self._would_read(command, lease):
                lease.check()
        answer = self._send(command, *arguments, **options)
        if not isinstance(answer, str):
            return answer
        if answer.startswith(_FAILED):
            for lease in leases:
                check_running(lease.spark)
            self._raise_if_gone(answer)
        if leases or self._views or self._queries:
            self._note(command, answer, leases)
        return answer

    # --- who holds what ------------------------------------------------------------------------

    def _leases_of(self, command: str) -> Leases:
        if not self._held and not self._views:
            return NONE
        leases = NONE
        for target in _objects(command):
            leases |= self._held.get(target, NONE)
        if self._views and _method(command) in ("sql", "table"):
            leases |= self._views.leases_of(_text(command))
        return leases

    def _would_read(self, command: str, lease: Lease) -> bool:
        """Whether a call is on what reads a snapshot that has ended, and not only on a statement about views."""
        if any(lease in self._held.get(target, NONE) for target in _objects(command)):
            return _method(command) not in _ENDING
        return _method(command) == "table" or self._views.would_read(_text(command), lease)

    def _note(self, command: str, answer: str, leases: Leases) -> None:
        kind, target, method = _parts(command)
        if kind == "a":  # an array: what is done with it comes first
            target, method = method, target
        returned = _RETURNED.fullmatch(answer)
        if leases:
            for found in _objects(command):
                self._break_cycle(found)
            if returned is not None:
                if method not in _READS_NOTHING:
                    self._held[returned[1]] = leases
            elif method in _COLLECTING or (kind == "a" and method == "s"):
                self._held[target] = self._held.get(target, NONE) | leases
        if kind == "c" and not answer.startswith("x"):
            self._note_jvm(command, target, method, returned[1] if returned else None, leases)
        if method in _ENDING_QUERIES:
            self._note_stopped(target)

    def _note_jvm(self, command: str, target: str, method: str, returned: str | None, leases: Leases) -> None:
        """Note what holds leases in the JVM, whether Python refers to it or not."""
        if method in _MAKING_VIEWS:
            is_global, name = _MAKING_VIEWS[method], _text(command).strip("`")
            if leases:
                self._views.add(View(name, is_global, leases, _session(leases)))
            elif any(view.is_called(name) for view in self._views):
                session = self._object(self._send(f"c\n{target}\nsparkSession\ne\n"))
                self._views.replaced(name, is_global=is_global, session=session)
        elif method in _DROPPING_VIEWS:
            self._views.dropped(_text(command))
        elif method == "sql" and self._views:
            self._views.ran(_text(command), self._session_of(target))
        elif method in _STARTING_QUERIES and leases and returned is not None:
            query_id = self._object(self._send(f"c\n{returned}\nid\ne\n")).toString()
            self._queries[query_id] = _session(leases).streams(), leases

    def _note_stopped(self, target: str) -> None:
        for context in {lease.spark.sparkContext for leases in self._held.values() for lease in leases}:
            of_jvm: Any = context._jsc
            if of_jvm is not None and of_jvm._target_id == target:
                self._views.clear()
                self._queries.clear()
                return
        self._forget_ended_queries()

    def _forget_ended_queries(self) -> None:
        for query_id, (streams, _) in list(self._queries.items()):
            if streams.get(query_id) is None:
                self._queries.pop(query_id, None)

    def _break_cycle(self, target: str) -> None:
        """py4j's objects and their methods refer to each other, so that only a collection of cycles would free them.

        It asks an argument for a method, too.
        """
        if target not in self._held:
            return
        key = f"{self._client.address}{self._client.port}{target}"
        reference = ThreadSafeFinalizer.finalizers.get(key)
        found = None if reference is None else reference()
        if found is not None and not isinstance(found._methods, _Methods):
            found._methods = _Methods(found)

    def _object(self, answer: str) -> Any:
        return py4j.java_gateway.get_return_value(answer, self._client)

    def _session_of(self, target: str) -> Any:
        return next((view.session for view in self._views if view.session._target_id == target), None)

    # --- errors --------------------------------------------------------------------------------

    def _raise_if_gone(self, answer: str) -> None:
        """Raise SnapshotEndedError if a call failed because files of a snapshot are gone."""
        gone = None
        causes = []  # py4j lets each of them go with Python's reference
        exception = answer[len(_FAILED) :]
        for _ in range(_MOST_CAUSES):
            gone = gone_file(self._send(f"c\n{exception}\ntoString\ne\n"))
            returned = _RETURNED.fullmatch(self._send(f"c\n{exception}\ngetCause\ne\n"))
            if returned is not None:
                causes.append(self._object(returned[0]))
            if gone is not None or returned is None:
                break
            exception = returned[1]
        if gone is None:
            return
        try:
            self._object(answer)
        except Exception as error:
            raise snapshot_ended(gone) from error


class _Methods(dict[str, Any]):
    """The methods of an object of the JVM, made whenever they are asked for."""

    def __init__(self, owner: JavaObject) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)

    def __setitem__(self, name: str, method: Any) -> None:
        pass

    def __missing__(self, name: str) -> Any:
        owner: Any = self._owner()
        return JavaMember(name, owner, owner._target_id, owner._gateway_client)


def _method(command: str) -> str:
    kind, _, method = _parts(command)
    return method if kind == "c" else ""


def _parts(command: str) -> tuple[str, str, str]:
    """What kind of command it is, and what the next two lines say: of a call, whose method is called."""
    kind, first, second = (*command.split("\n", 3)[:3], "", "")[:3]
    return kind, first, second


def _objects(command: str) -> list[str]:
    """The names of the objects in a command, each of which is a line of its own, and perhaps some other words."""
    return [line.removeprefix("r") for line in command.split("\n") if line[:1] == "o" or line[:2] == "ro"]


def _text(command: str) -> str:
    """The first text among the arguments of a call."""
    found = _TEXT.match(command)
    return found[1].replace("\\n", "\n").replace("\\r", "\r").replace("\\\\", "\\") if found else ""


def _session(leases: Leases) -> Any:
    of: Any = next(iter(leases)).spark
    return of._jsparkSession


def _exists(view: View) -> bool:
    catalog = view.session.sessionState().catalog()
    found = catalog.getRawGlobalTempView(view.name) if view.is_global else catalog.getRawTempView(view.name)
    return bool(found.isDefined())
