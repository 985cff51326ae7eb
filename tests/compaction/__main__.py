"""``python -m tests.compaction --seed 7 --steps 2000``: readers, writers and the Cleaner, until a seed breaks."""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

from metastore.store.database import SCHEMA, Database
from metastore.store.embedded.server import EmbeddedPostgres
from metastore.store.schema.migrate import upgrade
from tests.compaction.cleaner.cleaning_walk import Walk


def main() -> None:
    """Walk with one seed after the other, each in a database of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.compaction", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--walks", type=int, default=0, help="how many; 0: until one breaks")
    parser.add_argument("--steps", type=int, default=300, help="of each walk")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as directory,
        EmbeddedPostgres(Path(directory, "postgres"), settings={"fsync": "off"}) as url,
    ):
        for seed in itertools.count(options.seed):
            if options.walks and seed >= options.seed + options.walks:
                return
            db = Database(url)
            with db.engine.begin() as connection:
                connection.exec_driver_sql(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE")
            upgrade(db)
            walk = Walk(db, Path(directory, f"warehouse-{seed}"), seed)
            print(f"seed {seed}", end=" ", flush=True)
            walk.run(options.steps)
            print(f"{walk.removed} directories removed", flush=True)
            db.close()


if __name__ == "__main__":
    main()
