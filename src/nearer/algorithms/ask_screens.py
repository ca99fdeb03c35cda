"""Ask screens in rounds and learn from each: `nearer.adaptive` with a task of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nearer.algorithms.believed import LearningCurve, Limits, believed
from nearer.algorithms.chosen_screens import ScreenSource
from nearer.asking.protocol import Strategy, accepts_uncertain
from nearer.embedding import Embedding, Phase
from nearer.errors import BudgetSpent, InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.likelihood import as_answers
from nearer.trials import Trials

__all__ = ["ask_screens"]


@accepts_uncertain
def ask_screens(
    belief: Belief,
    source: ScreenSource,
    limits: Limits,
    known: ArrayLike | None,
    rng: np.random.Generator,
) -> Strategy[Embedding]:
    """Ask screens of one task in rounds; the parameters are those of `nearer.adaptive`."""
    told = _known(known, source, len(belief.fit.positions))
    trials, curve, n_rounds = told, LearningCurve(), 0
    n_told = 0 if told is None else len(told)
    if told is not None:
        belief.learn(told)
    stopped, spent, asked = "the budget is spent", False, 0
    while asked < limits.budget and not spent:
        screens, random = source.draw(belief.fit, limits.next_size(asked), rng)
        if not len(screens):
            stopped = "no further screen that may be asked was found"
            break
        try:
            answers = yield screens
        except BudgetSpent as cut:
            answers, spent = cut.answers, True
            screens, random = screens[: len(answers)], random[: len(answers)]
        if not len(screens):
            break
        new = Trials.from_screens(screens, answers, wanted=source.task.choose)
        if asked and random.any():
            forecast = as_answers(new[random], len(belief.fit.positions)).forecast(belief.fit)
            logs = forecast.along(belief.fit.curve.sharpness, belief.fit.curve.lapse)[0]
            curve.add(asked, np.nan_to_num(forecast.right, nan=0.5), logs)
        trials = new if trials is None else Trials.joined([trials, new])
        asked, n_rounds = asked + len(screens), n_rounds + 1
        belief.learn(trials)
        if not spent and limits.good_enough(belief):
            stopped = f"τ is expected to be {belief.expected_tau:.3f}"
            break
    if trials is None:
        none = np.empty((0, 3), dtype=np.int64)
        return believed(belief, none, none, curve, Phase("screens", 0, 0, stopped))
    belief.conclude()
    own = trials[n_told:]
    phase = Phase("screens", asked, n_rounds, f"{source.task}: {stopped}")
    return believed(belief, own.triplets()[0], trials.questions, curve, phase, trials=own)


def _known(known: ArrayLike | None, source: ScreenSource, n: int) -> Trials | None:
    """Answers to comparisons that are there already, learned with screens that have a query."""
    if known is None or not len(np.asarray(known)):
        return None
    if source.task.kind != "near":
        raise InvalidInput(
            f"known: comparisons cannot be joined with the task '{source.task}'; leave them out, "
            "or ask for a task with a query, such as '2 of 8'"
        )
    return Trials.from_triplets(known)
