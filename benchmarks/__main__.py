"""Run benchmarks: all of them, or those named.

    make bench                              all
    .venv/bin/python -m benchmarks growth   one

A benchmark is a module of this package with a function ``main()`` and a first line that says what
it measures.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules

import benchmarks

NAMES = sorted(m.name for m in iter_modules(benchmarks.__path__) if not m.name.startswith("_"))


def main(wanted: list[str]) -> int:
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 2
    for name in wanted or NAMES:
        module = import_module(f"benchmarks.{name}")
        print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}", flush=True)
        module.main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
