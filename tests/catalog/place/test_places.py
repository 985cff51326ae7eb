"""The normal form of places, against what the paths really are on a disk with links."""

import os
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

from hive_acid.errors import MetaError
from hive_acid.filesystem import files
from metastore.catalog.place import places
from metastore.catalog.place.places import (
    SCHEMES,
    Alias,
    Place,
    ancestors,
    check_whole,
    identity,
    is_below,
    local_aliases,
    qualified,
    spellings,
    spellings_below,
)

STEPS = ("a", "b", "%61", "a b", "link", "up", "A", "p=1%2F2")


def test_places_are_one_exactly_if_their_paths_are_one_directory(tmp_path: Path) -> None:
    """2,000 pairs of spellings by seed; the oracle follows the links of the disk."""
    rng = random.Random(31)
    _tree(tmp_path)
    known: list[Alias] = []
    for number in range(2000):
        one, other = (_spelled(rng, _path(rng, tmp_path)) for _ in range(2))
        stored = [qualified(location) for location in (one, other)]
        try:
            for location in stored:
                known += [alias for alias in local_aliases(location) if alias not in known]
        except MetaError:  # as b/link/up/link
            continue
        first, second = (os.path.realpath(location.removeprefix("file:")) for location in stored)
        found = [identity(location, known) for location in stored]
        message = f"{number}: {one} and {other}"
        assert (found[0] == found[1]) is (first == second), message
        assert (f"{found[0]}/").startswith(f"{found[1]}/") is f"{first}/".startswith(f"{second}/"), message
        if first == second:
            assert stored[1] in spellings(stored[0], known), message
        elif first.startswith(f"{second}/") and len(known) < 4:
            roots = {*spellings(stored[1], known), *spellings_below(stored[1], known)}
            assert any(is_below(stored[0], root) for root in roots), message


def _tree(root: Path) -> None:
    for step in ("a", "b", "a b", "%61", "A"):
        (root / step / "a").mkdir(parents=True)
    (root / "link").symlink_to(root / "a")
    (root / "b" / "link").symlink_to(root / "a b", target_is_directory=True)
    (root / "a b" / "up").symlink_to("../b")


def _path(rng: random.Random, root: Path) -> str:
    return "/".join([str(root), *(rng.choice(STEPS) for _ in range(rng.randrange(4)))])


def _spelled(rng: random.Random, path: str) -> str:
    """The path with steps that lead nowhere, in one of the forms of a local location."""
    steps: list[str] = []
    for step in path.strip("/").split("/"):
        steps += rng.choice(([], [], ["."], [""], ["x", ".."], [".", "", "y", "z", "..", ".."]))
        steps.append(step)
    head = rng.choice(("/", "file:/", "file:///", "FILE:/", "file://localhost/", "//", "file:////"))
    while steps[0] == "":  # "file://" would be followed by a host
        del steps[0]
    return head + "/".join(steps) + rng.choice(("", "/", "//", "/.", "/x/.."))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/x", "s3a://b//x/"),
        ("s3a://b", "s3n://b/x/.."),
        ("hdfs://nn/x", "HDFS://NN:8020/x"),
        ("abfs://c@a.dfs.core.windows.net/x", "abfss://c@a.dfs.core.windows.net/./x"),
        ("gs://b/x", "gcs://b/x"),
    ],
)
def test_one_place_of_other_file_systems(one: str, other: str) -> None:
    stored, same = qualified(one), qualified(other)
    assert identity(stored) == identity(same)
    assert same.lower() in [found.lower() for found in spellings(stored)]


@pytest.mark.parametrize(
    ("one", "other"),
    [("s3://b/x", "s3://b/X"), ("hdfs://nn:9000/x", "hdfs://nn/x"), ("s3://b/x", "gs://b/x"), ("/a%62", "/ab")],
)
def test_two_places(one: str, other: str) -> None:
    assert identity(qualified(one)) != identity(qualified(other))


@pytest.mark.parametrize(
    ("given", "root", "stored"),
    [
        ("/x", "file:/w", "file:/x"),
        ("x/./y", "file:/w", "file:/x/y"),
        ("/x", "hdfs://nn:8020/w", "hdfs://nn:8020/x"),
        ("hdfs:///x/", "hdfs://nn/w", "hdfs://nn/x"),
        ("hdfs:/x", "s3a://b/w", "hdfs:///x"),
        ("/", "file:/w", "file:/"),
        ("s3a://b/", "file:/w", "s3a://b"),
        ("/../x", "file:/w", "file:/x"),
        ("file:/a?b#c%20", "file:/w", "file:/a?b#c%20"),
    ],
)
def test_the_stored_form(given: str, root: str, stored: str) -> None:
    assert qualified(given, root) == stored
    assert qualified(stored, root) == stored


@pytest.mark.parametrize(
    "location",
    [
        "http://h/x",
        "zip::file:///x",
        "file:/x::http://h/y",
        "memory://x",
        "data:,abc",
        "file://host/x",
        "/a\x00b",
        "x" * 5000,
    ],
)
def test_what_cannot_be_a_place(location: str) -> None:
    with pytest.raises(MetaError, match="cannot be a place"):
        qualified(location, "file:/w", ("file", "s3a"))


@pytest.mark.parametrize(
    "location",
    [
        "s3a:///b/x",  # to s3fs the bucket b
        "s3a:/b/x",
        "s3a://key:secret@b/x",
        "s3a://b:80/x",
        "s3a://arn:aws:s3:eu:1:accesspoint/b/x",
        "s3a://b/victim?versionId=1",
        "s3a://b/victim?versionId=1/x",
        "gs://user@b/x",
        "hdfs://user@h:8020/x",
        "hdfs://h:08020/x",
        "hdfs://h:/x",
        "hdfs://h:\u0668\u0660\u0662\u0660/x",
        "hdfs://h./x",
        "hdfs://h%2e/x",
        "viewfs://u@c/x",
        "abfs://account/x",
        "abfs://c@a@b/x",
        "abfs:///x",
    ],
)
def test_what_would_be_another_name_of_a_place(location: str) -> None:
    with pytest.raises(MetaError, match="cannot be a place"):
        qualified(location, "file:/w", SCHEMES)


@pytest.mark.parametrize(
    "name", ["?x", "#f", ";p", "%20", "%2Fa", "*", "[a]", "~", " ", "\u00e9", "e\u0301", "@2", "$HOME"]
)
@pytest.mark.parametrize("root", ["file:/w/x", "s3a://b/x"])
def test_the_file_system_has_the_place_that_is_compared(root: str, name: str) -> None:
    stored = qualified(f"{root}{name}/t")
    filesystem, path = files._open(stored)
    place = Place.of(stored)
    assert path == f"{place.authority}{place.path}"
    if place.authority:
        assert filesystem.split_path(path) == (place.authority, place.path[1:], None)


@pytest.mark.parametrize("location", ["a/b", "./a", "%^#$$%#$a/b", "file:a/b", "hdfs:a", "s3a:b/x", "a", "~/a"])
def test_a_path_that_does_not_begin_at_the_root_is_none(location: str) -> None:
    """As Hadoop has it. It was taken for one that does, so tables lay at the root of the disk."""
    with pytest.raises(MetaError, match="is not a whole path, such as"):
        check_whole(location)
    for whole in ("/a", "file:/a", "file:///a", "s3a://b/x"):
        check_whole(whole)


def test_where_the_case_of_letters_does_not_count() -> None:
    known = [Alias("/Mac", "/Mac", ignores_case=True)]
    assert identity("file:/Mac/Dir", known) == identity("file:/mac/dIR", known)
    assert identity("file:/Dir", known) != identity("file:/dir", known)


def test_a_file_system_that_ignores_case_is_known_by_its_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what is there has another number under each name, as on FUSE's exFAT."""
    (tmp_path / "disk" / "W" / "victim").mkdir(parents=True)
    assert local_aliases(f"{tmp_path}/disk/W/VICTIM") == []
    ignore_case(monkeypatch, tmp_path / "disk")
    for path in ("W/VICTIM", "w/victim/x", "W/new", "wW/../W/Victim"):
        assert local_aliases(f"{tmp_path}/disk/{path}") == [Alias(f"{tmp_path}/disk", f"{tmp_path}/disk", True)], path
    # What is beside a name that is not there tells it, too.
    assert local_aliases(f"{tmp_path}/disk/new/x") == [Alias(f"{tmp_path}/disk", f"{tmp_path}/disk", True)]
    assert local_aliases(f"{tmp_path}/DISK/W") == local_aliases(f"{tmp_path}/new") == []


def test_an_empty_disk_that_ignores_case_is_known_by_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two places on it that differ in case only were both given away, since no name told that they are one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    assert local_aliases(f"{disk}/victim") == []
    ignore_case(monkeypatch, disk)
    known = [Alias(str(disk), str(disk), True)]
    assert local_aliases(f"{disk}/victim") == local_aliases(f"{disk}/2024/x") == known
    (disk / "2024").mkdir()
    assert local_aliases(f"{disk}/2024/x") == [Alias(f"{disk}/2024", f"{disk}/2024", True)]
    assert local_aliases(f"{disk}/victim") == known
    assert list(disk.rglob("*")) == [disk / "2024"]
    (disk / "2024" / "w").mkdir()
    assert local_aliases(f"{disk}/2024/w/1") == [Alias(f"{disk}/2024", f"{disk}/2024", True)]


def test_a_name_in_letters_that_each_file_system_folds_its_own_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "W" / "\u00e9").mkdir(parents=True)
    ignore_case(monkeypatch, tmp_path)
    assert local_aliases(f"{tmp_path}/w/\u00e9/x")
    assert local_aliases(f"{tmp_path}/W/\u00fc/x")
    with pytest.raises(MetaError, match=r"cannot be a place: the case.* has for '\u00c9' is named otherwise"):
        local_aliases(f"{tmp_path}/W/\u00c9/x")


@pytest.mark.parametrize("both", [True, False])
def test_a_link_beside_a_name_in_other_letters_is_no_sign_of_it(tmp_path: Path, both: bool) -> None:
    (tmp_path / "t").mkdir()
    if both:
        (tmp_path / "T").mkdir()
    else:
        (tmp_path / "T").symlink_to("t")
    assert not any(alias.ignores_case for name in "tT" for alias in local_aliases(f"{tmp_path}/{name}"))


def ignore_case(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Let the disk below a directory look as if the case of letters did not count there."""

    def found(path: str) -> str:
        steps = Path(path).parts[len(root.parts) :] if Path(path).is_relative_to(root) else ()
        at = root if steps or Path(path) == root else Path(path)
        for step in steps:
            names = os.listdir(at) if at.is_dir() else []
            at /= next((name for name in names if name.lower() == step.lower()), step)
        return str(at)

    def numbered(path: str) -> os.stat_result:
        if not Path(path).is_relative_to(root):
            return os.lstat(path)
        return os.stat_result((*os.lstat(found(path))[:1], hash(path), *os.lstat(found(path))[2:]))

    path = SimpleNamespace(
        join=os.path.join,
        lexists=lambda path: os.path.lexists(found(path)),
        islink=lambda path: os.path.islink(found(path)),
        realpath=os.path.realpath,
        samestat=os.path.samestat,
        ismount=lambda path: Path(path) == root or os.path.ismount(path),
        split=os.path.split,
    )
    look = SimpleNamespace(
        path=path,
        lstat=numbered,
        fsencode=os.fsencode,
        listdir=lambda path: os.listdir(found(path)),
        scandir=lambda path: os.scandir(found(path)),
        open=lambda path, *how: os.open(found(path), *how),
        unlink=lambda path: os.unlink(found(path)),
        close=os.close,
        O_CREAT=os.O_CREAT,
        O_EXCL=os.O_EXCL,
        O_WRONLY=os.O_WRONLY,
    )
    monkeypatch.setattr(places, "os", look)


def test_what_is_above() -> None:
    assert list(ancestors("file:/a/b")) == ["file:/a", "file:/"]
    assert list(ancestors("s3a://b/x")) == ["s3a://b"]


def test_a_link_into_what_is_around_it(tmp_path: Path) -> None:
    """There is no end of ways through it; those that pass it twice are no places, so there are two of each."""
    (tmp_path / "t").mkdir()
    (tmp_path / "around").symlink_to(tmp_path)
    once = str(tmp_path / "around" / "t")
    known = local_aliases(once)
    assert spellings(f"file:{tmp_path}/t", known) == [f"file:{once}", f"file:{tmp_path}/t"]
    with pytest.raises(MetaError, match=r"passes .*/around twice"):
        local_aliases(str(tmp_path / "around" / "around" / "t"))


def test_what_may_be_a_place_is_named_once() -> None:
    with pytest.raises(MetaError, match=r"http is none of .* \(file, s3a\)$"):
        qualified("http://h/x", schemes=("file", "s3a", "file"))
