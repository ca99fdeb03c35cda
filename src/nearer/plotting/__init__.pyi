from .canvas import as_png as as_png
from .canvas import save as save
from .maps import InteractiveMap as InteractiveMap
from .maps import explore_positions as explore_positions
from .other_plots import plot_basis as plot_basis
from .other_plots import plot_comparison as plot_comparison
from .other_plots import plot_dimension as plot_dimension
from .other_plots import plot_people as plot_people
from .other_plots import plot_world as plot_world
from .maps import plot_positions as plot_positions

__all__: list[str]
