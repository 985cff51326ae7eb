"""Java's HiveMetaStoreClient of one release, driven through py4j in a JVM of its own.

`JavaHive` is a release: its JVM, its structs, the signatures of its client. `JavaClient` is one connected client; it
notes which signatures were called, so that a test can say which were not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from py4j.java_collections import JavaArray, JavaList, JavaMap
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError

from hive_acid.spark.jvm.java import ensure_java
from tests.caller import Refused
from tests.clients.java.process import JavaProcess
from tests.jvm import SHORT_LIVED

CLIENT = "org.apache.hadoop.hive.metastore.HiveMetaStoreClient"
_SIGNATURE = re.compile(r"\.(\w+)\(([^)]*)\)")
_INTEGERS = {"int", "long", "short", "Integer", "Long"}
_OPENED = ("java.net", "java.util", "java.lang")  # Hive's expressions and Kryo reach into these
_OPTIONS = [
    *("-Xmx256m", *SHORT_LIVED, "-XX:-UsePerfData"),
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
]
_WRAPPERS = {"UndeclaredThrowableException", "InvocationTargetException"}


class JavaHive(JavaProcess):
    """The classes of one release in a running JVM; `generation` is 2, 3 or 4."""

    def __init__(self, generation: int, jars: Sequence[Path], scratch: Path, options: Sequence[str] = ()) -> None:
        """`options` are of the JVM, beside those that it needs."""
        self.generation = generation
        self.called: set[str] = set()
        super().__init__(ensure_java() / "bin" / "java", jars, [*_OPTIONS, *options, f"-Djava.io.tmpdir={scratch}"])
        self.api: Any = self.jvm.org.apache.hadoop.hive.metastore.api
        self._log_errors_only()

    def connect(self, uri: str, **settings: str) -> JavaClient:
        """A client of the server at `uri`."""
        conf = self.configuration(uri, **settings)
        return JavaClient(self, self.jvm.org.apache.hadoop.hive.metastore.HiveMetaStoreClient(conf))

    def configuration(self, uri: str, **settings: str) -> Any:
        """A client's settings, in the class that this release takes."""
        if self.generation == 2:
            conf = self.jvm.org.apache.hadoop.hive.conf.HiveConf()
        else:
            conf = self.jvm.org.apache.hadoop.conf.Configuration()
        for key, value in {"hive.metastore.uris": uri, "hive.metastore.connect.retries": "1", **settings}.items():
            conf.set(key, value)
        return conf

    def log_in(self, principal: str, keytab: Path, **settings: str) -> None:
        """Have this JVM be a principal of Kerberos from now on."""
        information = self.jvm.org.apache.hadoop.security.UserGroupInformation
        information.setConfiguration(self.configuration("", **settings))
        information.loginUserFromKeytab(principal, str(keytab))

    def take_token(self, text: str, signature: str) -> None:
        """Have the user of this JVM hold a delegation token, which settings name by its signature."""
        user = self.jvm.org.apache.hadoop.security.UserGroupInformation.getLoginUser()
        hive = self.jvm.org.apache.hadoop.hive
        (hive.shims.Utils if self.generation == 2 else hive.metastore.utils.SecurityUtils).setTokenStr(
            user, text, signature
        )

    @cached_property
    def signatures(self) -> frozenset[str]:
        """All public methods that the client class declares, as ``getTable(String,String)``."""
        methods = self.jvm.java.lang.Class.forName(CLIENT).getDeclaredMethods()
        public = [str(method.toString()) for method in methods if method.getModifiers() & 1]
        return frozenset(_short(text) for text in public if "access$" not in text and "lambda$" not in text)

    # --- values --------------------------------------------------------------------------------

    def struct(self, kind: str, **fields: Any) -> Any:
        """A Thrift struct with these fields set."""
        made = getattr(self.api, kind)()
        for name, value in fields.items():
            getattr(made, f"set{name[0].upper()}{name[1:]}")(value)
        return made

    def longs(self, values: Sequence[int]) -> Any:
        """A list of Long, which py4j would make one of Integer."""
        array = self._gateway.new_array(self.jvm.long, len(values))
        for place, value in enumerate(values):
            array[place] = value
        collectors = self.jvm.java.util.stream.Collectors
        return self.jvm.java.util.Arrays.stream(array).boxed().collect(collectors.toList())

    def strings(self, *values: str) -> Any:
        """An array of String."""
        array = self._gateway.new_array(self.jvm.java.lang.String, len(values))
        for place, value in enumerate(values):
            array[place] = value
        return array

    def objects(self, *values: Any) -> Any:
        """An array of Object."""
        array = self._gateway.new_array(self.jvm.java.lang.Object, len(values))
        for place, value in enumerate(values):
            array[place] = value
        return array

    def list_of(self, *values: Any) -> Any:
        """An empty or filled ArrayList that Java may change."""
        made = self.jvm.java.util.ArrayList()
        for value in values:
            made.add(value)
        return made

    def is_a(self, value: Any, simple_name: str) -> bool:
        """Whether a Java object's class, or one above it, has this simple name."""
        kind = value.getClass()
        while kind is not None:
            if kind.getSimpleName() == simple_name:
                return True
            kind = kind.getSuperclass()
        return False

    def _log_errors_only(self) -> None:
        config = self.jvm.org.apache.logging.log4j.core.config.Configurator
        config.setRootLevel(self.jvm.org.apache.logging.log4j.Level.OFF)


class JavaClient:
    """One HiveMetaStoreClient; its methods are attributes, Java's exceptions come as `Refused`."""

    def __init__(self, hive: JavaHive, client: Any) -> None:
        self._hive = hive
        self.java = client

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.java, name)

        def call(*args: Any) -> Any:
            self._hive.called.add(_signature(self._hive, name, args))
            try:
                return method(*args)
            except Py4JJavaError as error:
                raise _refused(error) from None

        return call

    def both(self, name: str, *args: Any) -> Any:
        """The answer of a reading method, which its form with a catalog must repeat where the release has one."""
        answer = getattr(self, name)(*args)
        if self._hive.generation > 2:
            repeated = getattr(self, name)("hive", *args)
            assert repeated == answer, f"{name} differs with a catalog: {answer} {repeated}"
        return answer


def _short(text: str) -> str:
    found = _SIGNATURE.search(text)
    assert found, text
    kinds = [re.split(r"[.$]", kind)[-1] for kind in found[2].split(",") if kind]
    return f"{found[1]}({','.join(kinds)})"


def _signature(hive: JavaHive, name: str, args: Sequence[Any]) -> str:
    """Which of the overloads these arguments fit. Raises AssertionError unless it is exactly one."""
    fitting = []
    for signature in hive.signatures:
        found, _, kinds = signature.rstrip(")").partition("(")
        parameters = kinds.split(",") if kinds else []
        if found == name and len(parameters) == len(args) and all(map(_Fits(hive), parameters, args)):
            fitting.append(signature)
    if len(fitting) > 1:  # None fits all, a Partition as well as a List
        fitting = [one for one in fitting if "String" in one][:1] or fitting[:1]
    assert fitting, f"no {name} of Hive {hive.generation} takes {args}"
    return fitting[0]


class _Fits:
    """Whether a value can be passed for a parameter of some simple type."""

    def __init__(self, hive: JavaHive) -> None:
        self._hive = hive

    def __call__(self, kind: str, value: Any) -> bool:
        if value is None:
            return kind not in {"int", "long", "short", "boolean"}
        if isinstance(value, bool):
            return kind in {"boolean", "Boolean"}
        if isinstance(value, int):
            return kind in _INTEGERS
        if isinstance(value, str):
            return kind == "String"
        if isinstance(value, bytes | bytearray):
            return kind == "byte[]"
        if isinstance(value, list | JavaList):
            return kind == "List"
        if isinstance(value, dict | JavaMap):
            return kind == "Map"
        if isinstance(value, JavaArray):
            return kind.endswith("[]")
        assert isinstance(value, JavaObject), value
        return kind in {
            "NotificationFilter",
            "PartitionSpecProxy",
            "IMetaStoreClient",
            "ByteBuffer",
        } or self._hive.is_a(value, kind)


def _refused(error: Py4JJavaError) -> Refused:
    """The declared exception, or `internal` for Thrift's own."""
    cause = error.java_exception
    while cause.getClass().getSimpleName() in _WRAPPERS and cause.getCause() is not None:
        cause = cause.getCause()
    return Refused(cause.getClass().getSimpleName(), str(cause.getMessage()))
