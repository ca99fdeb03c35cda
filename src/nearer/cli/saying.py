r"""What a command says to a person: what files hold is shown, and never obeyed.

A name in somebody's file may hold an escape sequence, with which a terminal changes its title or
hides a line. Text is therefore shown with its control characters written out, as ``\x1b``; data
that a command was asked to print, JSON or CSV, is not touched.
"""

from __future__ import annotations

import re

import click

__all__ = ["Ended", "say", "visible"]

# control characters but for the tab and the end of a line, and halves of characters
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def visible(text: str) -> str:
    r"""A text with its control characters written out.

    Examples
    --------
    >>> print(visible("ape\x1b[2J, bee\n"), end="")
    ape\x1b[2J, bee
    """
    return _UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def say(text: str, *, err: bool = False) -> None:
    """Print a line for whoever sits there."""
    click.echo(visible(text), err=err)


class Ended(click.ClickException):
    """Ends a command with one message."""

    def format_message(self) -> str:
        """The message, which may name what a file holds."""
        return visible(super().format_message())
