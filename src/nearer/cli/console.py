"""Tables on the screen, by Rich, with texts that are what they are.

A path may look like Rich's markup, ``run [/b].csv``, or like the name of an emoji.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from nearer.cli.saying import visible

__all__ = ["PlainConsole"]


class PlainConsole(Console):
    """A console without markup and emoji, where control characters are written out."""

    def __init__(self) -> None:
        super().__init__(markup=False, emoji=False)

    def render_str(self, text: str, **how: Any) -> Text:
        """Every text comes by here, also those in a table."""
        return super().render_str(visible(text), **how)
