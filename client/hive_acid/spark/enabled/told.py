"""What writers of Spark's are told, noted beside: Spark's keep it in the JVM or in a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hive_acid.spark.enabled.rows import NewTable, flat, in_lower_case

if TYPE_CHECKING:

    class _Writer:
        """What Spark's writers have in common."""

        def option(self, key: str, value: Any) -> Any: ...

        def options(self, **options: Any) -> Any: ...

        def format(self, source: str) -> Any: ...

        def partitionBy(self, *cols: Any) -> Any: ...  # noqa: N802

else:
    _Writer = object


class ToldOptions(_Writer):
    """Notes options, by their names in lower case."""

    _new: NewTable
    _form: str | None = None

    def option(self, key: str, value: Any) -> Any:
        super().option(key, value)
        self._new.options |= in_lower_case({key: value})
        return self

    def options(self, **options: Any) -> Any:
        super().options(**options)
        self._new.options |= in_lower_case(options)
        return self


class ToldFormat(ToldOptions):
    """Notes the format and the partition keys, too."""

    def format(self, source: str) -> Any:
        super().format(source)
        self._form = source
        return self

    def partitionBy(self, *cols: Any) -> Any:  # noqa: N802
        super().partitionBy(*cols)
        self._new.keys = tuple(flat(cols))
        return self
