"""Many writers and pollers at once: nobody misses an event, sees one twice, or sees another order."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

from metastore.events.recording import record
from metastore.store.database import Database

from .conftest import Writer, event

WRITERS, ROUNDS, POLLERS = 5, 30, 3


def test_pollers_see_every_committed_event_once_and_in_one_order(writer: Writer, db: Database) -> None:
    ended = threading.Event()

    def write(name: str) -> list[str]:
        """Transactions of some events that commit late, at once or never; what was committed, in order."""
        chance = random.Random(name)
        committed = []
        for number in range(ROUNDS):
            names = [f"{name}-{number}-{part}" for part in range(chance.randint(1, 3))]
            with db.engine.connect() as connection:
                for one in names:
                    record(connection, event(one))
                    ended.wait(chance.choice((0, 0, 0.002)))
                if chance.random() < 0.2:
                    connection.rollback()
                else:
                    connection.commit()
                    committed += names
        return committed

    def poll(number: int) -> list[str | None]:
        """As a consumer does: always after the last id it has got."""
        chance = random.Random(number)
        seen: list[str | None] = []
        while True:
            is_last = ended.is_set()
            found = writer.read(after_id=len(seen), at_most=chance.randint(1, 20))
            assert [event_id for event_id, _ in found] == list(range(len(seen) + 1, len(seen) + 1 + len(found)))
            seen += [name for _, name in found]
            if is_last and not found:
                return seen

    with ThreadPoolExecutor(WRITERS + POLLERS) as pool:
        polled = [pool.submit(poll, number) for number in range(POLLERS)]
        written = [future.result() for future in [pool.submit(write, f"w{number}") for number in range(WRITERS)]]
        ended.set()
        views = [future.result() for future in polled]
    assert views[0] == views[1] == views[2]
    assert sorted(str(name) for name in views[0]) == sorted(name for names in written for name in names)
    for number, names in enumerate(written):
        assert [name for name in views[0] if str(name).startswith(f"w{number}-")] == names
