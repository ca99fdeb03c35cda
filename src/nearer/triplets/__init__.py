"""Triplets at the edge: read from any file, written to a few, always with a report."""

from nearer.triplets.collection import Triplets
from nearer.triplets.reader import read_triplets
from nearer.triplets.report import Report, examine
from nearer.triplets.writer import write_triplets

__all__ = ["Report", "Triplets", "examine", "read_triplets", "write_triplets"]
