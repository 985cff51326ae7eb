"""The ``metastore`` script: runs the command, or says what to install if the server's part is not there."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command; the exit status is 1 with one sentence if a package is missing."""
    try:
        from metastore.cli import main as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("metastore", "hive_acid"):
            raise
        print(
            f"metastore: the server's part is not installed (no module {error.name}): pip install 'hive-acid[server]'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:  # Ctrl-C while all is being loaded
        return 130
    return run()
