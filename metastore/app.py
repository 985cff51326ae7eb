"""The composition root: every part is made here and given what it needs."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue

import psycopg2.errors
import sqlalchemy.exc
from prometheus_client import Gauge, GCCollector, Info, PlatformCollector, ProcessCollector

import hive_acid
from hive_acid.errors import HiveAcidError, MetaError
from metastore.authorization.authority import Authority
from metastore.authorization.listener import rights_listener
from metastore.authorization.policy import Policy, loaded
from metastore.catalog.place.directories import warehouse_root
from metastore.compaction.worker.executor import CompactionExecutor
from metastore.config import Config
from metastore.filework import files
from metastore.observe.calls import CallCounts
from metastore.observe.http import MetricsServer
from metastore.observe.log import event
from metastore.observe.meters import PREFIX
from metastore.rpc.audit.audit import Audit
from metastore.rpc.dispatch import Dispatcher
from metastore.rpc.doors.addresses import OpenDoorError, bound
from metastore.rpc.doors.doors import Doors
from metastore.rpc.limits.workers import Workers
from metastore.rpc.server import BACKLOG, ThriftServer, new_event_loop
from metastore.schedule import Schedule
from metastore.settings import SettingError
from metastore.slices import Slices
from metastore.store.connections.failures import cause_of, first_line, refusal_of
from metastore.store.database import Database
from metastore.store.embedded.server import (
    ADDRESS_FILE,
    EmbeddedPostgres,
    EmbeddedPostgresError,
    has_data,
    own_files,
)
from metastore.store.schema.fitness import examine, examine_owner
from metastore.store.schema.migrate import has_schema, upgrade
from metastore.store.watch import DatabaseWatch

LOG = logging.getLogger("metastore")
MAX_OPEN_FILES = 65_536
FILES_OF_OURS = 1_000
"""Files and sockets that are not clients' connections, at most."""
FEW_CONNECTIONS = 64
"""Clients may have at least so many connections, however few files may be open."""
HEALTH_WAIT_S = 2.0
"""A server whose event loop does not turn for so long is not live."""
EMBEDDED_CONNECTIONS, RESERVED_CONNECTIONS = 100, 20
"""What the embedded Postgres allows: so many, or so many more than the server may have, for commands beside it."""
STOP_S = 50.0
"""A stop that takes longer ends the process as it is: a database that hangs lets nothing end in order. As by a kill,
nothing is lost by it. `deploy/systemd` allows ten seconds more."""
TURN_S = 0.0002
"""So long one thread of Python's runs on while another one waits. By default it is 5 ms."""


class StartError(RuntimeError):
    """The metastore cannot start; the sentence says why."""


class DatabaseLostError(RuntimeError):
    """The metastore ends, since its own Postgres keeps ending; the sentence says why."""


@dataclass(frozen=True)
class ServeOptions:
    """What `metastore serve` was asked for. Exactly one of `data_dir` and `database_url` is set."""

    host: str
    port: int
    data_dir: Path | None
    database_url: str | None
    warehouse: str
    config: Config = field(default_factory=Config)


@contextlib.contextmanager
def open_database(
    options: ServeOptions,
    loop: asyncio.AbstractEventLoop | None = None,
    given_up: Callable[[str], None] = lambda reason: None,
    must_exist: bool = False,
) -> Iterator[Database]:
    """The database of the options, migrated; an embedded Postgres runs as long as the context.

    `given_up` is told, on another thread, when the embedded Postgres ends again and again. With `must_exist` nothing is
    made where no metastore has been. Raises StartError.
    """
    with contextlib.ExitStack() as stack:
        url = options.database_url
        if url is None:
            assert options.data_dir is not None
            if must_exist and not has_data(options.data_dir):
                raise StartError(
                    f"there is no metastore's data in {options.data_dir}: give the --data-dir or --database-url that "
                    "`metastore serve` was given"
                )
            try:
                most = max(EMBEDDED_CONNECTIONS, options.config.store.max_connections + RESERVED_CONNECTIONS)
                settings = {"max_connections": str(most)}
                url = stack.enter_context(EmbeddedPostgres(options.data_dir, settings, given_up))
            except (EmbeddedPostgresError, OSError) as error:
                raise StartError(str(error)) from error
        try:
            db = stack.enter_context(contextlib.closing(_connected(url, options, loop, must_exist)))
        except (sqlalchemy.exc.SQLAlchemyError, HiveAcidError, ValueError) as error:
            raise StartError(f"the database cannot be used: {refusal_of(error) or cause_of(error)}") from error
        yield db


def _connected(url: str, options: ServeOptions, loop: asyncio.AbstractEventLoop | None, must_exist: bool) -> Database:
    db = Database(url, loop, options.config.store)
    try:
        examine(db, options.config.store, makes=not must_exist)
        if must_exist and not has_schema(db):
            raise MetaError("no metastore has used it yet: give the database that `metastore serve` was given")
        try:
            upgrade(db)
        except sqlalchemy.exc.ProgrammingError as error:
            if isinstance(error.orig, psycopg2.errors.InsufficientPrivilege):
                examine_owner(db)
            raise
    except BaseException:
        db.close()
        raise
    return db


class App:
    """One metastore: `start`, then `stop`; or `run`, until a signal.

    `executor` runs its compactions, by default the one of the settings.
    """

    def __init__(self, options: ServeOptions, executor: CompactionExecutor | None = None) -> None:
        self._options = options
        self._executor = executor
        self._stack = contextlib.ExitStack()
        # A signal comes in the middle of whatever the main thread does: an Event's lock, in its wait, would be its own.
        self._ended: SimpleQueue[None] = SimpleQueue()
        self._is_stopping = False
        self._lost: str | None = None
        self._db: Database | None = None
        self.counts = CallCounts()

    def run(self, announce: Callable[[str], None]) -> None:
        """Serve until SIGTERM, SIGINT or SIGHUP (unless ``nohup`` has it ignored).

        `announce` is given the address when the first call can be answered. Raises StartError when it cannot start,
        DatabaseLostError when its Postgres was given up.
        """
        with self._signals():
            try:
                announce(self.start())
                self._ended.get()
            finally:
                with _bounded():
                    if self._lost is not None and self._db is not None:
                        self._db.close()  # nobody shall wait for it
                    self.stop()
        if self._lost is not None:
            raise DatabaseLostError(self._lost)
        event(LOG, logging.INFO, "stopped")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Within the block signals end the server; behind it they mean what they did: a process may go on."""
        before = {}
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                before[number] = signal.signal(number, lambda *_: self._ended.put(None))
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _give_up(self, reason: str) -> None:
        self._lost = reason
        self._ended.put(None)

    def start(self) -> str:
        """Make everything, listen, start the services; returns the address. Raises StartError."""
        options, config, stack = self._options, self._options.config, self._stack
        files_open = _allow_many_connections()
        try:
            loop = self._event_loop()
            listener = self._listener()
            audit = self._audit()
            doors = self._doors(audit)
            policy = self._policy()
            self._prepare_warehouse()
            db = self._db = stack.enter_context(open_database(options, loop, self._give_up))
            workers = Workers(config.server.worker_threads)
            stack.callback(workers.shutdown, wait=True)
            loop.set_default_executor(workers)
            watch = DatabaseWatch(db)
            watch.start()
            stack.callback(watch.stop)

            def trouble() -> str | None:
                return "the server is stopping" if self._is_stopping else watch.trouble()

            slices = Slices(db, options.warehouse, config, self._executor)
            stack.callback(slices.close)
            authority = self._authority(db, loop, policy)
            served = replace(
                config.server,
                max_connections=min(config.server.max_connections, max(files_open - FILES_OF_OURS, FEW_CONNECTIONS)),
            )
            dispatcher = Dispatcher(
                slices.handlers(self.counts, trouble, lambda: self._is_stopping, doors),
                workers,
                self.counts,
                db.patience_s,
                watch.has_no_room,
                served,
                audit,
                authority,
            )
            stack.callback(dispatcher.close)
            server = ThriftServer(dispatcher, served, doors)
            address = asyncio.run_coroutine_threadsafe(server.listen(listener), loop).result()
            uri = f"{doors.scheme}://{address}"
            stack.callback(lambda: asyncio.run_coroutine_threadsafe(server.stop(), loop).result())
            stack.callback(slices.release_waiters, loop)
            if config.housekeeping.services_on:
                schedule = Schedule(slices.services(), slices.lease)
                slices.wake_workers(schedule.wake)
                schedule.start()
                stack.callback(schedule.stop)
            stack.callback(slices.interrupt)
            self._serve_metrics(slices, server, trouble, loop)
            self._leave_address(uri)
            _take_short_turns()
        except BaseException:
            self.stop()
            raise
        event(LOG, logging.INFO, "started", address=address, warehouse=options.warehouse)
        return uri

    def stop(self) -> None:
        """Stop everything in the reverse order of its start; may be repeated."""
        self._is_stopping = True
        self._stack.close()

    def _event_loop(self) -> asyncio.AbstractEventLoop:
        loop = new_event_loop()
        thread = threading.Thread(target=loop.run_forever, name="event-loop", daemon=True)
        thread.start()

        def end() -> None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

        self._stack.callback(end)
        return loop

    def _listener(self) -> socket.socket:
        """The port, taken before anything else is started."""
        options = self._options
        try:
            listener = self._stack.enter_context(bound(options.host, options.port, options.config.doors))
            listener.listen(BACKLOG)  # who connects from now on waits for the start instead of being refused
        except OpenDoorError as error:
            raise StartError(str(error)) from None
        except OverflowError:
            raise StartError(f"{options.port} is not a port: give one from 0 to 65535") from None
        except (OSError, ValueError, TypeError) as error:  # the last two of a name that is none
            raise StartError(
                f"cannot listen on {options.host}:{options.port}: {getattr(error, 'strerror', None) or error}; "
                f"is another metastore running there? Choose another one with --port"
            ) from None
        return listener

    def _audit(self) -> Audit | None:
        if not self._options.config.audit.file:
            return None
        try:
            audit = Audit(self._options.config.audit)
        except SettingError as error:
            raise StartError(str(error)) from None
        self._stack.callback(audit.close)
        return audit

    def _doors(self, audit: Audit | None) -> Doors:
        try:
            doors = Doors(self._options.config.doors, audit)
        except SettingError as error:
            raise StartError(str(error)) from None
        self._stack.callback(doors.close)
        return doors

    def _policy(self) -> Policy | None:
        """Whom to ask before the grants. Raises StartError where grants would hold for users that nobody has proven."""
        config = self._options.config.authorization
        if not config.is_on:
            return None
        if not self._options.config.doors.proves_users and not config.trusts_set_ugi:
            raise StartError(
                "metastore.authorization=grants needs users who have come in: set metastore.authentication=password (or"
                " jwt), or metastore.authorization.trust.set.ugi=true if all who reach the port are trusted to say who"
                " they are"
            )
        try:
            return loaded(config.policy) if config.policy else None
        except SettingError as error:
            raise StartError(str(error)) from None

    def _authority(self, db: Database, loop: asyncio.AbstractEventLoop, policy: Policy | None) -> Authority | None:
        if not self._options.config.authorization.is_on:
            return None
        authority = Authority(db, policy)
        if not authority.book.has_admin():
            raise StartError(
                "metastore.authorization=grants needs somebody who may grant: name the first administrators in"
                " hive.users.in.admin.role"
            )
        listener = rights_listener(db, authority)
        loop.call_soon_threadsafe(listener.start)
        self._stack.callback(loop.call_soon_threadsafe, listener.close)
        return authority

    def _serve_metrics(
        self,
        slices: Slices,
        server: ThriftServer,
        trouble: Callable[[], str | None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        """Open the port for figures and health, if one is asked for."""
        config = self._options.config.server
        if not config.metrics_port:
            return
        registry = slices.registry
        registry.register(self.counts)
        for name, meaning, value in (
            ("open_connections", "Clients connected.", lambda: len(server.connections)),
            (
                "ready",
                "1 while the server can serve calls: it is not stopping, and its database has answered within seconds.",
                lambda: trouble() is None,
            ),
        ):
            Gauge(f"{PREFIX}{name}", meaning, registry=registry).set_function(value)
        version = {"version": hive_acid.__version__}
        Info(f"{PREFIX}build", "The version of the server.", registry=registry).info(version)
        for of_process in (ProcessCollector, PlatformCollector, GCCollector):
            of_process(registry=registry)

        def is_live() -> bool:
            alive = threading.Event()
            loop.call_soon_threadsafe(alive.set)
            return alive.wait(HEALTH_WAIT_S)

        try:
            listener = bound(config.metrics_host, config.metrics_port, self._options.config.doors)
            port = MetricsServer(listener, registry, is_live, trouble)
        except OpenDoorError as error:
            raise StartError(f"metrics: {error}") from None
        except (OSError, ValueError, TypeError) as error:
            words = getattr(error, "strerror", None) or error
            raise StartError(
                f"cannot listen on {config.metrics_host}:{config.metrics_port} for metrics: {words}; "
                "give another metastore.metrics.port, or 0 for none"
            ) from None
        self._stack.callback(port.close)
        event(LOG, logging.INFO, "metrics served", address=port.address)

    def _leave_address(self, uri: str) -> None:
        """Write down where we listen, for whoever finds the data directory in use."""
        if self._options.data_dir is not None:
            file = self._options.data_dir / ADDRESS_FILE
            file.write_text(f"{uri}\n")
            self._stack.callback(file.unlink, missing_ok=True)

    def _prepare_warehouse(self) -> None:
        root = self._options.warehouse
        if not root.isprintable():
            raise StartError(f"the warehouse {root!r} is no name for a directory: give another --warehouse")
        config = self._options.config.catalog
        try:
            place = warehouse_root(root, config.schemes)
        except MetaError as error:
            raise StartError(f"the warehouse cannot be used: {error}") from error
        if place == "file:/":
            raise StartError(f"the warehouse {root} is the root of the local file system: give a directory below it")
        if self._options.data_dir is not None and place.startswith("file:"):
            path = Path(place.removeprefix("file:")).resolve()
            for own in own_files(str(self._options.data_dir.resolve() / "cluster")):
                if path.is_relative_to(own):
                    raise StartError(f"the warehouse {root} lies in {own}, which is the metastore's own: give another")
        if config.gives_away and place.startswith("file:") and os.geteuid() != 0:
            raise StartError(
                "metastore.filesystem.owners=true gives directories to other users, which root alone may: start the "
                "metastore as root, or leave that setting out"
            )
        if not config.directories:
            return
        probe = files.join(root, f".writable-{os.getpid()}")
        try:
            files.make_directory(root)
            files.write(probe, b"")
            files.remove(probe)
        except Exception as error:  # each file system has errors of its own, as for want of credentials
            raise StartError(f"the warehouse {root} is not writable: {first_line(error)}") from error


@contextlib.contextmanager
def _bounded() -> Iterator[None]:
    """End the process if the body, which stops the server, takes longer than `STOP_S`."""

    def end() -> None:
        event(LOG, logging.ERROR, "ended without a clean stop, which took too long", seconds=STOP_S)
        os._exit(1)

    limit = threading.Timer(STOP_S, end)
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()


def _allow_many_connections() -> int:
    """Raise the soft limit of open files, often 1024, as far as is allowed: idle clients keep their sockets open.

    Returns how many may be open.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    now, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MAX_OPEN_FILES if now == resource.RLIM_INFINITY else now


def _take_short_turns() -> None:
    """Let nothing keep the interpreter for long while a thread waits for it.

    A busy event loop gives the interpreter back at each of its turns, and mostly has it again before a thread that
    waits is awake. Such a thread is let in for certain when it has waited for an interval without a turn. So the
    interval must be shorter than turns are, else threads starve.

    What was made so far is left out of garbage collection. It looks at the rest seldom, since calls make no cycles, and
    at some 200,000 objects at a time, which takes 25 ms.
    """
    sys.setswitchinterval(TURN_S)
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 4, 500)
