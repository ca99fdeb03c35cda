"""Print the oldest versions that pyproject.toml allows, as requirements for pip.

python scripts/oldest.py

Packages that our users need are pinned to their lower bounds; those that only the tests need are
not.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
USED = ("dask", "hdf5", "llm", "parquet", "study")  # extras whose code the tests run
TOO_NEW = "schemathesis"  # it wants a newer rich than we do
OLD_CLIENT = "httpx"  # the test client of old web packages speaks through it
BOUND = re.compile(r"^([\w.-]+)>=([\w.]+)(?:;\s*(.*))?$")


def pins() -> list[str]:
    """One line a package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    lines = []
    for requirement in [
        *project["dependencies"],
        *(line for name in USED for line in extras[name]),
    ]:
        result = BOUND.match(requirement)
        if result is None:
            raise SystemExit(f"{requirement}: needs a lower bound, as name>=1.2")
        name, version, marker = result.groups()
        lines.append(f"{name}=={version}" + (f"; {marker}" if marker else ""))
    tests = [line for line in extras["dev"] if not line.startswith(("nearer[", TOO_NEW))]
    return [*lines, *tests, OLD_CLIENT]


if __name__ == "__main__":
    print("\n".join(pins()))
