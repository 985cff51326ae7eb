"""Up to which sizes a statement takes the cheaper of two ways. All ways give the same rows."""

from __future__ import annotations

from dataclasses import dataclass

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What decides how a table is read, how a change is written, and how a partition is merged.

    The numbers were measured (docs/architecture). Tests give others, to take the other way.
    """

    # --- reading -------------------------------------------------------------------------------

    skipping_files: int = 1000
    """So many footers, of the largest files, are opened to leave files out; those beyond are read without a look."""

    deletes_reach_files: int = 256
    """So many footers are opened in one partition to find out which of its files deletes may have touched."""

    counted_files: int = 4096
    """So many footers are opened to count the rows of a table: a second from a local disk, where Spark takes ten."""

    delete_events: int = 3_000_000
    """So many delete events are looked up by one scan; more are joined. To read as many once takes a second."""

    delete_files: int = 512
    """So many delete files that are not known yet are read for one scan: half a second from a local disk."""

    delete_words: int = 1 << 18
    """Words of 64 rows each that a scan carries to look deletes up: 2 MB."""

    broadcast_bytes: int = 64 * _MB
    """Up to this size delete files, and a MERGE's source, are broadcast: some twenty million keys (data-path.md §2)."""

    joined_partitions: int = 8
    """Of a table with so many partitions, or more, those are left out that a join with a small table does not reach."""

    joined_bytes: int = 10 * _MB
    """So large that other table may be, as Spark estimates it: what it would broadcast, too."""

    joined_rows: int = 100_000
    """So many rows of it are kept with the query at most, if no snapshot keeps it as it is."""

    joined_values: int = 1_000
    """So many values of a partition key are taken from it at most."""

    cached_plan_files: int = 4_096
    """Of tables with more files no plan is cached: what Spark knows of each of them would stay in its memory."""

    cached_plans: int = 16
    """So many plans are cached, those of the tables that were read last."""

    # --- changing ------------------------------------------------------------------------------

    driver_deletes: int = 200_000
    """So many rows to delete, in all partitions, are brought to the client at most: some 20 MB there."""

    driver_rows: int = 100_000
    """So many new rows are brought to the client at most, each of no more than `driver_row_bytes`: some 50 MB. So many
    keys of a MERGE's source are, too, if none is a text.
    """

    driver_row_bytes: int = 500
    """How long the texts of one of these may be together."""

    driver_given_bytes: int = _MB
    """So many bytes of rows that stand in an INSERT are written by the client at most."""

    driver_query_bytes: int = 4 * _MB
    """So many bytes of the rows of any other query are, by Spark's estimate, which is of files and may be a tenth of
    what the rows take.
    """

    driver_column_bytes: int = _MB // 4
    """So many bytes of each column: of two bigints these are 40,000 rows. More than `driver_rows` were brought in vain,
    which takes 0.1 s.
    """

    driver_columns: int = 48
    """Into tables of more columns the rows of a query are written by a job, which takes no longer from 64 on: Spark's
    optimizer draws conclusions from what is asked of the number of rows, and of 600 columns it came to no end.
    """

    # --- compaction ----------------------------------------------------------------------------

    merged_delete_events: int = 300_000
    """So many delete events are merged without Spark, which takes 0.3 s and 100 MB."""

    one_task_bytes: int = 16 * _MB
    """Up to so much is merged in one task of Spark even if there are many buckets."""

    by_bucket_bytes: int = _MB
    """Up to so much Spark merges in one task, which is the least that it can do, and not bucket by bucket."""

    bucket_bytes: int = _MB
    """Bucket by bucket pays where the files of a bucket have so much, or where there are no more than `few_buckets`."""

    few_buckets: int = 4

    kept_stripe_bytes: int = 2 * _MB
    """Files with smaller stripes, on an average, are written anew: each stripe costs a reader a start of its own."""

    taken_over_bytes: int = 128 * _MB
    """A bucket of up to so much, of which files of another writer than pyarrow could be copied, pyarrow writes as a
    whole: what it writes later is joined with that, which saves a Spark job each time (0.8 s of processors)."""

    run_bytes: int = 8 * _MB
    """Smaller files are sorted together: a scan more costs as much as to sort so much (0.2 s of processors)."""

    runs: int = 8
    """Into about so many runs a partition is divided, whatever its buckets: tasks of one run each end together."""

    runs_per_job: int = 16
    """Each run takes a scan of its own: plans of more become slow to make."""

    arrow_bytes: int = 512 * _MB
    """So much is merged by pyarrow, which takes two threads some ten seconds; more is divided among executors."""

    arrow_sorted_bytes: int = 32 * _MB
    """Rows of files that overlap are sorted in memory, where they take ten times as much."""

    arrow_columns: int = 100
    """Each column that pyarrow writes has a buffer of a megabyte or more."""

    arrow_row_bytes: int = 1000
    """How long the texts of a row may be, on an average: a batch is in memory, the longest in the footer."""

    arrow_batch_values: int = 1 << 20
    """So many values pyarrow reads at a time, but no fewer rows than `arrow_batch_rows`."""

    arrow_batch_rows: int = 1024


DEFAULT = Limits()
"""Those of every session that is given no others."""
