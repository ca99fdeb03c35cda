"""A report put together and written: one HTML file, or Markdown with its pictures beside it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from nearer import __version__
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.files import content_suffix, write_bytes
from nearer.reports import sections
from nearer.reports.document import Document, Plate, Section

__all__ = ["compose", "write_report"]


def compose(
    found: Embedding,
    *,
    title: str = "Report on a map of objects",
    command: str | None = None,
    source: Mapping[str, str] | None = None,
    pictures: Sequence[Any] | None = None,
) -> Document:
    """The report on a result; see `Embedding.report` for the parameters."""
    facts = {
        **(source or {}),
        "nearer": __version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
    }
    parts = [
        sections.about_data(found),
        sections.about_dimension(found),
        sections.about_accuracy(found),
        sections.about_people(found),
        sections.about_map(found, pictures),
        sections.about_objects(found),
        sections.about_methods(found),
        sections.about_repeating(found, facts, command),
    ]
    return Document(title, [part for part in parts if part is not None])


def write_report(found: Embedding, path: str | os.PathLike[str], **about: Any) -> None:
    """Write a report to ``.html`` or ``.md``, whole or not at all."""
    kind = content_suffix(path)
    if kind not in (".html", ".md"):
        raise InvalidInput(f"{path}: a report is written to .html or .md; end the name so")
    _check(about["title"], about["command"], about["source"])
    page = compose(found, **about)
    if kind == ".html":
        write_bytes(path, page.html().encode())
        return
    folder, name = Path(path).parent, Path(path).name
    stem = name[: name.lower().rindex(".md")]
    renamed = [_beside(section, stem) for section in page.sections]
    page = replace(page, sections=renamed)
    for plate in page.plates:
        write_bytes(folder / plate.name, plate.content)
    write_bytes(path, page.markdown().encode())


def _check(title: Any, command: Any, source: Any) -> None:
    """Refuse what cannot be printed; whoever draws the pictures looks at those."""
    for name, value in (("title", title), ("command", "" if command is None else command)):
        if not isinstance(value, str):
            raise InvalidInput(f"{name}={value!r}: must be text; write it in quotes")
    facts = {} if source is None else source
    if not isinstance(facts, Mapping) or any(
        not isinstance(text, str) for fact in facts.items() for text in fact
    ):
        raise InvalidInput(f"source={source!r}: must be texts by name; write {{'file': 'a.csv'}}")


def _beside(section: Section, stem: str) -> Section:
    """The section with its pictures named after the report."""
    blocks = [
        replace(block, name=f"{stem}-{block.name}") if isinstance(block, Plate) else block
        for block in section.blocks
    ]
    return replace(section, blocks=blocks)
