"""Ctrl-C: one line and the exit code that shells use for it."""

from __future__ import annotations

from nearer.cli.saying import Ended

__all__ = ["Stopped"]


class Stopped(Ended):
    """Ended by Ctrl-C; the message says what is kept."""

    exit_code = 130
