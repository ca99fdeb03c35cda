"""Build wheel and sdist, install each in an empty environment, and use it outside this folder.

.venv/bin/python scripts/try_wheel.py

The build tool is `build`, as in ``make test-wheel``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRIED = """
import pathlib, sys
import nearer

home = pathlib.Path(nearer.__file__)
assert pathlib.Path(sys.prefix) in home.parents, home
assert (home.parent / "py.typed").exists()
cities = nearer.datasets.load_cities()
embedding = nearer.embed(nearer.PointOracle(cities.points[:60]), 60, random_state=0, progress=False)
assert embedding.dimension == 3, embedding
embedding.save("map.nearer.npz")
assert (nearer.load("map.nearer.npz").positions == embedding.positions).all()
print(nearer.__version__, embedding)
"""


def call(*words: str | Path, cwd: Path) -> None:
    """Run a command without this folder on any path, and stop where it fails."""
    outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([str(word) for word in words], cwd=cwd, env=outside, check=True)


def main() -> None:
    """Build, install, try."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        call(sys.executable, "-m", "build", "--outdir", folder / "dist", cwd=ROOT)
        for built in sorted((folder / "dist").iterdir()):
            home = folder / built.suffix.lstrip(".")
            call(sys.executable, "-m", "venv", home, cwd=folder)
            quiet = ("--quiet", "--disable-pip-version-check")
            call(home / "bin" / "pip", "install", *quiet, built, cwd=folder)
            call(home / "bin" / "python", "-W", "error", "-c", TRIED, cwd=folder)
            call(home / "bin" / "nearer", "--version", cwd=folder)
            call(home / "bin" / "nearer", "data", cwd=folder)
            print(f"{built.name}: {built.stat().st_size / 1024:.0f} KiB, installs and works")


if __name__ == "__main__":
    main()
