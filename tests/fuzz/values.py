"""Hostile values for every type of the IDL: absent, empty, huge, negative, with zero bytes, and some that make sense.

What makes sense names things that `stage` makes, so that a call gets far before it meets what is wrong. A place is
always below the stage's own directory, or where nobody can write: removals are real.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from thriftpy2.thrift import TType

from hive_acid.wire import ttypes

DATABASES = ("d", "d", "d", "d", "D", "default", "e", "nix")
TABLES = ("t", "acid", "plain", "view", "T", "nix")
NEEDED = (
    "sd",
    "serdeInfo",
    "parameters",
    "tbl",
    "new_tbl",
    "new_part",
    "desc",
    "statsDesc",
    "statsObj",
    "colStats",
    "request",
    "req",
)
COLUMNS = ("a", "b", "c", "p", "q", "A")
PARTITIONS = ("p=1/q=a", "p=2/q=b", "P=1/Q=a", "p=1", "q=a", "p=__HIVE_DEFAULT_PARTITION__/q=", "p=1/q=a/r=2")
TYPES = (
    "int",
    "string",
    "decimal(10,2)",
    "struct<a:int,b:array<map<string,date>>>",
    "char(3)",
    "nosuch",
    "array<",
    "decimal(99,-1)",
)
FILTERS = (
    "p = 1 and q = 'a'",
    "p >= '2' or not (q like '%a')",
    "p in (" + ",".join(map(str, range(300))) + ")",
    "(struct(p, q)) in (" + ",".join(f"const struct({n},'a')" for n in range(200)) + ")",
    "p =",
    "(" * 500 + "p = 1" + ")" * 500,
    "not " * 2000 + "p = 1",
    " and ".join(["p = 1"] * 3000),
    "q like '" + "%_" * 500 + "'",
    "q = '\0'",
    "p = 99999999999999999999999999999999999999999999",
    "nix = 1",
    "p between '2' and",
    "💥",
)
HUGE_FILTERS = ("(struct(p, q)) in (" + ",".join(f"const struct({n},'a')" for n in range(20_000)) + ")",)
TEXTS: tuple[str | bytes, ...] = (
    "",
    " ",
    "\0",
    "a\0b",
    "\n\t\r",
    "\x1b[31m",
    "\u202eabc",
    "é💥\U0010ffff",
    b"\xff\xfe\x00",
    b"\xed\xa0\x80",
    "*",
    "a*|b*",
    "*" * 300,
    "*" * 5000,
    "%_\\",
    "'\"`;--",
    "{}[]<>|&$",
    "null",
    "None",
    "x" * 128,
    "x" * 300,
    "x" * 5000,
    "@hive#d",
    "@nix#d",
    "@#",
    "@!",
    "a.b.c",
    "..",
    "-1",
    "0",
    "1",
    "9" * 400,
    "NaN",
    "1e400",
    "2024-02-30",
    "true",
    "TRANSACTIONAL",
    "hive",
    "spark",
    "ann",
    '{"a": [1, 2, {"b": null}]}',
    "hive.txn.timeout",
)
LONG_TEXTS = ("y" * 70_000, "*" * 20_000, "é" * 40_000)
KEYS = (
    "transactional",
    "transactional_properties",
    "EXTERNAL",
    "bucketing_version",
    "comment",
    "numRows",
    "k",
    "",
    "a\0",
)
INTEGERS = (0, 1, -1, 2, 3, 5, 7, 10, 100, 1000)
_LIMITS = {TType.BYTE: 7, TType.I16: 15, TType.I32: 31, TType.I64: 63}


class Values:
    """Values by seed; `place` is the directory that locations may be in."""

    def __init__(self, chance: random.Random, place: str, ids: Sequence[int] = ()) -> None:
        """`ids` are those of transactions that are open."""
        self.chance = chance
        self._place = place
        self._ids = ids
        self._sanity = 0.5
        self._budget = 0

    def arguments(self, method: str, service: Any) -> Any:
        """The arguments of a call, as the struct that carries them."""
        self._sanity = self.chance.choice((0.3, 0.8, 0.97, 1.0, 1.0))
        self._budget = 400
        return self._struct(getattr(service, method + "_args"), method, 0)

    def _struct(self, kind: Any, path: str, depth: int) -> Any:
        made = kind()
        for field in kind.thrift_spec.values():
            type_, name = field[0], field[1]
            if self.chance.random() < self._absence(type_, name, bool(field[-1])):
                continue
            setattr(made, name, self._value((type_, field[2]) if len(field) == 4 else type_, name, depth + 1))
        return made

    def _absence(self, type_: int, name: str, is_required: bool) -> float:
        """How likely it is that a field is left out: one that nobody needs usually is."""
        if not self._is_sane():
            return 0.35
        is_needed = is_required or type_ in (TType.I32, TType.I64) or self._known(name.lower()) is not None
        return 0.01 if is_needed or name in NEEDED or self._fitting(name.lower()) is not None else 0.6

    def _is_sane(self) -> bool:
        return self.chance.random() < self._sanity

    def _value(self, type_: Any, name: str, depth: int) -> Any:
        code, inner = type_ if isinstance(type_, tuple) else (type_, None)
        self._budget -= 1
        if self._is_sane() and (known := self._known(name.lower())) is not None:
            return known
        if code == TType.STRUCT:
            return self._struct(inner, name, depth)
        if code in (TType.LIST, TType.SET):
            return [self._value(inner, name, depth + 1) for _ in range(self._length(depth))]
        if code == TType.MAP:
            key, value = inner
            pairs = [
                (self._key(key, name, depth), self._value(value, name, depth + 1)) for _ in range(self._length(depth))
            ]
            return dict(pairs)
        if code == TType.STRING:
            return self._text(name.lower())
        if code == TType.BINARY:
            return self.chance.choice((b"", b"\0", b"\xff" * 40, b"x" * 3000))
        if code == TType.BOOL:
            return self.chance.random() < 0.5
        if code == TType.DOUBLE:
            return self.chance.choice((0.0, 1.5, -1.0, float("nan"), float("inf"), -float("inf"), 1e308, 5e-324))
        return self._integer(code, name)

    def _known(self, name: str) -> Any:
        """Lists that only make sense as a whole."""
        choose = self.chance.choice
        if name in ("values", "part_vals", "partvals", "partitionvalues", "partval", "partvalues"):
            return [choose("123"), choose("abc")]
        if name == "cols":
            return [ttypes.FieldSchema(name=one, type=choose(("int", "string", "bigint"))) for one in "abc"]
        if name == "partitionkeys":
            return [ttypes.FieldSchema(name="p", type="int"), ttypes.FieldSchema(name="q", type="string")]
        return None

    def _key(self, type_: Any, name: str, depth: int) -> Any:
        if type_ in (TType.STRING, (TType.STRING, None)):
            return self.chance.choice(KEYS) if self._is_sane() else self._hostile()
        value = self._value(type_, name, depth)
        try:
            hash(value)
        except TypeError:
            return None
        return value

    def _length(self, depth: int) -> int:
        if self._budget <= 0 or depth > 9:
            return 0
        return self.chance.choice((0, 1, 1, 1, 2, 2, 3)) if self.chance.random() < 0.98 else 30

    def _integer(self, code: int, name: str) -> int:
        if self._is_sane():
            if "id" in name.lower() and self._ids and self.chance.random() < 0.6:
                return self.chance.choice(self._ids) % (1 << _LIMITS[code])
            if code == TType.I32 and self.chance.random() < 0.6:
                return self.chance.randrange(5)  # most are enums
            return self.chance.choice(INTEGERS) % (1 << _LIMITS[code])
        limit = 1 << _LIMITS[code]
        return self.chance.choice(
            (-limit, limit - 1, -1, 0, self.chance.randrange(-limit, limit), 1 << _LIMITS[code] - 1)
        )

    def _text(self, name: str) -> str | bytes:
        if self._is_sane():
            found = self._fitting(name)
            return "x" if found is None else found
        return self._hostile()

    def _hostile(self) -> str | bytes:
        if self.chance.random() < 0.005:
            return self.chance.choice(LONG_TEXTS)
        return self.chance.choice(TEXTS)

    def _fitting(self, name: str) -> str | None:
        choose = self.chance.choice
        if "location" in name or "uri" in name or "path" in name:
            place = self._place
            return choose(
                (f"{place}/x", f"file:{place}/y/", f"{place}/file/z", f"{place}//x/./w", "/proc/nix/x", "nosuch://h/x")
            )
        if "filter" in name or "expr" in name:
            return choose(FILTERS) if self.chance.random() < 0.99 else choose(HUGE_FILTERS)
        if "tabletype" in name:
            return choose(("MANAGED_TABLE", "EXTERNAL_TABLE", "VIRTUAL_VIEW", "MATERIALIZED_VIEW", "INDEX_TABLE"))
        if "table" in name or "tbl" in name:
            return choose(TABLES)
        if "part" in name:
            return choose(PARTITIONS)
        if "db" in name or "database" in name:
            return choose(DATABASES)
        if "cat" in name:
            return choose(("hive", "hive", "hive", "hive", "hive", "hive", "hive", "hive", "spark", "Hive"))
        if "col" in name:
            return choose(COLUMNS)
        if "type" in name and "table" not in name:
            return choose(TYPES[:5]) if self.chance.random() < 0.9 else choose(TYPES)
        if "writeid" in name or "valid" in name or "snapshot" in name:
            return choose(
                ("d.acid:5:9223372036854775807::", "d.acid:5:3:3,4:", "5:3:3:4", "d.t:x:y::", ":::", "9" * 30)
            )
        if "val" in name:
            return choose(("1", "2", "a", "b"))
        if "name" in name:
            return choose((*TABLES, *COLUMNS, *DATABASES))
        if "owner" in name or "user" in name or "principal" in name:
            return choose(("ann", "bob"))
        return None
