"""The command line: parse, call, print. Nothing is computed here.

Each command lives in the module of its name and is imported when it is used, so that
``nearer --help`` answers at once.
"""

from nearer.cli.main import main

__all__ = ["main"]
