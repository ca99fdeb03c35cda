"""Triplets and trials at the edge: read from any file, written to many, always with a report."""

from nearer.triplets.read import read_trials, read_triplets
from nearer.triplets.report import Report, Triplets, examine
from nearer.triplets.table import read_table
from nearer.triplets.write import write_trials, write_triplets

__all__ = [
    "Report",
    "Triplets",
    "examine",
    "read_table",
    "read_trials",
    "read_triplets",
    "write_trials",
    "write_triplets",
]
