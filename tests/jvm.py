"""Java as tests start it."""

from __future__ import annotations

import sys
from pathlib import Path

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC")
"""For a JVM that lives for some tests: what it gains by compiling well it would not live to see. It was a third of its
time. What is compiled stays so: in the 48 MB that Java has for it without the second compiler Spark's does not fit, and
to sweep and compile again was a fifth.
"""

CLASSES = Path(sys.prefix) / "spark.jsa"
"""Spark's classes as Java has them in memory, if `make test` has made it (`tests.class_archive`): with it a session
starts and answers in half the time. Java leaves one alone that is not of its version or of this Spark.
"""

# Told to leave it alone it would say so where a program's output is read.
_FROM_ARCHIVE = (f'"-XX:SharedArchiveFile={CLASSES}"', "-Xlog:disable") if CLASSES.exists() else ()

IN_UTC = " ".join(("-Duser.timezone=UTC", *SHORT_LIVED, *_FROM_ARCHIVE))
"""The same for Spark's, in one text."""

FOR_SPARK = {"JDK_JAVA_OPTIONS": " ".join((*SHORT_LIVED, *_FROM_ARCHIVE))}
"""The same as environment, for the JVMs of a process that sets up Spark itself."""
