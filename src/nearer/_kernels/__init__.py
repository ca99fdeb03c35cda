"""The only place that imports numba."""
