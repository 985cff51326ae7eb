"""The conformance vectors of acid-format.md §8: a listing, a snapshot, and what is to be read.

Short names: ``D1.0`` is delta_0000001_0000001_0000, ``D1-3v9`` is delta_0000001_0000003_v0000009, ``X…`` the delete
delta of the same numbers, ``B5v9`` is base_0000005_v0000009 and ``Bmin`` the base of original files. Every directory
holds one bucket file unless brackets say what it holds instead. Anything else stands for itself.
"""

import re
from dataclasses import dataclass

from hive_acid.errors import FormatError, NotEnoughHistoryError
from hive_acid.format import names
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList

_SHORT = re.compile(r"([DX])(\d+)(?:-(\d+))?(?:\.(\d+))?(?:v(\d+))?|(B)(\d+|min)(?:v(\d+))?")
_CONTENTS = {
    "data": "bucket_00000",
    "version": "_orc_acid_version",
    "truncated": "_metadata_acid",
    "compacted": "_metadata_acid",
}


@dataclass(frozen=True)
class Vector:
    """One vector; all fields are in the short notation, lists separated by blanks.

    `filtered` names the selected directories whose rows need a test each.
    """

    id: str
    title: str
    write_ids: str
    listing: str
    txns: str = "hwm 1000"
    compactor: bool = False
    base: str = ""
    inserts: str = ""
    deletes: str = ""
    originals: str = ""
    obsolete: str = ""
    aborted: str = ""
    filtered: str = ""
    uncompacted_aborts: bool = False
    error: type[Exception] | None = None

    def write_id_list(self) -> ValidWriteIdList:
        high_water_mark, open_ids, aborted_ids = parse_ids(self.write_ids)
        write_ids = ValidWriteIdList("db.t", high_water_mark, open_ids, aborted_ids)
        return write_ids.for_compactor() if self.compactor else write_ids

    def txn_list(self) -> ValidTxnList:
        return ValidTxnList(*parse_ids(self.txns))

    def entries(self) -> list[tuple[str, int]]:
        return [entry for short in self.listing.split() for entry in expand(short)]

    def metadata(self) -> dict[str, bytes]:
        content = re.search(r"truncated|compacted", self.listing)
        text = f'{{"thisFileVersion":"0","dataFormat":"{content[0]}"}}' if content else ""
        return {path: text.encode() for path, _ in self.entries() if path.endswith("/_metadata_acid")}


def parse_ids(text: str) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """``hwm 8, open 7,8, aborted 5`` as (8, (7, 8), (5,))."""
    found = dict(re.findall(r"(hwm|open|aborted) (max|[\d,]*\d)", text))
    high_water_mark = 2**63 - 1 if found["hwm"] == "max" else int(found["hwm"])
    open_ids, aborted_ids = (
        tuple(int(part) for part in found.get(key, "").split(",") if part) for key in ("open", "aborted")
    )
    return high_water_mark, open_ids, aborted_ids


def long_name(short: str) -> str:
    """The file system's name for a short one."""
    match = _SHORT.fullmatch(short)
    if not match:
        return short
    if match[6]:
        write_id = names.ORIGINALS_WRITE_ID if match[7] == "min" else int(match[7])
        return names.base_name(write_id, int(match[8] or 0))
    name = names.delta_name if match[1] == "D" else names.delete_delta_name
    statement_id = None if match[4] is None else int(match[4])
    return name(int(match[2]), int(match[3] or match[2]), statement_id, int(match[5] or 0))


def long_names(text: str) -> list[str]:
    return [long_name(short) for short in text.split()]


def expand(short: str) -> list[tuple[str, int]]:
    """The entries of a listing for one short name, with some size."""
    contents = re.search(r"\[(.*)\]", short)
    top, slash, below = short.partition("[")[0].partition("/")
    directory = long_name(top)
    if contents:
        files = [(f"{directory}/{_CONTENTS[what]}", 1) for what in contents[1].split(",") if what]
        return [(f"{directory}/", 0), *files]
    if slash:
        nested = "/".join(long_name(part) for part in below.split("/"))
        return [(f"{directory}/", 0), (f"{directory}/{nested}", 100)]
    if directory == top:
        return [(top, 100)]
    return [(f"{directory}/", 0), (f"{directory}/bucket_00000", 100), (f"{directory}/_orc_acid_version", 1)]


VECTORS = [
    Vector("T01", "one committed write", "hwm 1", "D1.0", inserts="D1.0"),
    Vector(
        "T02",
        "inserts, then updates as pairs",
        "hwm 3",
        "D1.0 X2.0 D2.0 X3.0",
        inserts="D1.0 D2.0",
        deletes="X2.0 X3.0",
    ),
    Vector("T03", "a delta above the high-water mark is not there", "hwm 1", "D1.0 D2.0", inserts="D1.0"),
    Vector("T04", "a hole where a write is open", "hwm 3, open 2", "D1.0 D2.0 D3.0", inserts="D1.0 D3.0"),
    Vector(
        "T05",
        "a hole where a write is aborted",
        "hwm 3, aborted 2",
        "D1.0 D2.0 D3.0",
        inserts="D1.0 D3.0",
        aborted="D2.0",
    ),
    Vector("T06", "three statements of one write", "hwm 1", "D1.0 D1.1 X1.1", inserts="D1.0 D1.1", deletes="X1.1"),
    Vector(
        "T07",
        "a minor compaction replaces its input",
        "hwm 3",
        "D1.0 D2.0 D3.0 D1-3v9",
        inserts="D1-3v9",
        obsolete="D1.0 D2.0 D3.0",
    ),
    Vector(
        "T08",
        "and later deltas follow it",
        "hwm 4",
        "D1.0 D2.0 D3.0 D1-3v9 D4.0",
        inserts="D1-3v9 D4.0",
        obsolete="D1.0 D2.0 D3.0",
    ),
    Vector(
        "T09",
        "both kinds compacted",
        "hwm 2",
        "D1.0 X2.0 D2.0 D1-2v9 X1-2v9",
        inserts="D1-2v9",
        deletes="X1-2v9",
        obsolete="X2.0 D1.0 D2.0",
    ),
    Vector(
        "T10",
        "only deletes compacted, the inserts stay",
        "hwm 3",
        "D1.0 X2.0 X3.0 X2-3v9",
        inserts="D1.0",
        deletes="X2-3v9",
        obsolete="X2.0 X3.0",
    ),
    Vector(
        "T11", "the compaction has not committed", "hwm 2", "D1.0 D2.0 D1-2v9", txns="hwm 9 open 9", inserts="D1.0 D2.0"
    ),
    Vector(
        "T12",
        "the compaction aborted",
        "hwm 2",
        "D1.0 D2.0 D1-2v9",
        txns="hwm 10 aborted 9",
        inserts="D1.0 D2.0",
        aborted="D1-2v9",
    ),
    Vector(
        "T13", "the compaction is later than the snapshot", "hwm 2", "D1.0 D2.0 B2v9", txns="hwm 8", inserts="D1.0 D2.0"
    ),
    Vector("T14", "a major compaction replaces all", "hwm 2", "D1.0 D2.0 B2v9", base="B2v9", obsolete="D1.0 D2.0"),
    Vector(
        "T15",
        "and later deltas follow it",
        "hwm 4",
        "D1.0 X2.0 B2v9 D3.0 X4.0 D4.0",
        base="B2v9",
        inserts="D3.0 D4.0",
        deletes="X4.0",
        obsolete="X2.0 D1.0",
    ),
    Vector(
        "T16",
        "a base whose own id is open to the reader is too new for it",
        "hwm 2, open 2",
        "D1.0 D2.0 B2v9",
        error=NotEnoughHistoryError,
    ),
    Vector(
        "T17",
        "so is one with an open write inside",
        "hwm 3, open 1",
        "D1.0 D2.0 B2v9 D3.0",
        error=NotEnoughHistoryError,
    ),
    Vector(
        "T18",
        "an overwrite replaces all up to its id",
        "hwm 4",
        "D1.0 D2.0 B3 D4.0",
        base="B3",
        inserts="D4.0",
        obsolete="D1.0 D2.0",
    ),
    Vector("T19", "an open overwrite does not count", "hwm 3, open 3", "D1.0 D2.0 B3", inserts="D1.0 D2.0"),
    Vector("T20", "an aborted one neither", "hwm 3, aborted 3", "D1.0 D2.0 B3", inserts="D1.0 D2.0", aborted="B3"),
    Vector("T21", "nothing but an aborted overwrite", "hwm 1, aborted 1", "B1", aborted="B1"),
    Vector(
        "T22",
        "an overwrite counts although an earlier write is open",
        "hwm 3, open 2",
        "D1.0 D2.0 B3",
        base="B3",
        obsolete="D1.0",
    ),
    Vector(
        "T23", "an overwrite above the high-water mark does not count", "hwm 2", "D1.0 D2.0 B3", inserts="D1.0 D2.0"
    ),
    Vector(
        "T24",
        "a compacted base after an overwrite",
        "hwm 6",
        "B3 D4.0 D5.0 B5v9 D6.0",
        base="B5v9",
        inserts="D6.0",
        obsolete="B3 D4.0 D5.0",
    ),
    Vector("T25", "of equal ids the compacted base is the one", "hwm 5", "B5 B5v9", base="B5v9", obsolete="B5"),
    Vector(
        "T26",
        "an older base serves the older snapshot",
        "hwm 6, open 4",
        "B2v5 D3.0 D4.0 D5.0 D6.0 B6v9",
        base="B2v5",
        inserts="D3.0 D5.0 D6.0",
    ),
    Vector("T27", "original files alone", "hwm max", "000000_0 000001_0", originals="000000_0 000001_0"),
    Vector(
        "T28",
        "original files and deltas",
        "hwm 2",
        "000000_0 D1.0 X2.0",
        inserts="D1.0",
        deletes="X2.0",
        originals="000000_0",
    ),
    Vector(
        "T29", "a base replaces original files", "hwm 3", "000000_0 D1.0 B3v9", base="B3v9", obsolete="000000_0 D1.0"
    ),
    Vector(
        "T30",
        "original files are read in path order, sub-directories too",
        "hwm 1",
        "000001_0 000000_0_copy_1 000000_0 HIVE_UNION_SUBDIR_1/000000_0 D1.0",
        inserts="D1.0",
        originals="000000_0 000000_0_copy_1 000001_0 HIVE_UNION_SUBDIR_1/000000_0",
    ),
    Vector("T31", "a streaming delta, half of it open", "hwm 8, open 7,8", "D5-8", inserts="D5-8", filtered="D5-8"),
    Vector("T32", "a streaming delta, all of it open", "hwm 8, open 5,6,7,8", "D1.0 D5-8", inserts="D1.0"),
    Vector(
        "T33",
        "a streaming delta, all of it aborted",
        "hwm 8, aborted 5,6,7,8",
        "D1.0 D5-8",
        inserts="D1.0",
        aborted="D5-8",
    ),
    Vector(
        "T34",
        "a streaming delta with one aborted id",
        "hwm 8, open 7,8, aborted 5",
        "D5-8",
        inserts="D5-8",
        uncompacted_aborts=True,
        filtered="D5-8",
    ),
    Vector(
        "T35",
        "one range twice: the compaction's directory is the one",
        "hwm 8",
        "D5-8 D5-8v9",
        inserts="D5-8v9",
        obsolete="D5-8",
    ),
    Vector(
        "T36",
        "compactions of compactions",
        "hwm 5",
        "D1.0 D2.0 D3.0 D1-3v5 D4.0 D5.0 D1-5v9",
        inserts="D1-5v9",
        obsolete="D1.0 D1-3v5 D2.0 D3.0 D4.0 D5.0",
    ),
    Vector(
        "T37",
        "an aborted write inside a compacted range",
        "hwm 9, aborted 5",
        "D4.0 D5.0 D6.0 D4-6v9 D9.0",
        inserts="D4-6v9 D9.0",
        obsolete="D4.0 D6.0",
        aborted="D5.0",
        uncompacted_aborts=True,
        filtered="D4-6v9",
    ),
    Vector(
        "T38",
        "an open write inside a compacted range",
        "hwm 5, open 4",
        "D1.0 D1-5v9 D3.0 D4.0 D5.0",
        inserts="D1-5v9",
        obsolete="D1.0 D3.0 D5.0",
        filtered="D1-5v9",
    ),
    Vector("T39", "statements of one write merged", "hwm 1", "D1.0 D1.1 D1v9", inserts="D1v9", obsolete="D1.0 D1.1"),
    Vector("T40", "a delete delta over a base", "hwm 2", "B1v3 X2.0", base="B1v3", deletes="X2.0"),
    Vector(
        "T41",
        "hidden names at every level",
        "hwm 1",
        "D1.0 _tmp_x/D2.0 .hive-staging_1/-ext-10000/000000_0 _SUCCESS",
        inserts="D1.0",
    ),
    Vector(
        "T42", "a base with nothing but the version marker", "hwm 2", "D1.0 B2[version]", base="B2", obsolete="D1.0"
    ),
    Vector("T43", "a base that truncates", "hwm 2", "D1.0 B2[truncated]", base="B2", obsolete="D1.0"),
    Vector(
        "T44",
        "a base that only its metadata calls compacted",
        "hwm 2, open 1",
        "D1.0 D2.0 B2[data,compacted]",
        error=NotEnoughHistoryError,
    ),
    Vector("T45", "an empty directory is a base", "hwm 2", "D1.0 B2[]", base="B2", obsolete="D1.0"),
    Vector(
        "T46",
        "a compactor leaves out what is aborted",
        "hwm 2, aborted 1",
        "D1.0 D2.0 D3.0",
        compactor=True,
        inserts="D2.0",
        aborted="D1.0",
    ),
    Vector(
        "T47",
        "a compactor takes no delta that is cut by its high-water mark",
        "hwm 3",
        "D1.0 D2-5 D3.0",
        compactor=True,
        inserts="D1.0 D3.0",
    ),
    Vector(
        "T48",
        "a base of original files",
        "hwm 1",
        "000000_0 Bminv3 D1.0",
        base="Bminv3",
        inserts="D1.0",
        obsolete="000000_0",
    ),
    Vector(
        "T49",
        "both kinds compacted, with a gap",
        "hwm 3",
        "D1.0 X2.0 D3.0 D1-3v9 X1-3v9",
        inserts="D1-3v9",
        deletes="X1-3v9",
        obsolete="X2.0 D1.0 D3.0",
    ),
    Vector(
        "T50", "write ids of eight digits", "hwm 10000000", "D9999999.0 D10000000.0", inserts="D9999999.0 D10000000.0"
    ),
    Vector(
        "T51", "files one level below a delta", "hwm 3", "D1.0/HIVE_UNION_SUBDIR_1/000000_0 D2.0", inserts="D1.0 D2.0"
    ),
    Vector("T52", "a delta that reaches into the base", "hwm 5", "B3v7 D2-5 D4.0", error=FormatError),
    Vector(
        "T53",
        "the widest range of both kinds wins",
        "hwm 4",
        "D1-2v5 D3-4v6 D1-4v9 X1-2v5 X1-4v9",
        inserts="D1-4v9",
        deletes="X1-4v9",
        obsolete="X1-2v5 D1-2v5 D3-4v6",
    ),
    Vector(
        "T54",
        "a compaction beside an open write",
        "hwm 4, open 3",
        "D1.0 D2.0 D3.0 D4.0 D1-2v9",
        inserts="D1-2v9 D4.0",
        obsolete="D1.0 D2.0",
    ),
    Vector(
        "T55",
        "only the delete twin: the inserts are gone",
        "hwm 3",
        "D1.0 X2.0 D3.0 X1-3v9",
        deletes="X1-3v9",
        obsolete="X2.0 D1.0 D3.0",
    ),
    Vector(
        "T56",
        "only the insert twin: the deletes are gone",
        "hwm 3",
        "D1.0 X2.0 D3.0 D1-3v9",
        inserts="D1-3v9",
        obsolete="X2.0 D1.0 D3.0",
    ),
    Vector(
        "T57",
        "an overwrite above a compacted base and a write of several statements",
        "hwm 6",
        "B2v4 D3.0 X3.1 D3.2 B5 D6.0",
        base="B5",
        inserts="D6.0",
        obsolete="B2v4 D3.0 X3.1 D3.2",
    ),
]
