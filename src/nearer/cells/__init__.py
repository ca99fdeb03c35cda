"""Cells: pure functions computed once, several at a time, and kept with the code they came from.

A cell is what an experiment computes at once: everything it needs is in its name, and what comes
out is a few figures. So a finished one need not be computed again, an hour of them survives Ctrl-C,
and a page is rendered from those that are there. `nearer.reproduce` and the benchmarks are lists of
cells and pages made of them.
"""
