"""A strategy and an oracle, put together."""

from __future__ import annotations

import os
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import is_dataclass, replace
from inspect import signature
from typing import Any, TypedDict, TypeVar, Unpack

import numpy as np

import nearer
from nearer import checks
from nearer.asking.costs import Costs
from nearer.asking.journal import Journal
from nearer.asking.memory import Memory
from nearer.asking.names import Names, as_names
from nearer.asking.protocol import (
    Oracle,
    Strategy,
    Ties,
    forced_choice,
    limited,
    remembered,
    takes_uncertain,
    wrapped,
)
from nearer.asking.recipe import Repeatable
from nearer.asking.rounds import Patience, Rounds
from nearer.asking.workers import Here, crew_for
from nearer.errors import AnswersWarning, InvalidInput
from nearer.questions import Answers, Questions

__all__ = ["Dispatch", "begun", "refuse_unknown", "run"]

T = TypeVar("T")


class Dispatch(TypedDict, total=False):
    """How questions are put: by how many, with what patience, for how much. See `nearer.run`."""

    workers: int | Executor | None
    max_in_flight: int | None
    block_size: int | None
    retry: type[BaseException] | tuple[type[BaseException], ...]
    retries: int
    pause: float
    timeout: float | None
    cost: Callable[[Any], float] | None
    max_cost: float | None
    max_calls: int | None


def refuse_unknown(how: Mapping[str, Any], door: Callable[..., Any]) -> None:
    """Refuse what is no option of a function that takes those of `Dispatch` and its own."""
    own = [p.name for p in signature(door).parameters.values() if p.kind is p.KEYWORD_ONLY]
    if unknown := sorted(set(how) - set(Dispatch.__annotations__)):
        raise InvalidInput(
            f"{unknown[0]}={how[unknown[0]]!r}: there is no such option; there are "
            f"{', '.join([*own, *Dispatch.__annotations__])}"
        )


def run(
    strategy: Strategy[T],
    oracle: Oracle | Callable[..., Any],
    *,
    objects: Sequence[Any] | None = None,
    budget: int | None = None,
    memory: Memory | None = None,
    journal: str | os.PathLike[str] | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Callable[..., object] | None = None,
    **how: Unpack[Dispatch],
) -> T:
    """Answer every question of a strategy with an oracle and return its result.

    Parameters
    ----------
    strategy
        A generator of questions, such as `nearer.choose_basis` or `nearer.rank_objects` makes.
    oracle
        Any callable from ``(m, 3)`` questions to ``(m,)`` booleans, also an ``async def``. None,
        NaN or `nearer.UNSURE` in place of a boolean is "don't know"; a number from 0.0 to 1.0 is
        a graded answer. A strategy that needs to know puts such a question again; what stays open
        goes to the object of the lower number, with a warning.
    objects
        What the objects are: names, texts, paths. The oracle then gets a list of tuples
        ``(head, a, b)`` of them.
    budget
        How many comparisons may be put to the oracle. An algorithm that runs out returns its
        best so far, or `nearer.errors.BudgetSpent` is raised where it has nothing.
    memory
        Answers that need not be asked again. New answers are added as they come, so that after
        an interruption the same call with the same memory goes on where it stopped.
    journal
        A file in which every answer is kept as it comes. After an interruption the same call goes
        on where it stopped, pays for nothing twice, and gives the uninterrupted result.
    about
        What else makes this run this one: a journal that was begun with something else is
        refused. Words and numbers.
    progress
        Called whenever answers have come, with the number of comparisons and of rounds so far;
        where calls cost anything or are limited, also with the money spent and the calls made.
    workers
        So many threads put questions at the same time; or a `concurrent.futures.Executor`.
    max_in_flight
        How many calls may be under way at once; 16 for async oracles and executors.
    block_size
        How many questions go out in one call. None: one where calls are made side by side, the
        whole round otherwise.
    retry, retries, pause
        Exceptions after which a call is made again, how often (5), and the seconds before the
        first time (1); each further pause is twice as long.
    timeout
        Seconds that one call may take before it is given up and made again.
    cost, max_cost
        A function from the questions of a call to its price, and what may be spent in all. Out of
        money, an algorithm returns its best so far. What a journal says was spent counts.
    max_calls
        How many calls may be made in all, retries included.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.array([[0.0], [3.0], [1.0], [7.0]]))
    >>> nearer.run(nearer.rank_objects(0, 4), oracle)
    array([0, 2, 1, 3])
    >>> longer = lambda questions: [abs(len(h) - len(a)) < abs(len(h) - len(b))
    ...                             for h, a, b in questions]
    >>> nearer.run(nearer.rank_objects(0, 3), longer, objects=["ox", "beaver", "cat"])
    array([0, 2, 1])
    """
    checks.oracle(oracle)
    refuse_unknown(how, run)
    if progress is not None and not callable(progress):
        raise InvalidInput(
            f"progress={progress!r}: must be a function of the comparisons and rounds so far; "
            "nearer.embed also takes True and False"
        )
    if journal is not None and not isinstance(journal, str | os.PathLike):
        raise InvalidInput(f"journal={journal!r}: must be the path of a file, such as answers.db")
    if journal is not None and memory is not None:
        raise InvalidInput("memory= and journal= are both given: a journal remembers; give one")
    names = None if objects is None else as_names(list(objects))[1]
    ties = Ties()
    with (
        begun(strategy, journal, names, _told_of(oracle, about, budget)) as (made, book),
        _rounds(oracle, names, book, progress, how) as rounds,
    ):
        result = _driven(_sheltered(made, ties, memory, budget), rounds)
    if ties.n_broken:
        warnings.warn(str(ties), AnswersWarning, stacklevel=2)
    return _finished(result, names, rounds, ties, oracle)


def _sheltered(
    strategy: Strategy[T], ties: Ties, memory: Memory | None, budget: int | None
) -> Strategy[T]:
    """What an algorithm should not know about, wrapped around it."""
    if not takes_uncertain(strategy):
        strategy = forced_choice(strategy, ties)
    if memory is not None:
        strategy = remembered(strategy, memory)
    return strategy if budget is None else limited(strategy, budget)


def _told_of(oracle: Any, about: Mapping[str, Any] | None, budget: int | None) -> dict[str, Any]:
    """What a journal keeps of a run beside the strategy and the objects."""
    limit = {} if budget is None else {"run(budget=)": checks.budget(budget)}
    return {**getattr(oracle, "about", {}), **(about or {}), **limit}


@contextmanager
def begun(
    strategy: Strategy[T],
    path: str | os.PathLike[str] | None,
    names: Names | None,
    about: dict[str, Any],
) -> Iterator[tuple[Strategy[T], Journal | None]]:
    """The strategy made from the journal's seed, and the journal, begun or taken up."""
    if path is None:
        yield strategy, None
        return
    told: dict[str, Any] = {"version": nearer.__version__, **about}
    if names is not None:
        told["objects"] = names.digest
    seed = None
    if isinstance(strategy, Repeatable):
        told |= {"method": strategy.method, **strategy.options}
        seed = strategy.random_state
        if seed is not None and not isinstance(seed, int | np.integer):
            raise InvalidInput(
                f"random_state is a {type(seed).__name__}: a journal must be able to begin again, "
                "so it takes a whole number, or None to draw one"
            )
        told |= {} if seed is None else {"seed": int(seed)}
    else:
        told["method"] = getattr(strategy, "__name__", type(strategy).__name__)
    drawn = {"seed": secrets.randbits(32)} if isinstance(strategy, Repeatable) else {}
    with closing(Journal(path, {**drawn, **told}, names.objects if names else ())) as book:
        book.check(told)
        if isinstance(strategy, Repeatable) and book.seed is not None:
            strategy = strategy.seeded(book.seed)
        try:
            yield strategy, book
        except (Exception, KeyboardInterrupt) as error:
            if len(book):
                error.add_note(
                    f"{len(book):,} answers are kept in {book.path}; the same call goes on"
                )
            raise


@contextmanager
def _rounds(
    oracle: Callable[..., Any],
    names: Names | None,
    book: Journal | None,
    progress: Callable[..., object] | None,
    how: Dispatch,
) -> Iterator[Rounds]:
    patience = Patience(
        how.get("retry", ()),  # type: ignore[arg-type]
        checks.whole("retries", how.get("retries", Patience.retries), least=0),
        how.get("pause", Patience.pause),
        how.get("timeout"),
    )
    costs = Costs(
        how.get("cost"),
        how.get("max_cost"),
        how.get("max_calls"),
        spent=0.0 if book is None else book.spent,
        calls=0 if book is None else book.calls,
    )
    by_number = hasattr(oracle, "n_objects")
    with closing(
        crew_for(oracle, how.get("workers"), how.get("max_in_flight"), patience.timeout)
    ) as crew:
        yield Rounds(
            crew,
            names=None if by_number else names,
            block_size=_block_size(oracle, how.get("block_size"), isinstance(crew, Here)),
            journal=book,
            costs=costs,
            patience=patience,
            progress=progress,
        )


def _block_size(oracle: Any, asked: int | None, alone: bool) -> int | None:
    size = asked if asked is not None else getattr(oracle, "block_size", None)
    if size is not None:
        return checks.whole("block_size", size)
    return None if alone else 1


def _driven(strategy: Strategy[T], rounds: Rounds) -> T:
    def answer(questions: Questions) -> Strategy[Answers]:
        yield from ()  # a strategy that asks nobody else
        return rounds.put(questions)

    try:
        next(wrapped(strategy, answer))
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a round was left unanswered")


def _finished(result: T, names: Names | None, rounds: Rounds, ties: Ties, oracle: Any) -> T:
    """The result with the objects' names, the doubt there was, and what the oracle reports."""
    if not is_dataclass(result) or not isinstance(getattr(result, "details", None), dict):
        return result
    details = dict(result.details)  # type: ignore[union-attr]
    if rounds.n_unsure:
        details["n_unsure"] = rounds.n_unsure
    if ties.n_broken:
        details["n_ties_broken"] = ties.n_broken
    if callable(getattr(oracle, "report", None)):
        details["judge"] = oracle.report()
    known = {} if names is None else {"names": names.objects}
    return replace(result, details=details, **known)  # type: ignore[type-var]
