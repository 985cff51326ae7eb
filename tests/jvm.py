"""Java as tests start it."""

from __future__ import annotations

SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM that lives for some tests: what it gains by compiling well it would not live to see. It was a third of its
time.
"""

IN_UTC = " ".join(("-Duser.timezone=UTC", *SHORT_LIVED))
"""The same for Spark's, in one text."""
