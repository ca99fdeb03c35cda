"""Pictures: maps to print, maps to explore, the axes of a basis, the world, a dimension's evidence.

`Embedding.plot` draws the map of a result; the functions here draw positions from anywhere.
"""

from nearer.plotting.canvas import as_png, save
from nearer.plotting.interactive_map import InteractiveMap, explore_positions
from nearer.plotting.other_plots import (
    plot_basis,
    plot_comparison,
    plot_dimension,
    plot_people,
    plot_world,
)
from nearer.plotting.printed_map import plot_positions

__all__ = [
    "InteractiveMap",
    "as_png",
    "explore_positions",
    "plot_basis",
    "plot_comparison",
    "plot_dimension",
    "plot_people",
    "plot_positions",
    "plot_world",
    "save",
]
