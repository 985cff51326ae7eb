"""``make release``: sdist and wheel, each installed in a clean environment, in which README's quick start runs."""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests.test_readme import ROWS, quick_start, shown

ROOT = Path(__file__).parent.parent
EXTRAS = "spark,server,java"


def main() -> int:
    """Build both into ``dist/``; the exit status is 1 if the quick start shows anything else than README says."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--only", choices=["sdist", "wheel"], help="one of the two")
    options = parser.parse_args()
    out = ROOT / "dist"
    shutil.rmtree(out, ignore_errors=True)
    for kind in ("sdist", "wheel"):
        if options.only in (None, kind):
            package = build(kind, out)
            found = tried(package)
            print(f"{package.name}: {'the quick start runs' if found == ROWS else f'the quick start shows {found}'}")
            if found != ROWS:
                return 1
    return 0


def build(kind: str, out: Path) -> Path:
    """The path of a new package of that kind."""
    out.mkdir(exist_ok=True)
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)  # of an earlier build: what is gone would come along
    backend = f"import setuptools.build_meta as backend; print(backend.build_{kind}({str(out)!r}))"
    built = subprocess.run([sys.executable, "-c", backend], cwd=ROOT, capture_output=True, text=True, check=True)
    return out / built.stdout.splitlines()[-1]


def tried(package: Path) -> list[tuple[str, ...]]:
    """What the quick start shows in an environment that has nothing but the package and what it needs."""
    with tempfile.TemporaryDirectory(prefix="hive-acid-release-") as name:
        home = Path(name)
        venv.create(home / "env", with_pip=True)
        constraints = home / "constraints.txt"
        locked = re.findall(r"^[A-Za-z0-9_.-]+==[^ ;\\]+", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
        constraints.write_text("\n".join(locked))
        install = [home / "env/bin/pip", "install", "--quiet", "-c", constraints, f"{package}[{EXTRAS}]"]
        subprocess.run(install, cwd=home, check=True)
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
        with subprocess.Popen(serve, cwd=home, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            try:
                said = server.stdout.readline()
                if not said.startswith("listening on "):
                    raise SystemExit(f"{package.name}: its server does not start")
                address = said.removeprefix("listening on ").strip()
                script = home / "quick_start.py"
                script.write_text(quick_start().replace("thrift://localhost:9083", address))
                return shown(home / "env/bin/python", script)
            finally:
                server.terminate()


if __name__ == "__main__":
    sys.exit(main())
