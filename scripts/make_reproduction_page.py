"""Make docs/reproduction.md and its pictures from the cells that `nearer reproduce` has kept.

nearer reproduce all --out out/reproduce
python scripts/make_reproduction_page.py out/reproduce

The cells that the page is made of are written to docs/reproduction.jsonl: as cells.jsonl in such a
folder they are finished ones, as long as the code is the same.
"""

from __future__ import annotations

import sys
from pathlib import Path

from nearer.cells.finished import FinishedCells
from nearer.plotting import as_png
from nearer.reproduce.pages import make_page
from nearer.reproduce.render import as_markdown
from nearer.reproduce.scale import FULL, list_experiments

DOCS = Path(__file__).parents[1] / "docs"

INTRODUCTION = """
This page is made by `scripts/make_reproduction_page.py` from the output of `nearer reproduce all`:
every figure of ours is computed by that command, every figure under “paper” is the paper's own.
The cells that it is made of, one run of one method each, are in
[reproduction.jsonl](reproduction.jsonl) with a digest of the code that computed them.
Our own rows in Table 1 have ten runs up to five dimensions (five of the two points that a sphere
in one is), five in eight and ten, where a run takes half a minute to three, and three in twenty,
where it takes five.
"""


def main(folder: Path) -> None:
    """Write the page and the pictures it shows."""
    cells = list_experiments("all", FULL)
    finished = FinishedCells(folder / "cells.jsonl")
    made = make_page("all", cells, finished, seed=0)
    text = as_markdown(made)
    for drawing in made.drawings:
        name = f"{drawing.name}.png"
        (DOCS / "images" / name).write_bytes(as_png(drawing.figure))
        text = text.replace(f"]({name})", f"](images/{name})")
    title, rest = text.split("\n", 1)
    page = DOCS / "reproduction.md"
    page.write_text(f"{title}\n{INTRODUCTION}{rest}", encoding="utf-8")
    kept = FinishedCells(page.with_suffix(".jsonl"))
    kept.path.unlink(missing_ok=True)
    for cell in cells:
        if (figures := finished.figures(cell)) is not None:
            kept.add(cell, figures)
    print(page, kept.path)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "out/reproduce"))
