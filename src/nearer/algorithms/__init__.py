"""Askings that combine asking, geometry and fitting."""
