"""Hive 4's own two ways to read an ACID directory, row by row and in vectors, driven through py4j."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from py4j.java_gateway import get_field

from hive_acid.format.rows import RowId
from hive_acid.format.snapshot import ValidTxnList, ValidWriteIdList
from tests.clients.java.client import JavaHive

_VECTORIZED = "org.apache.hadoop.hive.ql.io.orc.VectorizedOrcAcidRowBatchReader"


class Snapshot(NamedTuple):
    """What a reader asks the metastore for."""

    txns: ValidTxnList
    write_ids: ValidWriteIdList


class HiveReaders:
    """Reads directories; values come as the texts that Hive makes of them."""

    def __init__(self, hive: JavaHive) -> None:
        self.java = hive
        self._jvm = hive.jvm
        self._orc: Any = hive.jvm.org.apache.hadoop.hive.ql.io.orc
        self._reporter: Any = hive.jvm.org.apache.hadoop.mapred.Reporter.NULL
        self._format: Any = self._orc.OrcInputFormat()

    def rows(self, location: str, snapshot: Snapshot, columns: Mapping[str, str]) -> dict[RowId, str]:
        """By OrcInputFormat and OrcRawRecordMerger: ROW__ID to the row as a text."""
        conf = self._configuration(location, snapshot, columns)
        found: dict[RowId, str] = {}
        for split in self._format.getSplits(conf, 1):
            options = self._jvm.org.apache.hadoop.hive.ql.io.AcidInputFormat.Options(conf).reporter(self._reporter)
            reader = self._format.getReader(split, options)
            key, value = reader.createKey(), reader.createValue()
            while reader.next(key, value):
                row_id = RowId(key.getWriteId(), key.getBucketProperty(), key.getRowId())
                assert row_id not in found, row_id
                found[row_id] = value.toString()
            reader.close()
        return found

    def vectors(self, location: str, snapshot: Snapshot, columns: Mapping[str, str]) -> list[tuple[str, ...]]:
        """By VectorizedOrcAcidRowBatchReader: the columns of each row as texts, in order."""
        conf = self._configuration(location, snapshot, columns)
        found = []
        for split in self._format.getSplits(conf, 1):
            reader = self._new_vectorized(split, conf, self._batch_context(columns))
            batch = reader.createValue()
            nothing = self._jvm.org.apache.hadoop.io.NullWritable.get()
            while reader.next(nothing, batch):
                found += self._rows_of(batch, len(columns))
            reader.close()
        return sorted(found)

    def _configuration(self, location: str, snapshot: Snapshot, columns: Mapping[str, str]) -> Any:
        conf = self._jvm.org.apache.hadoop.mapred.JobConf()
        settings = {
            "hive.txn.valid.txns": str(snapshot.txns),
            "hive.txn.valid.writeids": str(snapshot.write_ids),
            "transactional": "true",
            "transactional_properties": "default",
            "columns": ",".join(columns),
            "columns.types": ":".join(columns.values()),
            "schema.evolution.columns": ",".join(columns),
            "schema.evolution.columns.types": ",".join(columns.values()),
            "hive.io.file.read.all.columns": "true",
            "mapreduce.input.fileinputformat.inputdir": location,
        }
        for name, value in settings.items():
            conf.set(name, value)
        acid = self._jvm.org.apache.hadoop.hive.ql.io.AcidUtils
        acid.setAcidOperationalProperties(conf, True, acid.AcidOperationalProperties.getDefault())
        return conf

    def _batch_context(self, columns: Mapping[str, str]) -> Any:
        infos = self._jvm.org.apache.hadoop.hive.serde2.typeinfo.TypeInfoUtils
        row = ",".join(f"{name}:{kind}" for name, kind in columns.items())
        inspector = infos.getStandardJavaObjectInspectorFromTypeInfo(infos.getTypeInfoFromTypeString(f"struct<{row}>"))
        context = self._jvm.org.apache.hadoop.hive.ql.exec.vector.VectorizedRowBatchCtx()
        context.init(inspector, self.java.strings())
        return context

    def _new_vectorized(self, *arguments: Any) -> Any:
        """Its constructor for a split is for its own package."""
        for constructor in self._jvm.java.lang.Class.forName(_VECTORIZED).getDeclaredConstructors():
            kinds = [kind.getSimpleName() for kind in constructor.getParameterTypes()]
            if kinds == ["OrcSplit", "JobConf", "Reporter", "VectorizedRowBatchCtx"]:
                constructor.setAccessible(True)
                given = [arguments[0], arguments[1], self._reporter, arguments[2]]
                return constructor.newInstance(self.java.objects(*given))
        raise AssertionError(f"{_VECTORIZED} has another constructor")

    def _rows_of(self, batch: Any, width: int) -> list[tuple[str, ...]]:
        selected: Callable[[int], int] = int
        if get_field(batch, "selectedInUse"):
            selected = get_field(batch, "selected").__getitem__
        columns = [get_field(batch, "cols")[place] for place in range(width)]
        rows = []
        for place in range(get_field(batch, "size")):
            texts = []
            for column in columns:
                text = self._jvm.java.lang.StringBuilder()
                column.stringifyValue(text, selected(place))
                texts.append(text.toString())
            rows.append(tuple(texts))
        return rows
