"""``make release``: sdists and wheels of both packages, installed in clean environments where the quick start runs.

Before the server comes into an environment, the client's package has to be there without it.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.documents.test_readme import ROWS, quick_start, shown

ROOT = Path(__file__).parent.parent.parent
CLIENT, SERVER = ROOT, ROOT / "deploy" / "hive-acid-metastore"
"""Where a package is described."""
EXTRAS = "spark,java"
ALONE = """
import importlib.util, sys
import hive_acid
assert importlib.util.find_spec("metastore") is None, "the client's package has the server's in it"
assert "pyspark" not in sys.modules
"""


def main() -> int:
    """Build all into ``dist/``; the exit status is 1 if the quick start shows anything else than README says."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--only", choices=["sdist", "wheel"], help="one of the two")
    options = parser.parse_args()
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    for kind in ("sdist", "wheel"):
        if options.only in (None, kind):
            client, server = build(kind, CLIENT, out), build(kind, SERVER, out)
            found = tried(client, server)
            what = "the quick start runs" if found == ROWS else f"the quick start shows {found}"
            print(f"{client.name}, {server.name}: {what}")
            if found != ROWS:
                return 1
    return 0


def build(kind: str, project: Path, out: Path) -> Path:
    """The path of a new package of that kind."""
    out.mkdir(exist_ok=True)
    shutil.rmtree(project / "build" / "lib", ignore_errors=True)  # of an earlier build: what is gone would come along
    for told in project.glob("*.egg-info"):
        (told / "SOURCES.txt").unlink(missing_ok=True)  # likewise
    backend = f"import setuptools.build_meta as backend; print(backend.build_{kind}({str(out)!r}))"
    built = subprocess.run([sys.executable, "-c", backend], cwd=project, capture_output=True, text=True, check=True)
    return out / built.stdout.splitlines()[-1]


def tried(client: Path, server: Path) -> list[tuple[str, ...]]:
    """What the quick start shows in an environment that has nothing but the packages and what they need."""
    with tempfile.TemporaryDirectory(prefix="hive-acid-release-") as name:
        home = Path(name)
        venv.create(home / "env", with_pip=True)
        constraints = home / "constraints.txt"
        locked = re.findall(r"^[A-Za-z0-9_.-]+==[^ ;\\]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
        constraints.write_text("\n".join(locked))
        install = [home / "env/bin/pip", "install", "--quiet", "-c", constraints]
        subprocess.run([*install, f"{client}"], cwd=home, check=True)  # type: ignore[list-item]
        subprocess.run([home / "env/bin/python", "-c", ALONE], cwd=home, check=True)
        subprocess.run([*install, f"{client}[{EXTRAS}]", server], cwd=home, check=True)  # type: ignore[list-item]
        serve = [
            home / "env/bin/metastore",
            "serve",
            "--port",
            "0",
            "--log-level",
            "error",
            "--data-dir",
            home / "data",
        ]
        with subprocess.Popen(serve, cwd=home, stdout=subprocess.PIPE, text=True) as process:  # type: ignore[arg-type]
            assert process.stdout is not None
            try:
                said = process.stdout.readline()
                if not said.startswith("listening on "):
                    raise SystemExit(f"{server.name}: its server does not start")
                address = said.removeprefix("listening on ").strip()
                script = home / "quick_start.py"
                script.write_text(quick_start().replace("thrift://localhost:9083", address))
                return shown(home / "env/bin/python", script)
            finally:
                process.terminate()


if __name__ == "__main__":
    sys.exit(main())
