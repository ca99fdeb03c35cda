"""Triplets in, positions out; asks nothing."""
