"""Pictures: maps to print, maps to explore, the axes of a basis, the world, a dimension's evidence.

`Embedding.plot` draws the map of a result; the functions here draw positions from anywhere.
"""

from nearer.plotting.basis_map import plot_basis
from nearer.plotting.canvas import as_png, save
from nearer.plotting.dimension_curve import plot_dimension
from nearer.plotting.interactive_map import InteractiveMap, explore_positions
from nearer.plotting.printed_map import plot_positions
from nearer.plotting.world_map import plot_world

__all__ = [
    "InteractiveMap",
    "as_png",
    "explore_positions",
    "plot_basis",
    "plot_dimension",
    "plot_positions",
    "plot_world",
    "save",
]
