"""Run benchmarks: all of them, or those named.

    make bench                                      all, short
    .venv/bin/python -m benchmarks growth           one
    .venv/bin/python -m benchmarks adaptive --full --seeds 10 --cells 'table data=3dgmm'

`benchmarks.harness` says what a benchmark is.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pkgutil import iter_modules

import benchmarks
from benchmarks.harness import cores, measure
from nearer.errors import NearerError

NAMES = sorted(
    m.name
    for m in iter_modules(benchmarks.__path__)
    if m.name not in ("__main__", "cells", "harness") and not m.name.startswith("_")
)


def _number(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


_number.__name__ = "number"  # what argparse calls it: invalid number value


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--full", action="store_true", help="the full form; it may take hours")
    parser.add_argument("--seeds", type=_number, metavar="K", help="so many seeds")
    parser.add_argument("--cells", default="", metavar="GLOB", help="only cells whose name has it")
    parser.add_argument("--jobs", type=_number, default=cores(), help="processes at a time")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a Dask scheduler, not processes")
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    try:
        for name in chosen.names or NAMES:
            module = import_module(f"benchmarks.{name}")
            print(f"\n== {name}: {(module.__doc__ or '').splitlines()[0]}\n", flush=True)
            options = {"full": chosen.full, "seeds": chosen.seeds, "only": chosen.cells}
            options |= {"jobs": chosen.jobs, "scheduler": chosen.scheduler}
            print(measure(module, name, **options), flush=True)
    except KeyboardInterrupt:
        print("interrupted; finished cells are stored, the same command goes on", file=sys.stderr)
        return 130
    except NearerError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
