"""Java classes in a JVM of their own, driven through py4j."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Self

import pyspark
from py4j import protocol
from py4j.java_gateway import GatewayClient, GatewayParameters, JavaGateway, launch_gateway

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
        parameters = GatewayParameters(port=port, auto_convert=True)
        self._gateway = JavaGateway(gateway_parameters=parameters)
        self._gateway.set_gateway_client(_Client(gateway_parameters=parameters))
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


class _Client(GatewayClient):
    """Raises what Java throws as it is.

    Where Spark runs beside it, PySpark looks at each error that py4j meets and asks Spark's own JVM about it, where the
    number of this one is that of another object, or of none.
    """

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        found = super().send_command(command, retry, binary)
        answer = found[0] if binary else found
        if answer.startswith(protocol.ERROR + protocol.REFERENCE_TYPE):
            protocol.get_return_value(answer, self)
        return found
