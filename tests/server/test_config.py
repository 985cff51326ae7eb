"""All settings together: their sources, which of them wins, what is refused, and what Hive says to each."""

import logging
import re
from pathlib import Path
from typing import Any

import pytest

from metastore import sources
from metastore.config import Config, describe, load
from metastore.known_settings import KNOWN
from metastore.settings import SettingError, spelling

ROOT = Path(__file__).parent.parent.parent


def site(tmp_path: Path, *properties: Any, name: Any = "hive-site.xml", inside: Any = "") -> Any:
    path = tmp_path / name
    body = "".join(f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties)
    path.write_text(f'<?xml version="1.0"?>\n<configuration>{inside}{body}</configuration>')
    return path


def toml(tmp_path: Path, words: Any) -> Any:
    path = tmp_path / "metastore.toml"
    path.write_text(words)
    return path


def from_site(path: Any, **environ: Any) -> Any:
    return load([sources.from_site(path, environ)])


# --- which source wins ----------------------------------------------------------------------------


def test_a_later_source_wins_and_all_are_named(tmp_path: Path) -> None:
    given = [
        sources.from_site(site(tmp_path, ("hive.txn.timeout", "1m"), ("hive.max.open.txns", "8")), {}),
        sources.from_toml(toml(tmp_path, '[metastore.txn]\ntimeout = "2m"')),
        sources.from_environment({"HIVE_ACID__HIVE_TXN_TIMEOUT": "3m", "HIVE_ACID_POSTGRES_BIN": "/usr"}),
        sources.from_pairs(["hive.metastore.txn.timeout=4m"]),
    ]
    expected_ms = [60_000, 120_000, 180_000, 240_000]
    for number, timeout_ms in enumerate(expected_ms):
        loaded = load(given[: number + 1])
        assert loaded.config.txn.timeout_ms == timeout_ms
        assert loaded.config.txn.max_open_txns == 8
    assert load(given).source("hive.txn.timeout") == (
        f"--set, over 3m of environment HIVE_ACID__HIVE_TXN_TIMEOUT, over 2m of {tmp_path}/metastore.toml, "
        f"over 1m of {tmp_path}/hive-site.xml"
    )
    assert load(given).source("hive.txn.max.open.batch") == "default"


def test_nothing_given_is_the_default() -> None:
    assert load([]).config == Config()


def test_an_unfit_value_that_another_overrides_does_no_harm(tmp_path: Path) -> None:
    path = site(tmp_path, ("hive.txn.timeout", "whatever"))
    with pytest.raises(SettingError, match=r"hive\.txn\.timeout \(.*hive-site\.xml\): 'whatever' is not a duration"):
        from_site(path)
    loaded = load([sources.from_site(path, {}), sources.from_pairs(["hive.txn.timeout=5s"])])
    assert loaded.config.txn.timeout_ms == 5000


def test_one_source_gives_a_setting_under_one_name() -> None:
    with pytest.raises(SettingError, match="are one setting: give only one of them"):
        Config.parse(["hive.txn.timeout=5s", "metastore.txn.timeout=6s"])
    assert Config.parse(["hive.txn.timeout=5s", "hive.txn.timeout=6s"]).txn.timeout_ms == 6000


def test_in_a_shared_file_the_newest_name_wins(tmp_path: Path) -> None:
    old = ("hive.timedout.txn.reaper.interval", "50s")
    older_spelling = ("hive.acid.housekeeper.interval", "40s")
    new = ("metastore.acid.housekeeper.interval", "30s")
    assert from_site(site(tmp_path, old)).config.housekeeping.interval_ms == 50_000
    assert from_site(site(tmp_path, older_spelling, old)).config.housekeeping.interval_ms == 40_000
    assert from_site(site(tmp_path, new, older_spelling, old)).config.housekeeping.interval_ms == 30_000


def test_names_that_hive_has_given_up_still_work(tmp_path: Path) -> None:
    config = Config.parse(
        [
            "hive.timedout.txn.reaper.interval=5000",
            "hive.timedout.txn.reaper.start=7",
            "hive.compactor.history.reaper.interval=3m",
            "hive.compactor.history.retention.attempted=4",
            "hive.compactor.cleaner.retry.retentionTime=9",
        ]
    )
    assert config.housekeeping.interval_ms == 5000
    assert config.housekeeping.first_run_delay_ms == 7000
    assert config.compaction.housekeeper_interval_ms == 180_000
    assert config.compaction.keep_not_initiated == 4
    assert config.compaction.cleaner_retry_ms == 9000


# --- XML ------------------------------------------------------------------------------------------


def test_what_is_not_ours_is_passed_over_in_a_hive_site(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = site(
        tmp_path,
        ("hive.execution.engine", "tez"),
        ("javax.jdo.option.ConnectionPassword", "geheim"),
        ("hive.txn.manager", "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager"),
        ("hive.txn.timout", "5s"),
    )
    loaded = from_site(path)
    assert loaded.config == Config()
    caplog.set_level(logging.INFO, logger="metastore.config")
    loaded.log()
    warning, summary = caplog.records
    assert warning.levelname == "WARNING"
    assert "setting not used key=hive.txn.manager" in warning.getMessage()
    assert str(path) in warning.getMessage()
    assert summary.getMessage() == f"properties passed over file={path} count=3"
    assert "geheim" not in caplog.text


def test_variables_of_the_environment_are_replaced(tmp_path: Path) -> None:
    path = site(tmp_path, ("hive.txn.timeout", "${env:SECONDS}s"), ("hive.compactor.run.as.user", "${env.ME}"))
    config = from_site(path, SECONDS="12", ME="ada").config
    assert config.txn.timeout_ms == 12_000
    assert config.compaction.run_as_user == "ada"
    with pytest.raises(SettingError, match=r"'\$\{env:SECONDS\}' names a variable that the environment does not have"):
        from_site(path, ME="ada")


def test_other_variables_are_refused_where_they_matter(tmp_path: Path) -> None:
    foreign = ("hive.exec.scratchdir", "${system:java.io.tmpdir}/x")
    assert from_site(site(tmp_path, foreign)).config == Config()
    with pytest.raises(
        SettingError, match=r"hive\.compactor\.run\.as\.user .*\$\{system:user\.name\}.*is not replaced"
    ):
        from_site(site(tmp_path, foreign, ("hive.compactor.run.as.user", "${system:user.name}")))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("<configuration>", "is not XML"),
        ("<project/>", "its root is <project>"),
        (
            '<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="more.xml"/></configuration>',
            "includes more.xml: give that file with a --hive-site of its own",
        ),
    ],
)
def test_files_that_are_no_hive_site(tmp_path: Path, words: str, said: str) -> None:
    path = tmp_path / "hive-site.xml"
    path.write_text(words)
    with pytest.raises(SettingError, match=re.escape(str(path)) + ".*" + re.escape(said)):
        sources.from_site(path, {})


def test_a_directory_of_configuration(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"there is no hive-site\.xml or metastore-site\.xml in"):
        sources.site_files(tmp_path)
    first = site(tmp_path, ("hive.txn.timeout", "1m"))
    second = site(tmp_path, ("metastore.txn.timeout", "2m"), name="metastore-site.xml")
    assert sources.site_files(tmp_path) == [first, second]
    assert sources.site_files(first) == [first]
    levels = [sources.from_site(path, {}) for path in sources.site_files(tmp_path)]
    assert load(levels).config.txn.timeout_ms == 120_000


# --- TOML, environment, command line --------------------------------------------------------------


def test_toml_in_all_its_forms(tmp_path: Path) -> None:
    words = """
        "metastore.lock.poll.wait" = 250
        hive.compactor.delta.pct.threshold = 0.5
        [metastore.compactor]
        initiator.on = false
        worker = { threads = 3 }
        [hive.txn]
        timeout = "5 minutes"
    """
    config = load([sources.from_toml(toml(tmp_path, words))]).config
    assert config.lock.poll_wait_ms == 250
    assert config.compaction.delta_pct_threshold == 0.5
    assert not config.compaction.initiator_on
    assert config.compaction.worker_threads == 3
    assert config.txn.timeout_ms == 300_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("hive.txn.timeout = ", "is not TOML"),
        ("hive.txn.timeout = [5]", r"setting hive\.txn\.timeout .*a list is no value"),
        ("hive.txn.timout = 5", r"unknown setting 'hive\.txn\.timout' .*did you mean hive\.txn\.timeout\?"),
        ("hive.txn.timeout = 5.5", r"hive\.txn\.timeout \(.*metastore\.toml\): '5\.5' is not a duration"),
        ("hive.max.open.txns = 0", r"hive\.max\.open\.txns \(.*metastore\.toml\): '0' is too small: the least is 1"),
        ('"hive.txn.timeout" = 9\n[hive.txn]\ntimeout = 5', r"hive\.txn\.timeout \(.*metastore\.toml\) is given twice"),
    ],
)
def test_what_is_wrong_in_toml_is_named(tmp_path: Path, words: str, said: str) -> None:
    with pytest.raises(SettingError, match=said):
        load([sources.from_toml(toml(tmp_path, words))])


def test_the_environment_names_every_setting() -> None:
    for key in [*Config().values(), *(known.key for known in KNOWN.values())]:
        (given,) = sources.from_environment({f"HIVE_ACID__{key.replace('.', '_').upper()}": "x"})
        assert spelling(given.key) == spelling(key)
    with pytest.raises(
        SettingError, match=r"environment HIVE_ACID__HIVE_TXN_TIMOUT\); did you mean hive\.txn\.timeout"
    ):
        load([sources.from_environment({"HIVE_ACID__HIVE_TXN_TIMOUT": "5s"})])


def test_a_pair_without_a_value_is_refused() -> None:
    with pytest.raises(SettingError, match=r"'hive\.txn\.timeout' is not of the form"):
        Config.parse(["hive.txn.timeout"])


# --- what Hive says to each -----------------------------------------------------------------------


def test_a_known_setting_without_effect_is_a_warning_from_every_source(tmp_path: Path) -> None:
    for level in (
        sources.from_pairs(["hive.lock.numretries=5"]),
        sources.from_environment({"HIVE_ACID__HIVE_LOCK_NUMRETRIES": "5"}),
        sources.from_toml(toml(tmp_path, "hive.lock.numretries = 5")),
    ):
        assert load([level]).unused["hive.lock.numretries"].text == "5"


def test_no_setting_is_both_used_and_unused() -> None:
    ours = {name for setting, _ in Config().settings() for name in setting.parsers}
    assert not ours & set(KNOWN)


def test_a_default_that_is_not_hives_says_why() -> None:
    for setting, _ in Config().settings():
        hives = setting.hive if setting.wiki is None else setting.wiki
        if hives not in (None, "gone", setting.default):
            assert setting.why, setting.key


def test_every_row_of_the_listing_is_complete() -> None:
    ours, theirs = describe(load([sources.from_pairs(["hive.lock.numretries=5"])]))
    rows = {row[0]: row for row in ours.rows}
    assert rows["metastore.acid.housekeeper.interval"][1:5] == ("0s", "0s", "default", "wiki 180s, 4.0.1 60s")
    assert rows["hive.txn.timeout"][4] == "same"
    assert rows["metastore.lock.poll.wait"][4] == "ours alone"
    assert rows["metastore.compactor.initiator.on"][4] == "wiki false, 4.0.1 false"
    assert all(cell for row in ours.rows for cell in row)
    unused = {row[0]: row for row in theirs.rows}
    assert unused["hive.lock.numretries"][1:4] == ("5", "--set", "client")
    assert unused["hive.support.concurrency"][4] == "wiki true (required), 4.0.1 false"
    assert all(row[0] and row[3] and row[4] and row[5] for row in theirs.rows)


def test_every_setting_is_acted_on() -> None:
    """A setting that nothing reads would be accepted in silence and change nothing."""
    code = "\n".join(path.read_text() for path in (ROOT / "metastore").rglob("*.py"))
    declared = {name for part in vars(Config()).values() for name in vars(part)}
    assert {name for name in declared if not re.search(rf"\.{name}\b", code)} == set()


@pytest.mark.parametrize("key", ["hive.compactor.delta.num.threshold", "metastore.compactor.delta.pct.threshold"])
def test_who_gives_a_threshold_goes_by_thresholds(key: str) -> None:
    """Even one that is the default's, as files have it that list all settings; unless the policy is given, too."""
    pairs = sources.from_pairs([f"{key}={'10' if 'num' in key else '0.1'}"])
    loaded = load([pairs])
    assert load([]).config.compaction.policy == "cost"
    assert loaded.config.compaction.policy == "hive"
    assert loaded.source("metastore.compactor.policy").endswith("threshold of --set")
    for policy in ("cost", "hive"):
        given = load([pairs, sources.from_pairs([f"metastore.compactor.policy={policy}"], "a file")])
        assert given.config.compaction.policy == policy
        assert given.source("metastore.compactor.policy") == "a file"
