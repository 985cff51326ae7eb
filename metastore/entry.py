"""The ``metastore`` script: runs the command, or says what to install if a package is missing or does not fit."""

from __future__ import annotations

import sys

from metastore import __version__


def main() -> int:
    """Run the command; the exit status is 1 with one sentence if the packages that it needs are not there."""
    try:
        import hive_acid

        if hive_acid.__version__ != __version__:
            return _refused(
                f"hive-acid-metastore {__version__} needs hive-acid {__version__}, and {hive_acid.__version__} is "
                "installed: pip install --upgrade hive-acid hive-acid-metastore"
            )
        from metastore.cli import main as run
    except ModuleNotFoundError as error:
        name, _, inner = (error.name or "").partition(".")
        if name == "metastore" or (name == "hive_acid" and inner):
            raise
        return _refused(f"a package that it needs is not installed (no module {name}): pip install hive-acid-metastore")
    except KeyboardInterrupt:  # Ctrl-C while all is being loaded
        return 130
    return run()


def _refused(sentence: str) -> int:
    print(f"metastore: {sentence}", file=sys.stderr)
    return 1
