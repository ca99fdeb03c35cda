"""Triplets and trials at the edge: read from any file, written to many, always with a report."""

from nearer.triplets.any_table import read_table
from nearer.triplets.collection import Triplets
from nearer.triplets.reader import read_trials, read_triplets
from nearer.triplets.report import Report, examine
from nearer.triplets.trials_writer import write_trials
from nearer.triplets.writer import write_triplets

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
