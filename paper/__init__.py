"""The paper's tables and figures, computed by `nearer`, beside the figures that the paper reports.

`python -m paper all --quick` computes everything on a small scale; `paper.published` is the only
place that quotes the paper.
"""
