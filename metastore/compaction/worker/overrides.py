"""What tables and requests say of their compactions: ``compactor.*`` of the job, ``tblprops.*`` of what it writes.

A request wins over its table, names are compared without regard to case (transactions.md §4.6).
"""

from __future__ import annotations

from collections.abc import Mapping

from metastore.settings import SettingError

_JOB, _TABLE = "compactor.", "tblprops."
_SPARK = "spark."
_QUEUES = ("hive.compactor.job.queue", "mapreduce.job.queuename", "mapred.job.queue.name")
"""The names of a job's queue in Hive's releases, the newest first."""
_MAX_DELTAS = "hive.compactor.max.num.delta"
_WRITTEN = (
    *("orc.stripe.size", "orc.row.index.stride", "orc.compress.size", "orc.block.padding"),
    *("orc.bloom.filter.columns", "orc.bloom.filter.fpp"),
)
"""What a table may say of its ORC files beside their compression."""


def job_properties(parameters: Mapping[str, str], request: Mapping[str, str]) -> dict[str, str]:
    """The ``compactor.*`` of a table with `parameters` and of a `request`, without that prefix: Spark's settings, and
    Hive's such as ``hive.compactor.job.queue``. Names are in lower case but for Spark's, which knows only its own.
    """
    found: dict[str, tuple[str, str]] = {}
    for given in (parameters, request):
        for key, value in given.items():
            if key.lower().startswith(_JOB):
                name = key[len(_JOB) :]
                found[name.lower()] = (name if name.lower().startswith(_SPARK) else name.lower(), value)
    return dict(found.values())


def job_queue(parameters: Mapping[str, str], request: Mapping[str, str]) -> str:
    """The queue that a request, or else its table, names for the job; empty if neither does."""
    for given in (job_properties({}, request), job_properties(parameters, {})):
        for name in _QUEUES:
            if given.get(name):
                return given[name]
    return ""


def max_deltas(parameters: Mapping[str, str], request: Mapping[str, str], default: int) -> int:
    """How many deltas a request, or else its table, wants to be merged at a time.

    Raises SettingError for what is no number from 2 on.
    """
    given = job_properties(parameters, request).get(_MAX_DELTAS)
    if given is None:
        return default
    if not given.strip().isdecimal() or int(given) < 2:
        raise SettingError(f"{_JOB}{_MAX_DELTAS} is '{given}': give a whole number from 2 on")
    return int(given)


def spark_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of `job_properties` that are Spark's; what of them a running session cannot take is for its start."""
    return {name: value for name, value in properties.items() if name.startswith(_SPARK)}


def table_properties(parameters: Mapping[str, str], request: Mapping[str, str]) -> dict[str, str]:
    """A table's parameters as a compaction has to see them: those of ``tblprops.*`` of the request take their place."""
    own = {key[len(_TABLE) :]: value for key, value in request.items() if key.lower().startswith(_TABLE)}
    replaced = {key.lower() for key in own}
    return {**{key: value for key, value in parameters.items() if key.lower() not in replaced}, **own}


def written_options(properties: Mapping[str, str]) -> dict[str, str]:
    """What else these `table_properties` say of ORC files."""
    return {key.lower(): value for key, value in properties.items() if key.lower() in _WRITTEN}
