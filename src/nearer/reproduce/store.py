"""Finished cells on disk: one JSON line each, appended as they end.

A line is written and flushed whole; one that a crash cut off is left aside when the file is read.
A cell counts as finished only for the code that computed it: its line carries the digest of the
modules it comes from (`nearer.reproduce.digest`), and another version of them computes it again.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from nearer.errors import InvalidInput
from nearer.reproduce.cells import Cell, Figures
from nearer.reproduce.digest import code_digest

__all__ = ["Store"]


class Store:
    """The cells of one output folder.

    Parameters
    ----------
    path
        A file of JSON lines; it need not exist.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cells.jsonl"
    >>> cell = Cell("table1", "ball-3", "Basis", 50, 0)
    >>> Store(path).add(cell, {"dimension": 2})
    >>> Store(path).figures(cell)
    {'dimension': 2}
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._figures: dict[Cell, Figures] = {}
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
                cell = Cell(**record["cell"])
                if record["code"] == code_digest(cell.method):
                    self._figures[cell] = record["figures"]
            except (ValueError, KeyError, TypeError):
                continue  # cut off by a crash, or not ours: that cell is computed again

    def add(self, cell: Cell, figures: Figures) -> None:
        """Keep the figures of a finished cell."""
        record: dict[str, Any] = {"cell": vars(cell), "figures": figures}
        record["code"] = code_digest(cell.method)
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
        self._figures[cell] = figures

    def _ends_in_newline(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) == b"\n"

    def figures(self, cell: Cell) -> Figures | None:
        """The figures of a cell, or None where it has not been computed by this code."""
        return self._figures.get(cell)

    def lacks(self, data: str, why: str) -> None:
        """Note, for this run only, that a data set is not to be had."""
        self._missing[data] = why

    def missing(self, data: str) -> str | None:
        """Why a data set is not to be had, or None."""
        return self._missing.get(data)
