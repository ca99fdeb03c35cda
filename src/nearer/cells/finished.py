"""Finished cells on disk: one JSON line each, appended as they end.

A line is written and flushed whole; one that a crash cut off is left aside when the file is read.
A cell counts as finished only for the code that computed it: its line carries the digest of that
code (`nearer.cells.digest`), and another version of it computes the cell again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Protocol

from nearer.errors import InvalidInput

__all__ = ["Computable", "Figures", "FinishedCells"]

Figures = dict[str, Any]


class Computable(Protocol):
    """What a cell has. It is sent to other processes, so it must be picklable."""

    @property
    def name(self) -> str:
        """All that the figures depend on, beside the code, in one line."""

    @property
    def data(self) -> str:
        """What it needs from outside; where that is not to be had, others of it are left out."""

    @property
    def code(self) -> str:
        """The digest of the code that computes it."""

    def compute(self) -> Figures:
        """The figures, values that JSON can hold."""


class FinishedCells:
    """The cells of one file.

    Parameters
    ----------
    path
        A file of JSON lines; it need not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._figures: dict[tuple[str, str], Figures] = {}
        self._missing: dict[str, str] = {}
        if path.exists():
            self._read()

    def _read(self) -> None:
        try:
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise InvalidInput(f"{self.path}: cannot be read ({error.strerror})") from error
        for line in lines:
            try:
                record = json.loads(line)
                self._figures[record["cell"], record["code"]] = record["figures"]
            except (ValueError, KeyError, TypeError):
                continue  # cut off by a crash, or not ours: that cell is computed again

    def add(self, cell: Computable, figures: Figures) -> None:
        """Keep the figures of a finished cell."""
        record = {"cell": cell.name, "code": cell.code, "figures": figures}
        line = (json.dumps(record) + "\n").encode()
        try:
            with self.path.open("ab") as file:
                if file.tell() and not self._ends_in_newline():
                    line = b"\n" + line  # after a line that was cut off
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise InvalidInput(
                f"{self.path}: cannot be written ({error.strerror}); what is there stays valid"
            ) from error
        self._figures[cell.name, cell.code] = figures

    def _ends_in_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def figures(self, cell: Computable) -> Figures | None:
        """The figures of a cell, or None where it has not been computed by this code."""
        return self._figures.get((cell.name, cell.code))

    def lacks(self, data: str, why: str) -> None:
        """Note, for this run only, that a data set is not to be had."""
        self._missing[data] = why

    def missing(self, data: str) -> str | None:
        """Why a data set is not to be had, or None."""
        return self._missing.get(data)
