"""Whether the rows of a finished file stand in the order of their keys: only the three columns of the key are read.

An unsorted file loses deletes in Hive (acid-format.md §3.4), so whoever writes without a sort looks afterwards.
"""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from hive_acid.filesystem import files
from hive_acid.format.rows import KEY

LOG = logging.getLogger(__name__)

_THREADS = 4


def can_look() -> bool:
    """Whether pyarrow is here."""
    return importlib.util.find_spec("pyarrow") is not None


def out_of_order(paths: Sequence[str]) -> list[str]:
    """Those of ORC files with ACID columns in which not every key comes after the one before it."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="file-order") as pool:
        return [path for path, ordered in zip(paths, pool.map(_is_ordered, paths), strict=True) if not ordered]


def _is_ordered(path: str) -> bool:
    from pyarrow import ArrowException

    try:
        return _rises_throughout(path)
    except (ArrowException, OSError, ValueError) as error:
        LOG.warning("%s cannot be read again: %s", path, error)
        return False


def _rises_throughout(path: str) -> bool:
    from pyarrow import orc

    with files.opened(path) as content:
        file = orc.ORCFile(content)
        last: tuple[int, ...] | None = None
        for stripe in range(file.nstripes):
            batch = file.read_stripe(stripe, columns=list(KEY))
            if batch.num_rows == 0:
                continue
            columns = [batch.column(batch.schema.get_field_index(name)) for name in KEY]
            first = tuple(column[0].as_py() for column in columns)
            if last is not None and first <= last:
                return False
            if not _rises(columns):
                return False
            last = tuple(column[-1].as_py() for column in columns)
    return True


def _rises(columns: Sequence[object]) -> bool:
    """Whether each row's key is greater than that of the row before, column by column."""
    import pyarrow.compute as pc

    greater = None
    for column in reversed(columns):
        before, after = column[:-1], column[1:]  # type: ignore[index]
        own = pc.greater(after, before)
        greater = own if greater is None else pc.or_(own, pc.and_(pc.equal(after, before), greater))
    return bool(pc.all(greater).as_py() is not False)
