"""What another JVM throws is its own, whatever Spark's JVM has under the same number."""

from __future__ import annotations

import py4j.java_gateway
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import install_exception_handler

from hive_acid.spark.jvm.java import ensure_java
from tests.clients.java.process import JavaProcess


def test_an_error_beside_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        py4j.java_gateway, "get_return_value", py4j.java_gateway.get_return_value
    )  # as before after all
    install_exception_handler()  # as a session of Spark does
    with JavaProcess(ensure_java() / "bin" / "java", [], ["-Xmx64m"]) as java:
        with pytest.raises(Py4JJavaError, match="NumberFormatException") as caught:
            java.jvm.java.lang.Integer.parseInt("x")
        assert "x" in caught.value.java_exception.getMessage()
        with pytest.raises(Py4JJavaError, match="IndexOutOfBounds"):
            java.jvm.java.util.ArrayList().get(1)
        assert java.jvm.java.lang.Integer.parseInt("7") == 7
