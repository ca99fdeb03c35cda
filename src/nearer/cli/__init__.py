"""The command line: parse, call, print. Nothing is computed here.

Each command lives in the module of its name and is imported when it is used, so that
``nearer --help`` answers at once.
"""

import sys

try:
    from nearer.cli.main import main
except KeyboardInterrupt:  # Ctrl-C before a command has begun
    sys.stderr.write("Error: interrupted\n")
    sys.exit(130)

__all__ = ["main"]
