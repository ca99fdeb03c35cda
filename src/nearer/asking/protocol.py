"""What an asking is, and how one is driven.

An *asking* is a generator. It yields questions, an ``(m, 3)`` integer array of rows
``(head, a, b)`` that read "is a nearer to head than b is?"; it is sent answers, an ``(m,)``
boolean array, True where a is nearer; it returns its result. One yield is one *round*: its
questions do not depend on each other, so a crowd can answer them at the same time.

    def nearest_of_two(head, a, b):
        (a_is_nearer,) = yield np.array([[head, a, b]])
        return a if a_is_nearer else b

Askings compose by ``yield from``; independent ones run side by side with `together`. Whatever
an algorithm should not know about is a wrapper around it, itself an asking: `recorded` notes
what was answered, `remembered` asks nothing twice, `limited` keeps a budget. `run` puts a
wrapped asking and an oracle together.

A wrapper must pass `BudgetSpent` on to the asking inside it: that is how an algorithm that ran
out of questions gets the chance to return the best it has.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import TypeVar

import numpy as np

from nearer.asking.memory import Memory
from nearer.asking.record import Record
from nearer.errors import BudgetSpent, InvalidInput, OracleError
from nearer.questions import Answers, Questions

__all__ = [
    "Answers",
    "Asking",
    "Oracle",
    "Questions",
    "limited",
    "put",
    "recorded",
    "remembered",
    "run",
    "together",
]

T = TypeVar("T")

Asking = Generator[Questions, Answers, T]
Oracle = Callable[[Questions], Answers]

_MOST_REFUSALS = 100  # rounds without budget after which an asking is taken to loop


def run(
    asking: Asking[T],
    oracle: Oracle,
    *,
    budget: int | None = None,
    memory: Memory | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> T:
    """Answer every question of an asking with an oracle and return its result.

    Parameters
    ----------
    asking
        A generator of questions, such as `nearer.choose_basis` or `nearer.rank_objects` makes.
    oracle
        Any callable from ``(m, 3)`` questions to ``(m,)`` booleans.
    budget
        How many comparisons may be put to the oracle. An algorithm that runs out returns its
        best so far, or `nearer.errors.BudgetSpent` is raised where it has nothing.
    memory
        Answers that need not be asked again. New answers are added as they come, so that after
        an interruption the same call with the same memory goes on where it stopped.
    progress
        Called after every round with the number of comparisons and of rounds so far.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(nearer.rank_objects(0, 4), oracle)
    array([0, 2, 1, 3])
    """
    if memory is not None:
        asking = remembered(asking, memory)
    if budget is not None:
        asking = limited(asking, budget)
    comparisons = rounds = 0
    try:
        questions = next(asking)
        while True:
            answers = put(questions, oracle)
            comparisons += len(questions)
            rounds += 1
            if progress is not None:
                progress(comparisons, rounds)
            questions = asking.send(answers)
    except StopIteration as done:
        result: T = done.value
        return result


def put(questions: Questions, oracle: Oracle) -> Answers:
    """Put questions to an oracle and insist on one boolean for each."""
    raw = oracle(questions)
    answers = np.asarray(raw)
    if answers.dtype != np.bool_:
        raise OracleError(
            f"the oracle answered with {answers.dtype} values such as "
            f"{answers.ravel()[:1].tolist()}: answers must be booleans, True where a is nearer; "
            "compare, or convert with .astype(bool)"
        )
    if answers.shape != (len(questions),):
        raise OracleError(
            f"the oracle answered {len(questions)} questions with an array of shape "
            f"{answers.shape}: it must return exactly one boolean for each question"
        )
    return answers


def together(*askings: Asking[T]) -> Asking[list[T]]:
    """Run independent askings side by side, each round of all of them merged into one.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> both = nearer.together(nearer.rank_objects(0, 4), nearer.rank_objects(3, 4))
    >>> nearer.run(both, oracle)
    [array([0, 2, 1, 3]), array([3, 1, 2, 0])]
    """
    results: dict[int, T] = {}
    rounds: dict[int, Questions] = {}

    def step(i: int, advance: Callable[[], Questions]) -> None:
        try:
            rounds[i] = advance()
        except StopIteration as done:
            rounds.pop(i, None)
            results[i] = done.value

    for i, asking in enumerate(askings):
        step(i, partial(next, asking))
    while rounds:
        asked = sorted(rounds)
        cuts = np.cumsum([len(rounds[i]) for i in asked])[:-1]
        try:
            answers = yield np.concatenate([rounds[i] for i in asked])
        except BudgetSpent as spent:
            for i, part in zip(asked, np.split(spent.answers, cuts), strict=True):
                step(i, partial(askings[i].throw, BudgetSpent(spent.budget, part)))
            if rounds:
                raise
            continue
        for i, part in zip(asked, np.split(answers, cuts), strict=True):
            step(i, partial(askings[i].send, part))
    return [results[i] for i in range(len(askings))]


def recorded(asking: Asking[T], record: Record) -> Asking[T]:
    """Note every question and answer of an asking in a record, round by round."""
    advance: Callable[[], Questions] = partial(next, asking)
    while True:
        try:
            questions = advance()
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            answers = yield questions
        except BudgetSpent as spent:
            record.add(questions[: len(spent.answers)], spent.answers)
            advance = partial(asking.throw, spent)
        else:
            record.add(questions, answers)
            advance = partial(asking.send, answers)


def remembered(asking: Asking[T], memory: Memory) -> Asking[T]:
    """Ask nothing twice: questions in memory, also mirrored ones, are answered from it."""
    advance: Callable[[], Questions] = partial(next, asking)
    while True:
        try:
            questions = advance()
        except StopIteration as done:
            result: T = done.value
            return result
        unknown = memory.unknown(questions)
        if len(unknown):
            try:
                memory.add(unknown, (yield unknown))
            except BudgetSpent as spent:
                memory.add(unknown[: len(spent.answers)], spent.answers)
                answers, known = memory.recall(questions)
                prefix = len(known) if known.all() else int(np.argmin(known))
                advance = partial(asking.throw, BudgetSpent(spent.budget, answers[:prefix]))
                continue
        answers, _ = memory.recall(questions)
        advance = partial(asking.send, answers)


def limited(asking: Asking[T], budget: int) -> Asking[T]:
    """Ask at most `budget` questions; throw `BudgetSpent` into the asking when they are gone.

    An algorithm of several phases may catch it in each of them: every further round it yields is
    met by another `BudgetSpent`. One that never gives up is stopped by raising it to the caller.
    """
    if budget < 0:
        raise InvalidInput(f"budget={budget}: must be at least 0 comparisons")
    left, refusals = budget, 0
    advance: Callable[[], Questions] = partial(next, asking)
    while True:
        try:
            questions = advance()
        except StopIteration as done:
            result: T = done.value
            return result
        if len(questions) <= left:
            left -= len(questions)
            advance = partial(asking.send, (yield questions))
            continue
        answers = (yield questions[:left]) if left else np.empty(0, dtype=np.bool_)
        left, refusals = 0, refusals + 1
        spent = BudgetSpent(budget, answers)
        if refusals > _MOST_REFUSALS:
            raise spent
        advance = partial(asking.throw, spent)
