"""Ctrl-C: one line and the exit code that shells use for it."""

from __future__ import annotations

import click

__all__ = ["Stopped"]


class Stopped(click.ClickException):
    """Ended by Ctrl-C; the message says what is kept."""

    exit_code = 130
