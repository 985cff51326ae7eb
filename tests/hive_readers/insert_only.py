"""Hive 4's own writers and readers of Parquet and Avro files, driven through py4j: what an insert-only table holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.clients.java.client import JavaHive

_CLASSES = {
    "parquet": (
        "parquet.MapredParquetInputFormat",
        "parquet.MapredParquetOutputFormat",
        "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
    ),
    "avro": (
        "avro.AvroContainerInputFormat",
        "avro.AvroContainerOutputFormat",
        "org.apache.hadoop.hive.serde2.avro.AvroSerDe",
    ),
}


class HiveFiles:
    """Files of one format with columns of one kind; values are texts, as Hive shows them."""

    def __init__(self, hive: JavaHive, form: str, columns: Mapping[str, str]) -> None:
        self._jvm, self._columns = hive.jvm, dict(columns)
        read, write, serde = _CLASSES[form]
        self._read = self._new(f"org.apache.hadoop.hive.ql.io.{read}")
        self._write = self._new(f"org.apache.hadoop.hive.ql.io.{write}")
        self._conf = hive.jvm.org.apache.hadoop.mapred.JobConf()
        self._properties = hive.jvm.java.util.Properties()
        told = {"columns": ",".join(columns), "columns.types": ":".join(columns.values())}
        for name, value in {**told, "hive.io.file.read.all.columns": "true"}.items():
            self._conf.set(name, value)
            self._properties.setProperty(name, value)
        self._serde = self._new(serde)
        self._serde.initialize(self._conf, self._properties, None)
        self._rows = self._inspector()

    def write(self, path: Path, rows: Sequence[tuple[Any, ...]], zone: str, **settings: str) -> None:
        """Write rows of texts, in a JVM that is in `zone`."""
        path.parent.mkdir(parents=True, exist_ok=True)
        zones = self._jvm.java.util.TimeZone
        before = zones.getDefault()
        zones.setDefault(zones.getTimeZone(zone))
        conf = self._jvm.org.apache.hadoop.mapred.JobConf(self._conf)
        for name, value in settings.items():
            conf.set(name, value)
        try:
            self._serde.initialize(conf, self._properties, None)
            writer = self._write.getHiveRecordWriter(
                conf,
                self._jvm.org.apache.hadoop.fs.Path(str(path)),
                self._serde.getSerializedClass(),
                False,
                self._properties,
                self._jvm.org.apache.hadoop.mapred.Reporter.NULL,
            )
            for row in rows:
                writer.write(self._serde.serialize(self._values(row), self._rows))
            writer.close(False)
        finally:
            zones.setDefault(before)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)

    def read(self, path: Path, zone: str) -> list[tuple[str, ...]]:
        """The rows of a file, in their order, read in three pieces by a JVM that is in `zone`."""
        zones = self._jvm.java.util.TimeZone
        before = zones.getDefault()
        zones.setDefault(zones.getTimeZone(zone))
        try:
            size = path.stat().st_size
            cuts = [0, size // 3, 2 * size // 3, size]
            return [row for start, end in pairwise(cuts) for row in self._piece(path, start, end)]
        finally:
            zones.setDefault(before)

    def _piece(self, path: Path, start: int, end: int) -> list[tuple[str, ...]]:
        place = self._jvm.org.apache.hadoop.fs.Path(str(path))
        split = self._jvm.org.apache.hadoop.mapred.FileSplit(place, start, end - start, self._conf)
        reader = self._read.getRecordReader(split, self._conf, self._jvm.org.apache.hadoop.mapred.Reporter.NULL)
        key, value = reader.createKey(), reader.createValue()
        inspector = self._serde.getObjectInspector()
        found = []
        while reader.next(key, value):
            row = self._serde.deserialize(value)
            texts = []
            for field in inspector.getAllStructFieldRefs():
                part = inspector.getStructFieldData(row, field)
                shown = self._jvm.org.apache.hadoop.hive.serde2.SerDeUtils.getJSONString(
                    part, field.getFieldObjectInspector()
                )
                texts.append(str(shown).strip('"'))
            found.append(tuple(texts))
        reader.close()
        return found

    def _values(self, row: tuple[Any, ...]) -> Any:
        made = self._jvm.java.util.ArrayList()
        types = self._jvm.org.apache.hadoop.hive.common.type
        for value, kind in zip(row, self._columns.values(), strict=True):
            if kind == "timestamp":
                value = types.Timestamp.valueOf(value)
            elif kind == "date":
                value = types.Date.valueOf(value)
            made.add(value)
        return made

    def _inspector(self) -> Any:
        infos = self._jvm.org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils
        row = ",".join(f"{name}:{kind}" for name, kind in self._columns.items())
        return infos.getStandardJavaObjectInspectorFromTypeInfo(infos.getTypeInfoFromTypeString(f"struct<{row}>"))

    def _new(self, name: str) -> Any:
        made = self._jvm
        for part in name.split("."):
            made = getattr(made, part)
        return made()
