"""Points and answers to try things on: drawn at random, shipped, or read from files."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
