"""Strategies, the answers they are sent, and what can be wrapped around a strategy.

docs/own-strategy.md shows how to write a strategy. A *wrapper* adds something to a strategy, such
as a budget or a memory, and is a strategy, too. `wrapped` makes one from a function that answers
one round. If that function cannot answer a whole round, it raises `BudgetSpent` with the answers to
the first part. `wrapped` throws this into the inner strategy, so that the algorithm can return its
best result so far.
"""

from __future__ import annotations

import hashlib
import inspect
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import BudgetSpent, InvalidInput, OracleError
from nearer.questions import (
    Answers,
    Floats,
    Objects,
    Questions,
    Said,
    answered,
    unsure_rows,
    weighted,
)
from nearer.trials import Task

if TYPE_CHECKING:
    from nearer.asking.oracles import Memory

T = TypeVar("T")
P = ParamSpec("P")

Strategy = Generator[Questions, Answers, T]
Oracle = Callable[[Questions], Answers]

_MOST_REFUSALS = 100  # rounds without budget, after which a strategy counts as an endless loop
_SEED = "random_state"


class _Strategy(Generator[Questions, Answers, T]):
    """A generator with attributes, which generators themselves cannot have."""

    def __init__(self, strategy: Strategy[T], *, takes_uncertain: bool = True) -> None:
        self._strategy = strategy
        self.takes_uncertain = takes_uncertain

    def send(self, answers: Any) -> Questions:
        return self._strategy.send(answers)

    def throw(self, *error: Any) -> Questions:
        return self._strategy.throw(*error)


def accepts_uncertain(make: Callable[P, Strategy[T]]) -> Callable[P, Strategy[T]]:
    """Mark a function whose strategies can use "don't know" and graded answers.

    Examples
    --------
    >>> @accepts_uncertain
    ... def one_question():
    ...     return (yield np.array([[0, 1, 2]]))
    """
    checks.one("make", make, Callable, "a function whose strategies take such answers")

    @wraps(make)
    def marked(*args: P.args, **options: P.kwargs) -> Strategy[T]:
        return _Strategy(make(*args, **options))

    return marked


def takes_uncertain(strategy: Strategy[Any]) -> bool:
    """Whether a strategy can use "don't know" and graded answers."""
    return bool(getattr(strategy, "takes_uncertain", False))


def wrapped(strategy: Strategy[T], answer: Callable[[Questions], Strategy[Answers]]) -> Strategy[T]:
    """Answer every round of a strategy by another strategy, which may raise `BudgetSpent`."""
    driven = _drive(checks.strategy(strategy), answer)
    return _Strategy(driven, takes_uncertain=takes_uncertain(strategy))


def _drive(strategy: Strategy[T], answer: Callable[[Questions], Strategy[Answers]]) -> Strategy[T]:
    advance: Callable[[], Questions] = partial(next, strategy)
    refusals = 0
    while True:
        try:
            questions = _as_round(advance(), strategy)
        except StopIteration as done:
            result: T = done.value
            return result
        try:
            advance = partial(strategy.send, (yield from answer(questions)))
        except BudgetSpent as spent:
            refusals += 1
            if refusals > _MOST_REFUSALS:
                raise
            advance = partial(strategy.throw, spent)


def _as_round(questions: Any, strategy: Strategy[Any]) -> Questions:
    """The questions that a strategy has yielded, checked; errors name the line of the `yield`."""
    rows: Questions = questions if isinstance(questions, np.ndarray) else np.empty(0, dtype=int)
    if rows.ndim == 2 and rows.shape[1] >= 3 and rows.dtype.kind in "iu":
        return rows
    what = f"an array of shape {rows.shape} and type {rows.dtype}"
    inner: Any = strategy
    while inner is not None:  # the innermost of strategies that yield from one another
        frame = getattr(inner, "gi_frame", None)
        inner = getattr(inner, "_strategy", None) or getattr(inner, "gi_yieldfrom", None)
    where = "" if frame is None else f" in line {frame.f_lineno} of {frame.f_code.co_filename}"
    yielded = what if rows is questions else checks.shown(questions)
    rule = "it must yield (m, 3) arrays of whole numbers, rows (head, a, b)"
    raise InvalidInput(f"the strategy has yielded {yielded}{where}: {rule}")


def together(*strategies: Strategy[T]) -> Strategy[list[T]]:
    """Run independent strategies side by side, each round of all of them merged into one.

    Examples
    --------
    >>> import nearer
    >>> both = together(nearer.rank_objects(0, 4), nearer.rank_objects(3, 4))
    >>> nearer.run(both, nearer.PointOracle([0.0, 3.0, 1.0, 7.0]))
    [array([0, 2, 1, 3]), array([3, 1, 2, 0])]
    """
    merged = _together(tuple(map(checks.strategy, strategies)))
    every = bool(strategies) and all(map(takes_uncertain, strategies))
    return _Strategy(merged, takes_uncertain=every)


def _together(strategies: tuple[Strategy[T], ...]) -> Strategy[list[T]]:
    results: dict[int, T] = {}
    rounds: dict[int, Questions] = {}

    def step(i: int, advance: Callable[[], Questions]) -> None:
        try:
            rounds[i] = _as_round(advance(), strategies[i])
        except StopIteration as done:
            rounds.pop(i, None)
            results[i] = done.value

    for i, strategy in enumerate(strategies):
        step(i, partial(next, strategy))
    while rounds:
        asked = sorted(rounds)
        cuts = np.cumsum([len(rounds[i]) for i in asked])[:-1]
        cut: BudgetSpent | None = None
        try:
            answers = yield np.concatenate([rounds[i] for i in asked])
        except BudgetSpent as spent:
            cut, answers = spent, spent.answers
        for i, part in zip(asked, np.split(answers, cuts), strict=True):
            send, throw = strategies[i].send, strategies[i].throw
            step(i, partial(throw, BudgetSpent(cut.budget, part)) if cut else partial(send, part))
    return [results[i] for i in range(len(strategies))]


def recorded(strategy: Strategy[T], record: Record) -> Strategy[T]:
    """Store every question and answer of a strategy in a record, round by round."""
    checks.one("record", record, Record, "a nearer.asking.Record")

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
    checks.one("memory", memory, "recall", "a nearer.asking.Memory")

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
    """Ask at most `budget` questions, then throw `BudgetSpent` into the strategy.

    Every further round gets another `BudgetSpent`; a strategy that never returns is stopped by it.
    """
    left = budget = checks.budget(budget)

    def answer(questions: Questions) -> Strategy[Answers]:
        nonlocal left
        if len(questions) <= left:
            left -= len(questions)
            return (yield questions)
        part, left = questions[:left], 0
        answers = (yield part) if len(part) else np.empty(as_shape(part), dtype=np.bool_)
        raise BudgetSpent(budget, answers)

    return wrapped(strategy, answer)


def renumbered(strategy: Strategy[T], objects: Objects) -> Strategy[T]:
    """Replace the objects 0, 1, 2, … in the questions of a strategy by these objects.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle([9.0, 0.0, 3.0, 1.0, 7.0])
    >>> nearer.run(renumbered(nearer.rank_objects(0, 4), np.array([1, 2, 3, 4])), oracle)
    array([0, 2, 1, 3])
    """
    table = checks.objects("objects", objects)

    def answer(questions: Questions) -> Strategy[Answers]:
        if len(questions) and questions.max() >= len(table):
            rule = f"the strategy asks about it, and objects= has {len(table)}; give one for each"
            raise InvalidInput(f"object {questions.max()}: {rule}")
        return (yield np.where(questions < 0, questions, table[questions]))

    return wrapped(strategy, answer)


def forced_choice(strategy: Strategy[T], ties: Counter[str] | None = None) -> Strategy[T]:
    """Give a strategy plain booleans: "don't know" is asked again, then decided by number.

    `ties` counts questions asked ``"again"``, and ``"broken"`` ones, which stayed open.

    Examples
    --------
    >>> import nearer
    >>> shrug = lambda questions: [None] * len(questions)
    >>> nearer.run(forced_choice(nearer.rank_objects(0, 4)), shrug)
    array([0, 1, 2, 3])
    """
    ties = Counter() if ties is None else ties

    def answer(questions: Questions) -> Strategy[Answers]:
        try:
            answers = yield questions
        except BudgetSpent as spent:
            known = _as_booleans(questions[: len(spent.answers)], spent.answers, ties)
            raise BudgetSpent(spent.budget, known) from None
        for _ in range(2):
            unsure = unsure_rows(answers)
            if not len(unsure):
                break
            ties["again"] += len(unsure)
            try:
                answers[unsure] = yield questions[unsure]
            except BudgetSpent as spent:
                answers[unsure[: len(spent.answers)]] = spent.answers
                break
        return _as_booleans(questions, answers, ties)

    return _Strategy(_drive(checks.strategy(strategy), answer))


def _as_booleans(questions: Questions, answers: Answers, ties: Counter[str]) -> Answers:
    """Plain booleans: graded answers by the likelier side, open ones by number."""
    if answers.dtype == np.bool_ and not isinstance(answers, np.ma.MaskedArray):
        return answers
    unsure = unsure_rows(answers)
    p = np.ma.filled(answers.astype(np.float64), 0.5)
    ties["broken"] += len(unsure)
    if p.ndim == 1:
        return np.asarray((p > 0.5) | ((p == 0.5) & (questions[:, 1] < questions[:, 2])))
    chosen = p > 0.5
    first = np.argmin(questions[unsure, 1:], axis=1)
    chosen[unsure] = np.arange(questions.shape[1] - 1) == first[:, None]
    return chosen


class Repeatable(_Strategy[T]):
    """A strategy that knows how it was made, so that a journal can refuse answers of another run.

    It runs up to its first question at once: wrong arguments are refused by the call.
    """

    def __init__(self, make: Callable[..., Strategy[T]], *args: Any, **options: Any) -> None:
        bound = inspect.signature(make).bind(*args, **options)
        bound.apply_defaults()
        self._make, self._given = make, dict(bound.arguments)
        self.method: str = make.__name__
        self.random_state: Any = self._given.get(_SEED)
        strategy = make(*args, **options)
        super().__init__(strategy, takes_uncertain=takes_uncertain(strategy))
        self._first: list[Questions] = []
        self._ended: StopIteration | None = None
        try:
            self._first.append(next(strategy))
        except StopIteration as ended:
            self._ended = ended

    def send(self, answers: Any) -> Questions:
        """Continue with answers; the first call gives the first questions."""
        if self._ended is not None:
            raise StopIteration(self._ended.value)
        return self._first.pop() if self._first else super().send(answers)

    @property
    def options(self) -> dict[str, Any]:
        """Every argument but the seed, as JSON that can be stored and compared."""
        return {name: describe(value) for name, value in self._given.items() if name != _SEED}

    def remade(self, **options: Any) -> Repeatable[T]:
        """The same strategy, made again with other values of some options of its function."""
        changed = {name: value for name, value in options.items() if name in self._given}
        return Repeatable(self._make, **(self._given | changed))


def repeatable(make: Callable[P, Strategy[T]]) -> Callable[P, Strategy[T]]:
    """Mark a function whose strategies store how they were made."""

    @wraps(make)
    def marked(*args: P.args, **options: P.kwargs) -> Strategy[T]:
        return Repeatable(make, *args, **options)

    return marked


def describe(value: Any) -> Any:
    """A value as JSON: equal values give equal JSON, in every process."""
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


class PricedAnswers(list[Any]):
    """Answers of one call, with their cost and the judge of each.

    An oracle may return this instead of a list.

    Parameters
    ----------
    answers
        One for each question of the call.
    cost
        What the call has cost; None if that is not known.
    by
        The judge of each answer, or a dictionary of votes by judge; None if there is only one.

    Examples
    --------
    >>> PricedAnswers([True, None], cost=0.002).cost
    0.002
    """

    def __init__(
        self, answers: Iterable[Any], *, cost: float | None = None, by: list[Any] | None = None
    ) -> None:
        super().__init__(checks.one("answers", answers, Iterable, "one for each question"))
        self.cost = cost
        self.by = checks.one("by", by, list | tuple | None, "a list, the judge of each answer")
        if by is not None and len(by) != len(self):
            raise InvalidInput(f"by names {len(by)} judges of {len(self)} answers; name one each")


class RoundAnswers:
    """The answers of one round, by row, as they arrive."""

    def __init__(self, questions: Questions) -> None:
        self.questions = questions
        self.known = np.zeros(len(questions), dtype=np.bool_)
        self._values = np.full(as_shape(questions), np.nan)

    def fill(self, rows: Questions, answers: Said) -> None:
        """Put in the answers of these rows."""
        self.known[rows] = True
        self._values[rows] = np.ma.filled(np.ma.asarray(answers).astype(np.float64), np.nan)

    def open_rows(self) -> tuple[Objects, Questions]:
        """The rows that have no answer yet, and their questions."""
        rows = np.flatnonzero(~self.known)
        return rows, self.questions[rows]

    def first(self, count: int | None = None) -> Said:
        """The answers of the first `count` rows, in the form used inside."""
        return as_answers(self._values[:count], self.questions[:count])


def as_shape(questions: Questions) -> tuple[int, ...]:
    """The shape of answers: one for each comparison, a row of them for each screen."""
    m, width = questions.shape
    return (m,) if width == 3 else (m, width - 1)


def as_answers(said: Any, questions: Questions) -> Said:
    """The answers of an oracle in the form used inside: plain booleans if they are certain.

    "Don't know" (None, NaN, masked) is masked; a number from 0 to 1 is the probability of a.
    """
    array = _as_array(said, as_shape(questions))
    masked = np.ma.getmaskarray(said) if isinstance(said, np.ma.MaskedArray) else np.False_
    if array.dtype == np.bool_ and not isinstance(said, np.ma.MaskedArray):
        return array
    if array.dtype.kind not in "bf":
        array = np.array([_as_number(x) for x in array.ravel().tolist()]).reshape(array.shape)
    p = array.astype(np.float64)
    unsure = masked | np.isnan(p)
    p[unsure] = 0.5
    if len(wrong := p[(p < 0) | (p > 1)]):
        rule = "a graded answer must be from 0.0 to 1.0, the probability that a is nearer"
        raise OracleError(f"an answer is {wrong[0]}: {rule}")
    data = p > 0 if ((p == 0) | (p == 1) | unsure).all() else p
    return np.ma.MaskedArray(data, mask=unsure) if unsure.any() else data


def partly_known(answers: Said, known: Answers) -> Said:
    """Answers with those that are not known masked."""
    if known.all():
        return answers
    mask = ~known if answers.ndim == 1 else np.repeat(~known[:, None], answers.shape[1], axis=1)
    return np.ma.MaskedArray(answers, mask=mask)


def _as_array(said: Any, shape: tuple[int, ...]) -> Said:
    """One element for each comparison, one row for each screen; None stands for a whole row."""
    if len(shape) == 2 and isinstance(said, Sequence) and any(row is None for row in said):
        said = [[None] * shape[1] if row is None else list(row) for row in said]
    try:
        array = np.asarray(said)
    except ValueError:  # rows of different lengths
        array = np.array([*said, None], dtype=object)[:-1]
    if array.shape != shape:
        rule = f"it must return one answer for each, a list or an array of shape {shape}"
        returned = f"{said!r:.80}, of shape {array.shape} for {shape[0]} questions"
        raise OracleError(f"the oracle returned {returned}: {rule}")
    return array


def _as_number(answer: Any) -> float:
    """One answer as a number, NaN for don't know."""
    if answer is None or answer is np.ma.masked:
        return np.nan
    if isinstance(answer, bool | np.bool_ | float | np.floating):
        return float(answer)
    rule = "answers are booleans, True where a is nearer (of 0 and 1 take .astype(bool))"
    also = "None for don't know, or the probability that a is nearer, such as 0.8"
    raise OracleError(f"an answer is {answer!r}: {rule}; {also}")


@dataclass(frozen=True)
class Shown:
    """A question as it is shown: a and b are exchanged if `swapped`."""

    head: Any
    first: Any
    second: Any
    swapped: bool = False

    def answer(self, first: float) -> float | bool:
        """The answer about a, from the probability of the option that was shown first."""
        about_a = 1.0 - first if self.swapped else float(first)
        return bool(about_a) if about_a in (0.0, 1.0) else about_a


class OptionOrder:
    """Draws which object is shown first, so that a preferred position adds noise, not bias."""

    def __init__(self, seed: int = 0) -> None:
        self._seed = checks.whole("random_state", seed, least=0)
        self._times: dict[str, int] = {}

    def restart(self) -> None:
        """Draw from the beginning, as for questions that were not asked yet."""
        self._times.clear()

    def show(self, question: Sequence[Any]) -> Shown:
        """A question with its two options in the order drawn for it."""
        if len(question) != 3:
            rule = "this judge is asked about a head and two others"
            raise InvalidInput(f"a question of {len(question)} objects: {rule}")
        head, a, b = question
        key = repr((str(head), *sorted((str(a), str(b)))))
        times = self._times[key] = self._times.get(key, -1) + 1
        drawn = hashlib.blake2b(f"{self._seed} {times} {key}".encode(), digest_size=1).digest()[0]
        swapped = bool(drawn & 1) ^ (str(a) > str(b))
        return Shown(head, b, a, True) if swapped else Shown(head, a, b)


class Record:
    """Every answer of a run as triplets, and the two costs: comparisons (rows) and rounds.

    Parameters
    ----------
    keep
        False: the costs only. Triplets take 12 bytes each while they are collected.

    Examples
    --------
    >>> record = Record()
    >>> record.add(np.array([[0, 1, 2]]), np.array([False]))
    >>> record.triplets, record.n_rounds
    (array([[0, 2, 1]]), 1)
    """

    def __init__(self, *, keep: bool = True) -> None:
        self._keep = checks.flag("keep", keep)
        self._rounds: list[tuple[NDArray[np.int32], Floats | None]] = []  # None: certain answers
        self.n_comparisons: int = 0
        self.n_rounds: int = 0

    def add(self, questions: Questions, answers: Said) -> None:
        """Record one answered round; an empty one costs nothing and is not recorded."""
        questions = checks.one_round(questions)
        if not len(answers := as_answers(answers, questions)):
            return
        self.n_comparisons += len(questions)
        self.n_rounds += 1
        if not self._keep:
            return
        rows, weights = answered(questions, answers), None
        if answers.dtype != np.bool_ or isinstance(answers, np.ma.MaskedArray):
            rows, weights = weighted(questions, answers)
        self._rounds.append((rows.astype(np.int32), weights))

    @property
    def triplets(self) -> Objects:
        """All answers so far as ``(head, near, far)``, in the order in which they came."""
        rows, weights = self.weighted
        return rows if weights is None else rows[weights > 0.5]

    @property
    def weighted(self) -> tuple[Objects, Floats | None]:
        """The same, with weights for uncertain answers, see `nearer.questions.weighted`."""
        rows = np.concatenate([np.empty((0, 3), np.int32), *(rows for rows, _ in self._rounds)])
        weights = None
        if any(some is not None for _, some in self._rounds):
            weights = np.concatenate(
                [np.ones(len(rows)) if some is None else some for rows, some in self._rounds]
            )
        return rows.astype(np.int64), weights
