"""Benchmarks: figures that the documentation quotes, made anew by one command."""
