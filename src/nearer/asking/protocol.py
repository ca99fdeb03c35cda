"""What a strategy is, and what can be wrapped around one.

A *strategy* is a generator. It yields questions, an ``(m, 3)`` integer array of rows
``(head, a, b)`` that read "is a nearer to head than b is?"; it is sent answers, an ``(m,)``
boolean array, True where a is nearer; it returns its result. One yield is one *round*: its
questions do not depend on each other, so a crowd can answer them at the same time.

    def nearest_of_two(head, a, b):
        (a_is_nearer,) = yield np.array([[head, a, b]])
        return a if a_is_nearer else b

A strategy may also yield *screens*, wider rows, see `nearer.questions`.

Strategies compose by ``yield from``; independent ones run side by side with `together`. Whatever
an algorithm should not know about is a wrapper around it, itself a strategy: `recorded` notes
what was answered, `remembered` asks nothing twice, `limited` keeps a budget, `renumbered` speaks of
other objects, `forced_choice` asks again where the answer was "don't know". Each of them says only
how one round is answered; `wrapped` drives them all. `nearer.run` puts a wrapped strategy and an
oracle together.

*Budgets.* A wrapper that cannot answer a whole round raises `BudgetSpent` with the answers to the
first part of it. The driver throws it into the strategy inside: so an algorithm that ran out of
questions can return the best it has.

*Repeating.* A generator cannot be copied, rewound or asked for its seed. A function marked
`repeatable` returns strategies that know the function, its arguments and the seed, so that a
journal can store the seed that was drawn and refuse the answers of another run.

*Uncertain answers.* Most strategies want plain booleans. One that can use "don't know" and graded
answers, too, is made by a function that is marked `accepts_uncertain`; `run` wraps all others in
`forced_choice`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from nearer import checks
from nearer.asking.answers import Memory, Record, no_answers, partly_known
from nearer.errors import BudgetSpent
from nearer.questions import Answers, Objects, Questions, unsure_rows
from nearer.trials import Task

__all__ = [
    "Oracle",
    "Repeatable",
    "Strategy",
    "Ties",
    "accepts_uncertain",
    "describe",
    "forced_choice",
    "limited",
    "recorded",
    "remembered",
    "renumbered",
    "repeatable",
    "takes_uncertain",
    "together",
    "wrapped",
]

T = TypeVar("T")
P = ParamSpec("P")

Strategy = Generator[Questions, Answers, T]
Oracle = Callable[[Questions], Answers]

_MOST_REFUSALS = 100  # rounds without budget after which a strategy is taken to loop
_SEED = "random_state"
_AGAIN = 2  # times that a question answered by "don't know" is asked again


class _Strategy(Generator[Questions, Answers, T]):
    """A generator with attributes, which generators themselves cannot have."""

    def __init__(self, strategy: Strategy[T], *, takes_uncertain: bool = True) -> None:
        self._strategy = strategy
        self.takes_uncertain = takes_uncertain

    def send(self, answers: Any) -> Questions:
        """Continue with answers."""
        return self._strategy.send(answers)

    def throw(self, *error: Any) -> Questions:
        """Continue without answers."""
        return self._strategy.throw(*error)


def accepts_uncertain(make: Callable[P, Strategy[T]]) -> Callable[P, Strategy[T]]:
    """Mark a function whose strategies can use "don't know" and graded answers.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> @nearer.asking.accepts_uncertain
    ... def one_question():
    ...     return (yield np.array([[0, 1, 2]]))
    >>> nearer.run(one_question(), lambda questions: [0.7])
    array([0.7])
    """

    @wraps(make)
    def marked(*args: P.args, **options: P.kwargs) -> Strategy[T]:
        return _Strategy(make(*args, **options))

    return marked


def takes_uncertain(strategy: Strategy[Any]) -> bool:
    """Whether a strategy can use "don't know" and graded answers."""
    return bool(getattr(strategy, "takes_uncertain", False))


def wrapped(strategy: Strategy[T], answer: Callable[[Questions], Strategy[Answers]]) -> Strategy[T]:
    """Answer every round of a strategy by another asking: the one driver of all wrappers.

    Parameters
    ----------
    strategy
        What is wrapped.
    answer
        From the questions of a round to a strategy that returns their answers, or raises
        `BudgetSpent` with those to the first of them.
    """
    driven = _drive(strategy, answer)
    return _Strategy(driven, takes_uncertain=takes_uncertain(strategy))


def _drive(strategy: Strategy[T], answer: Callable[[Questions], Strategy[Answers]]) -> Strategy[T]:
    advance: Callable[[], Questions] = partial(next, strategy)
    refusals = 0
    while True:
        try:
            questions = advance()
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            answers = yield from answer(questions)
        except BudgetSpent as spent:
            refusals += 1
            if refusals > _MOST_REFUSALS:
                raise
            advance = partial(strategy.throw, spent)
        else:
            advance = partial(strategy.send, answers)


def together(*strategies: Strategy[T]) -> Strategy[list[T]]:
    """Run independent strategies side by side, each round of all of them merged into one.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> both = nearer.asking.together(nearer.rank_objects(0, 4), nearer.rank_objects(3, 4))
    >>> nearer.run(both, oracle)
    [array([0, 2, 1, 3]), array([3, 1, 2, 0])]
    """
    merged = _together(strategies)
    every = bool(strategies) and all(map(takes_uncertain, strategies))
    return _Strategy(merged, takes_uncertain=every)


def _together(strategies: tuple[Strategy[T], ...]) -> Strategy[list[T]]:
    results: dict[int, T] = {}
    rounds: dict[int, Questions] = {}

    def step(i: int, advance: Callable[[], Questions]) -> None:
        try:
            rounds[i] = advance()
        except StopIteration as done:
            rounds.pop(i, None)
            results[i] = done.value

    for i, strategy in enumerate(strategies):
        step(i, partial(next, strategy))
    while rounds:
        asked = sorted(rounds)
        cuts = np.cumsum([len(rounds[i]) for i in asked])[:-1]
        try:
            answers = yield np.concatenate([rounds[i] for i in asked])
        except BudgetSpent as spent:
            for i, part in zip(asked, np.split(spent.answers, cuts), strict=True):
                step(i, partial(strategies[i].throw, BudgetSpent(spent.budget, part)))
        else:
            for i, part in zip(asked, np.split(answers, cuts), strict=True):
                step(i, partial(strategies[i].send, part))
    return [results[i] for i in range(len(strategies))]


def recorded(strategy: Strategy[T], record: Record) -> Strategy[T]:
    """Note every question and answer of a strategy in a record, round by round."""

    def answer(questions: Questions) -> Strategy[Answers]:
        try:
            answers = yield questions
        except BudgetSpent as spent:
            record.add(questions[: len(spent.answers)], spent.answers)
            raise
        record.add(questions, answers)
        return answers

    return wrapped(strategy, answer)


def remembered(strategy: Strategy[T], memory: Memory) -> Strategy[T]:
    """Ask nothing twice: questions in memory, also mirrored ones, are answered from it."""

    def answer(questions: Questions) -> Strategy[Answers]:
        unknown = memory.unknown(questions)
        if len(unknown):
            try:
                memory.add(unknown, (yield unknown))
            except BudgetSpent as spent:
                memory.add(unknown[: len(spent.answers)], spent.answers)
                answers, known = memory.recall(questions)
                first = len(known) if known.all() else int(np.argmin(known))
                raise BudgetSpent(spent.budget, answers[:first]) from None
        return partly_known(*memory.recall(questions))

    return wrapped(strategy, answer)


def limited(strategy: Strategy[T], budget: int) -> Strategy[T]:
    """Ask at most `budget` questions; throw `BudgetSpent` into the strategy when they are gone.

    An algorithm of several phases may catch it in each of them: every further round it yields is
    met by another `BudgetSpent`. One that never gives up is stopped by raising it to the caller.
    """
    left = budget = checks.budget(budget)

    def answer(questions: Questions) -> Strategy[Answers]:
        nonlocal left
        if len(questions) <= left:
            left -= len(questions)
            return (yield questions)
        part, left = questions[:left], 0
        answers = (yield part) if len(part) else no_answers(questions)
        raise BudgetSpent(budget, answers)

    return wrapped(strategy, answer)


def renumbered(strategy: Strategy[T], objects: Objects) -> Strategy[T]:
    """Ask about these objects what a strategy asks about 0, 1, 2, ….

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[9.0], [0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(renumbered(nearer.rank_objects(0, 4), np.array([1, 2, 3, 4])), oracle)
    array([0, 2, 1, 3])
    """

    def answer(questions: Questions) -> Strategy[Answers]:
        return (yield objects[questions])

    return wrapped(strategy, answer)


@dataclass
class Ties:
    """Counts of "don't know": questions asked again, and those decided by number."""

    n_again: int = 0
    n_broken: int = 0

    def __str__(self) -> str:
        return (
            f"{self.n_again} questions were asked again after an answer of don't know; "
            f"{self.n_broken} stayed open and went to the object of the lower number"
        )


def forced_choice(strategy: Strategy[T], ties: Ties | None = None) -> Strategy[T]:
    """Give a strategy plain booleans: "don't know" is asked again, then decided by number.

    Parameters
    ----------
    strategy
        A strategy that needs every answer, such as a sort.
    ties
        Counts what was asked again and what stayed open.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> ties = Ties()
    >>> shrug = lambda questions: [None] * len(questions)
    >>> ranking = nearer.run(forced_choice(nearer.rank_objects(0, 4, random_state=0), ties), shrug)
    >>> ranking, ties.n_broken > 0
    (array([0, 1, 2, 3]), True)
    """
    ties = Ties() if ties is None else ties

    def answer(questions: Questions) -> Strategy[Answers]:
        try:
            answers = yield questions
        except BudgetSpent as spent:
            known = _settled(questions[: len(spent.answers)], spent.answers, ties)
            raise BudgetSpent(spent.budget, known) from None
        for _ in range(_AGAIN):
            unsure = unsure_rows(answers)
            if not len(unsure):
                break
            ties.n_again += len(unsure)
            try:
                answers[unsure] = yield questions[unsure]
            except BudgetSpent as spent:
                answers[unsure[: len(spent.answers)]] = spent.answers
                break
        return _settled(questions, answers, ties)

    return _Strategy(_drive(strategy, answer))


def _settled(questions: Questions, answers: Answers, ties: Ties) -> Answers:
    """Plain booleans: graded answers by the likelier side, open ones by number."""
    if answers.dtype == np.bool_ and not isinstance(answers, np.ma.MaskedArray):
        return answers
    unsure = unsure_rows(answers)
    p = np.ma.filled(answers.astype(np.float64), 0.5)
    ties.n_broken += len(unsure)
    if p.ndim == 1:
        return np.asarray((p > 0.5) | ((p == 0.5) & (questions[:, 1] < questions[:, 2])))
    chosen = p > 0.5
    first = np.argmin(questions[unsure, 1:], axis=1)
    chosen[unsure] = np.arange(questions.shape[1] - 1) == first[:, None]
    return chosen


class Repeatable(_Strategy[T]):
    """A strategy that knows how it was made."""

    def __init__(
        self, make: Callable[..., Strategy[T]], args: tuple[Any, ...], options: dict[str, Any]
    ) -> None:
        self._make, self._args, self._options = make, args, options
        strategy = make(*args, **options)
        super().__init__(strategy, takes_uncertain=takes_uncertain(strategy))

    @property
    def method(self) -> str:
        """The name of the function."""
        return self._make.__name__

    @property
    def random_state(self) -> Any:
        """The seed it was made from; None where none was given or none is used."""
        return self._given().get(_SEED)

    @property
    def options(self) -> dict[str, Any]:
        """Every other argument, in words that can be written down and compared."""
        return {name: describe(value) for name, value in self._given().items() if name != _SEED}

    def remade(self, **options: Any) -> Repeatable[T]:
        """The same strategy made anew with other values of the options that its function has."""
        known = inspect.signature(self._make).parameters
        changed = {name: value for name, value in options.items() if name in known}
        return Repeatable(self._make, self._args, {**self._options, **changed})

    def _given(self) -> dict[str, Any]:
        bound = inspect.signature(self._make).bind(*self._args, **self._options)
        bound.apply_defaults()
        return dict(bound.arguments)


def repeatable(make: Callable[P, Strategy[T]]) -> Callable[P, Strategy[T]]:
    """Mark a function whose strategies know how they were made.

    Examples
    --------
    >>> import nearer
    >>> strategy = nearer.algorithms.rand_soe(40, budget=300, random_state=7)
    >>> strategy.method, strategy.options["budget"], strategy.random_state
    ('rand_soe', 300, 7)
    """

    @wraps(make)
    def marked(*args: P.args, **options: P.kwargs) -> Strategy[T]:
        return Repeatable(make, args, options)

    return marked


def describe(value: Any) -> Any:
    """A value in words of JSON: equal values give equal words, in every process.

    Examples
    --------
    >>> describe(3), describe(None), describe(len)
    (3, None, 'function len')
    """
    value = value.item() if isinstance(value, np.generic) else value
    value = str(value) if isinstance(value, Task) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [describe(x) for x in value]
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array of shape {value.shape}, {digest[:16]}"
    if hasattr(value, "positions"):
        return f"{type(value).__name__}, {describe(np.asarray(value.positions))}"
    if callable(value):
        return f"function {getattr(value, '__qualname__', type(value).__qualname__)}"
    return type(value).__qualname__
