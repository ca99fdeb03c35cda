from .belief import Belief as Belief
from .solver import fit_positions as fit_positions

__all__: list[str]
