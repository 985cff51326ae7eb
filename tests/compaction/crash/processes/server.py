"""A server's background services, until killed.

``python -m tests.compaction.crash.processes.server URL WAREHOUSE KEY=VALUE …``. The services are real, on their
intervals, under the lease, beside those of other such processes; in Spark's place files of lines are merged, slowly.
"""

from __future__ import annotations

import logging
import random
import sys
import threading
import time

from hive_acid.compaction_job import CompactionJob
from metastore.config import Config
from metastore.schedule import Schedule
from metastore.slices import Slices
from metastore.store.database import Database
from tests.compaction.crash.processes.merging import Merger

LONGEST_MERGE_S = 0.3


def main() -> None:
    """Run until killed."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s %(message)s")
    url, warehouse, *settings = sys.argv[1:]

    def linger(job: CompactionJob, _cancelled: threading.Event | None = None) -> None:
        time.sleep(random.uniform(0, LONGEST_MERGE_S))

    made = Slices(Database(url), warehouse, Config.parse(settings), Merger(before=linger, after=linger))
    Schedule(made.services(), made.lease).start()
    print("running", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
