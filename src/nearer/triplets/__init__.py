"""Triplets and trials at the edge: read from any file, written to many, always with a report."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
