"""The gallery's pictures, and the order of its examples.

`nearer` draws on figures of its own, which pyplot does not know. So a block's picture is what its
last line gives, a figure or axes, beside the figures that pyplot has open.
"""

from __future__ import annotations

import warnings
from typing import Any
from weakref import WeakSet

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

# What newcomers look for first comes first; every example is named.
ORDER = [
    "world",
    "salmon",
    "unknown_dimension",
    "two_groups",
    "placing",
    "language_model",
    "study",
    "own_strategy",
    "own_loss",
    "colours",
    "words",
    "shapes",
    "screens",
    "keep",
    "pipeline",
    "geometry",
]

_DPI = 110  # a picture six inches wide is as wide as a page's column
_shown: WeakSet[Figure] = WeakSet()


def drawn(block: Any, names: dict[str, Any], conf: dict[str, Any]) -> str:
    """Save what a block of an example has drawn, and say where in reStructuredText."""
    figures = [plt.figure(number) for number in plt.get_fignums()]
    last = names["example_globals"].get("___")  # stays until another block ends in a value
    if isinstance(last, Axes):
        last = last.get_figure(root=True)
    if isinstance(last, Figure) and last not in figures and last not in _shown:
        figures.append(last)
    saved = []
    for figure in figures:
        path = next(names["image_path_iterator"])
        figure.savefig(path, dpi=_DPI, metadata={"Software": None})
        saved.append(path)
        _shown.add(figure)
    plt.close("all")
    return figure_rst(saved, conf["src_dir"])


def begin(conf: dict[str, Any], name: str) -> None:
    """Before every example: the same look, and no warning that nobody sees."""
    plt.rcdefaults()
    plt.switch_backend("agg")
    plt.rcParams.update({"figure.figsize": (7, 4.6), "figure.constrained_layout.use": True})
    warnings.simplefilter("error")


class InOrder:
    """Examples as `ORDER` lists them."""

    def __init__(self, folder: str) -> None:
        """The folder does not matter."""

    def __call__(self, name: str) -> int:
        """The place of one example."""
        return ORDER.index(name.removeprefix("plot_").removesuffix(".py"))
