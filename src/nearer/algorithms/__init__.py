"""Strategies that find positions: the paper's methods, and the parts of ours."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
