"""Ordinal embedding: positions and dimension from answers to "is a nearer to this than b is?".

``nearer.fit`` takes answers that exist; ``nearer.embed`` asks for them. ``__init__.pyi`` lists
every public name. A name is imported when it is first used, so that ``import nearer`` costs
milliseconds.
"""

import lazy_loader

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
