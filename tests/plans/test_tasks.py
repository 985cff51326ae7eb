"""In how many tasks rows are read and written, by their size and the cores: without Spark."""

from typing import NoReturn

import pytest

from hive_acid.spark.plans.tasks import Distribution, Estimate, Placing, Tasks, distribution_of, tasks_of

MB = 1 << 20


def unasked() -> NoReturn:
    raise AssertionError("to ask for cores takes a job")


@pytest.mark.parametrize(
    ("sizes", "cores", "few"),
    [
        ([], 2, True),
        ([100] * 4, 2, True),
        ([100] * 3, 16, True),
        ([100 * MB, 90 * MB], 2, True),
        ([100 * MB, 90 * MB], 16, False),
        ([300 * MB, 300 * MB], 2, False),
        ([100 * MB] * 3, 2, True),
        ([0] * 2000, 2, True),
        ([0] * 2000, 16, False),
    ],
)
def test_few_tasks_read_small_tables(sizes: list[int], cores: int, few: bool) -> None:
    assert tasks_of(sizes, lambda: cores).way is (Tasks.FEW if few else Tasks.MANY)


@pytest.mark.parametrize("sizes", [[], [100] * 3, [300 * MB, 300 * MB]])
def test_of_small_and_large_tables_no_cores_are_asked(sizes: list[int]) -> None:
    assert f"{len(sizes):,} files" in tasks_of(sizes, unasked).why


@pytest.mark.parametrize(
    ("estimate", "divided", "distribution"),
    [
        (Estimate(1, is_exact=True, is_placed=False), True, Distribution(1, shuffled=False)),
        (Estimate(1, is_exact=False, is_placed=False), True, Distribution(1, shuffled=False)),
        (Estimate(None, is_exact=True, is_placed=True), True, Distribution(None, shuffled=False)),
        (Estimate(None, is_exact=False, is_placed=False), False, Distribution(None, shuffled=True)),
        (Estimate(1000 * MB, is_exact=True, is_placed=False), False, Distribution(10, shuffled=False)),
        (Estimate(1000 * MB, is_exact=True, is_placed=False), True, Distribution(10, shuffled=True)),
        (Estimate(300 * MB, is_exact=True, is_placed=False), True, Distribution(3, shuffled=False)),
        (Estimate(300 * MB, is_exact=False, is_placed=False), False, Distribution(3, shuffled=True)),
        (Estimate(20 * MB, is_exact=True, is_placed=False), True, Distribution(2, shuffled=False)),
    ],
)
def test_rows_are_shuffled_if_that_makes_better_files(
    estimate: Estimate, divided: bool, distribution: Distribution
) -> None:
    found, placing = distribution_of(estimate, divided=divided, target_bytes=100 * MB, cores=lambda: 2)
    assert found == distribution
    assert (placing.way is Placing.SHUFFLED) is distribution.shuffled


def test_rows_for_one_task_ask_for_no_cores() -> None:
    distribution_of(
        Estimate(16 * MB, is_exact=True, is_placed=False), divided=True, target_bytes=100 * MB, cores=unasked
    )


@pytest.mark.parametrize(
    ("megabytes", "parts", "divided", "tasks"),
    [
        (300, 3, False, None),
        (300, 2, False, None),
        (300, 6, False, None),
        (300, 7, False, 3),
        (300, None, False, 3),
        (300, 3, True, 3),
    ],
)
def test_rows_that_come_in_about_as_many_tasks_as_are_wanted_stay_there(
    megabytes: int, parts: int | None, divided: bool, tasks: int | None
) -> None:
    found = Estimate(megabytes * MB, is_exact=True, is_placed=False)
    known, placing = distribution_of(
        found, divided=divided, target_bytes=100 * MB, cores=lambda: 2, parts=lambda: parts
    )
    assert known == Distribution(tasks, shuffled=False)
    assert ("as they come" in placing.why) is (tasks is None)


def test_of_few_rows_nobody_asks_in_how_many_tasks_they_come() -> None:
    found = Estimate(1, is_exact=True, is_placed=False)
    known, _ = distribution_of(found, divided=False, target_bytes=100 * MB, cores=unasked, parts=unasked)
    assert known == Distribution(1, shuffled=False)


@pytest.mark.parametrize(
    ("size_bytes", "read_bytes", "parts", "divided", "distribution"),
    [
        (12 * MB, 12 * MB, 3, False, Distribution(None, shuffled=False)),
        (12 * MB, 12 * MB, 4, False, Distribution(1, shuffled=False)),
        (12 * MB, 12 * MB, 3, True, Distribution(1, shuffled=False)),
        (300 * MB, 300 * MB, 16, False, Distribution(None, shuffled=False)),
        (300 * MB, 300 * MB, 17, False, Distribution(3, shuffled=True)),
        (300 * MB, 300 * MB, 3, True, Distribution(3, shuffled=True)),
        (None, 12 * MB, 3, False, Distribution(None, shuffled=False)),
        (None, 12 * MB, 4, False, Distribution(None, shuffled=True)),
        (None, 12 * MB, 3, True, Distribution(None, shuffled=True)),
        (None, None, 2, False, Distribution(None, shuffled=True)),
        (None, None, 1, False, Distribution(None, shuffled=False)),
        (None, 1, 1, True, Distribution(None, shuffled=True)),
        (3000 * MB, 3000 * MB, 2, False, Distribution(30, shuffled=True)),
        (None, 3000 * MB, 2, False, Distribution(None, shuffled=True)),
    ],
)
def test_rows_of_which_some_are_dropped_stay_in_few_tasks_of_some_size(
    size_bytes: int | None, read_bytes: int | None, parts: int, divided: bool, distribution: Distribution
) -> None:
    found = Estimate(size_bytes, is_exact=False, is_placed=False, read_bytes=read_bytes)
    known, _ = distribution_of(found, divided=divided, target_bytes=100 * MB, cores=lambda: 2, parts=lambda: parts)
    assert known == distribution


@pytest.mark.parametrize("size_bytes", [None, 1, 3000 * MB])
def test_rows_that_come_out_of_a_shuffle_are_not_shuffled_again(size_bytes: int | None) -> None:
    found = Estimate(size_bytes, is_exact=False, is_placed=False, is_shuffled=True)
    known, placing = distribution_of(found, divided=False, target_bytes=100 * MB, cores=unasked, parts=unasked)
    assert known == Distribution(None, shuffled=False)
    assert placing.way is Placing.IN_PLACE
    assert distribution_of(found, divided=True, target_bytes=100 * MB, cores=lambda: 2)[0].shuffled is (size_bytes != 1)
