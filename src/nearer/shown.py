"""How results print: a short line, and in notebooks a line above the beginning of a table."""

from __future__ import annotations

from html import escape
from typing import Any


class Shown:
    """Prints as its name and `_summary`; a notebook shows the first ten rows of `to_frame`, too."""

    def _summary(self) -> list[str]:
        raise NotImplementedError

    def to_frame(self) -> Any:
        """A pandas frame."""
        raise NotImplementedError

    def _first(self) -> Any:
        return self.to_frame()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._summary())})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self._first().head(10).to_html()}"
