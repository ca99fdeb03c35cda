"""How long people take for a screen.

Seconds are a + b·k + c·m: something to begin with, something for each of the k choices, something
for each of the m objects looked at. The numbers are least squares over recorded times, each cut at
half a minute, because people look away.

The default was fitted to 9,904 screens of Wilber, Kwak and Belongie (2014), dishes of food, k of 1,
2, 4 and m of 2 to 16. It misses the mean of a task by 0.8 s (root mean square over their twelve
tasks) and by 1.5 s at most.
``python -m benchmarks choices`` prints both. Odd-one-out screens were not among them: they are
taken to last as long as choosing one of as many.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearer.errors import InvalidInput
from nearer.trials import Task, Trials

__all__ = ["Pace"]

_LONGEST = 30.0  # seconds; beyond that people were looking away


@dataclass(frozen=True)
class Pace:
    """Seconds that a screen takes.

    Attributes
    ----------
    start, choice, look
        Seconds to begin with, for each object to choose, for each object shown.

    Examples
    --------
    >>> import nearer
    >>> round(nearer.Pace().seconds("2 of 8"), 1)
    7.2
    """

    start: float = 1.68
    choice: float = 1.58
    look: float = 0.29

    def seconds(self, task: Task | str) -> float:
        """How long one screen of a task takes."""
        task = Task.parse(task)
        return self.start + self.choice * task.choose + self.look * task.shown

    @classmethod
    def fit(cls, trials: Trials) -> Pace:
        """The pace of people whose times were recorded, from screens of at least three tasks."""
        if trials.seconds is None:
            raise InvalidInput("the trials have no seconds: a pace is fitted to recorded times")
        known = np.isfinite(trials.seconds) & (trials.seconds > 0)
        k, m = trials.wanted[known], trials.n_shown[known]
        table = np.column_stack([np.ones(len(k)), k, m])
        if np.linalg.matrix_rank(table) < 3:
            raise InvalidInput(
                "the trials are too much alike: their numbers of choices and of objects shown must "
                "both vary, else pass Pace(start, choice, look)"
            )
        seconds = np.minimum(trials.seconds[known], _LONGEST)
        start, choice, look = np.linalg.lstsq(table, seconds, rcond=None)[0].tolist()
        return cls(start, choice, look)
