"""``python -m tests.compaction.crash``: servers killed at random for as long as wanted, and everything checked."""

from __future__ import annotations

import argparse
import random
import tempfile
from pathlib import Path

from hive_acid.connection import connect
from metastore.store.database import Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.schema.migrate import upgrade
from tests.compaction.crash.stress import Stress
from tests.served import served


def main() -> None:
    """Raises AssertionError with what is wrong; the seed is said before."""
    parser = argparse.ArgumentParser(prog="python -m tests.compaction.crash", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="of all that clients do and of the kills (a random one)")
    options = parser.parse_args()
    seed = random.randrange(1_000_000) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="hive-acid-crash-") as work,
        EmbeddedPostgres(Path(work, "postgres"), settings={"fsync": "off"}) as url,
    ):
        db = Database(url)
        upgrade(db)
        db.close()
        with served(url, "metastore", Path(work, "warehouse")) as server, connect(server.uri) as connection:
            connection.create_database("db")
            stress = Stress(server.db, server.db_url, connection, Path(work, "warehouse"), Path(work), seed)
            stress.run(options.seconds)
    print(", ".join(f"{count} {what}" for what, count in stress.counts.most_common()))


if __name__ == "__main__":
    main()
