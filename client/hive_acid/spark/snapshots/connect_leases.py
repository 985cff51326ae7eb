"""Leases on snapshots over Spark Connect: plans hold them.

A plan is a tree of Python objects, and what is derived from it refers to it, so a lease is an attribute of the frame's
plan. What the server keeps by itself (views, what a statement returned, checkpoints, streaming queries) is noticed when
the client sends the command for it, in which the frame's alias stands.
"""

from __future__ import annotations

import re
import threading
import weakref
from typing import Any, NoReturn

from pyspark.sql import DataFrame

from hive_acid.spark.snapshots.gone_files import gone_file, snapshot_ended
from hive_acid.spark.snapshots.lease import NONE, Lease, Leases, View, Views

_ALIAS = re.compile(rb"__acid_table_\d+")
_INSTALLING = threading.Lock()
_ASKED_AGAIN = ("sql", "with_relations")
"""Results of SQL that are a query, which the server runs anew each time."""


def hold(frame: DataFrame, lease: Lease, alias: str) -> None:
    """Let the plan of a frame, whose alias is `alias`, hold a lease, and with it all plans made of it."""
    plan: Any = vars(frame)["_plan"]
    plan._hive_acid_leases = lease
    client: Any = lease.spark.client
    with _INSTALLING:
        leases = vars(client).get("_hive_acid_leases")
        if leases is None:
            leases = client._hive_acid_leases = ConnectLeases(client, lease.spark)
    leases.add(alias, lease)


class ConnectLeases:
    """The leases of one client, by the aliases of frames, and what holds them on the server."""

    def __init__(self, client: Any, spark: Any) -> None:
        self._spark = spark
        self._execute = client.execute_command
        self._fetch = client.to_table
        self._stream = client._execute_and_fetch_as_iterator
        self._fail = client._handle_error
        self._aliases: weakref.WeakValueDictionary[bytes, Lease] = weakref.WeakValueDictionary()
        self._views = Views(self._exists)
        self._queries: dict[str, Leases] = {}
        client.execute_command = self._execute_command
        client.to_table = self._to_table
        client._execute_and_fetch_as_iterator = self._execute_and_fetch
        client._handle_error = self._handle_error

    def add(self, alias: str, lease: Lease) -> None:
        """A frame with that alias is kept by the lease."""
        self._forget_ended_queries()
        self._aliases[alias.encode()] = lease

    def _execute_command(self, command: Any, *arguments: Any, **options: Any) -> Any:
        leases = self._leases_of(command)
        result = self._execute(command, *arguments, **options)
        properties = result[1]
        if command.HasField("create_dataframe_view"):
            made = command.create_dataframe_view
            if leases:
                self._views.add(View(made.name, made.is_global, leases))
            else:
                self._views.replaced(made.name, is_global=made.is_global, session=None)
        elif command.HasField("sql_command"):
            self._views.ran(_sql(command.sql_command), None)
            query = properties.get("sql_command_result")
            if leases and query is not None and query.WhichOneof("rel_type") in _ASKED_AGAIN:
                # PySpark takes its own plan then, which refers to those of the frames.
                del properties["sql_command_result"]
        elif command.HasField("checkpoint_command") and leases:
            properties["checkpoint_command_result"]._plan._hive_acid_leases = leases
        elif command.HasField("write_stream_operation_start") and leases:
            started = properties["write_stream_operation_start_result"]
            self._queries[started.query_id.id] = leases
        elif command.HasField("streaming_query_command") and self._queries:
            self._forget_ended_queries()
        return result

    def _to_table(self, plan: Any, *arguments: Any, **options: Any) -> Any:
        result = self._fetch(plan, *arguments, **options)
        if self._views and plan.HasField("root") and plan.root.HasField("catalog"):
            asked = plan.root.catalog
            for kind in ("drop_temp_view", "drop_global_temp_view"):
                if asked.HasField(kind):
                    self._views.dropped(getattr(asked, kind).view_name)
        return result

    def _execute_and_fetch(self, request: Any, *arguments: Any, **options: Any) -> Any:
        ended = [lease for lease in self._aliases.values() if lease.ended is not None]
        if ended:
            said = request.plan.SerializeToString()
            for lease in ended:
                is_named = any(self._aliases.get(alias) is lease for alias in _ALIAS.findall(said))
                if is_named or self._is_viewed(request.plan, said, lease):
                    lease.check()
        return self._stream(request, *arguments, **options)

    def _is_viewed(self, plan: Any, said: bytes, lease: Lease) -> bool:
        """Whether a plan may read a temporary view with a lease, and is not about views."""
        if plan.HasField("command") and plan.command.HasField("sql_command"):
            return self._views.would_read(_sql(plan.command.sql_command), lease)
        if plan.HasField("command") or plan.root.HasField("catalog"):
            return False
        return self._views.would_read(said.decode(errors="replace"), lease)

    def _handle_error(self, error: Exception, *arguments: Any, **options: Any) -> NoReturn:
        try:
            self._fail(error, *arguments, **options)
        except Exception as raised:
            gone = gone_file(str(raised))
            if gone is None:
                raise
            raise snapshot_ended(gone) from raised
        raise error

    def _leases_of(self, command: Any) -> Leases:
        if not self._aliases:
            return NONE
        found = map(self._aliases.get, _ALIAS.findall(command.SerializeToString()))
        return frozenset(lease for lease in found if lease is not None)

    def _exists(self, view: View) -> bool:
        return bool(self._spark.catalog.tableExists(view.full_name))

    def _forget_ended_queries(self) -> None:
        known = list(self._queries)
        active = {query.id for query in self._spark.streams.active} if known else set()
        for query_id in known:
            if query_id not in active:
                self._queries.pop(query_id, None)


def _sql(command: Any) -> str:
    of = command.input
    if of.HasField("with_relations"):
        of = of.with_relations.root
    return str(of.sql.query or command.sql)
