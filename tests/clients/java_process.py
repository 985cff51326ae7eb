"""Java classes in a JVM of their own, driven through py4j."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Self

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

PYSPARK_JARS = Path(pyspark.__file__).parent / "jars"


class JavaProcess:
    """A running JVM with these classes; a context manager. What it prints goes to `out`, by default nowhere."""

    def __init__(
        self, java: Path, class_path: Iterable[Path], options: Sequence[str], out: IO[str] | None = None
    ) -> None:
        port, self._process = launch_gateway(
            jarpath=str(next(PYSPARK_JARS.glob("py4j-*.jar"))),
            classpath=":".join(map(str, class_path)),
            javaopts=list(options),
            java_path=str(java),
            die_on_exit=True,
            return_proc=True,
            redirect_stdout=out,
            redirect_stderr=out,
        )
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
        self.jvm: Any = self._gateway.jvm

    def close(self) -> None:
        """End the JVM."""
        self._gateway.shutdown()
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=20)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
