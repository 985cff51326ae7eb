"""The floor: what bare Postgres does with as many one-row commits as a cycle has durable calls.

The statements have the shape of a cycle's (a transaction, its write id, its lock, a heartbeat, the commit), each
committed by itself, but check nothing. pgbench, which is written in C, sends them prepared.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg2

from metastore.store.embedded.server import binaries

_TABLES = """
CREATE TABLE IF NOT EXISTS floor_txn (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text, beat timestamptz);
CREATE TABLE IF NOT EXISTS floor_write_id (txn bigint PRIMARY KEY, place int, write_id bigint);
CREATE TABLE IF NOT EXISTS floor_lock (txn bigint PRIMARY KEY, place int, state text);
"""
_STATEMENTS = {
    "open": "INSERT INTO floor_txn (state, beat) VALUES ('open', clock_timestamp()) RETURNING id AS txn \\gset",
    "allocate": "INSERT INTO floor_write_id VALUES (:txn, :place, :txn);",
    "lock": "INSERT INTO floor_lock VALUES (:txn, :place, 'acquired');",
    "heartbeat": "UPDATE floor_txn SET beat = clock_timestamp() WHERE id = :txn;",
    "commit": "UPDATE floor_txn SET state = 'committed' WHERE id = :txn;",
}
CYCLES = {
    "write": ("open", "allocate", "lock", "heartbeat", "commit"),
    "insert": ("open", "allocate", "lock", "commit"),
}
"""The statements of the cycles that have a floor."""


def measure(postgres_url: str, cycle: str, connections: int, seconds: float) -> float:
    """Cycles per second. Raises RuntimeError with pgbench's words when it fails."""
    with psycopg2.connect(postgres_url) as connection, connection.cursor() as cursor:
        cursor.execute(_TABLES)
    lines = ["\\set place random(1, 1000)", *(_STATEMENTS[name] for name in CYCLES[cycle])]
    parts = urlsplit(postgres_url)
    with tempfile.TemporaryDirectory(prefix="hive-acid-floor-") as directory:
        script = Path(directory) / "cycle.sql"
        script.write_text("\n".join(lines) + "\n")
        command = [str(binaries() / "pgbench"), "--no-vacuum", "--protocol=prepared", f"--file={script}"]
        command += [f"--client={connections}", f"--jobs={min(2, connections)}", f"--time={max(1, round(seconds))}"]
        command += [f"--username={parts.username}", f"--host={parse_qs(parts.query)['host'][0]}", parts.path[1:]]
        done = subprocess.run(command, capture_output=True, text=True)
    found = re.search(r"^tps = ([0-9.]+)", done.stdout, re.MULTILINE)
    if done.returncode != 0 or found is None:
        raise RuntimeError(f"pgbench failed: {done.stderr.strip()[-500:]}")
    return float(found[1])
