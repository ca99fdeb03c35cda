"""Benchmarks: figures that the documentation quotes, computed by one command."""

import os
from pathlib import Path

# where the data lies beside a checkout; the package itself has no such default
_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
if _DATA.is_dir():
    os.environ.setdefault("NEARER_DATA", str(_DATA))
