"""Pictures: maps to print, maps to explore, the axes of a basis, the world, a dimension's evidence.

`Embedding.plot` draws the map of a result; the functions here draw positions from anywhere.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
