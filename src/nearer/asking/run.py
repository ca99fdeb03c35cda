"""Run a strategy with an oracle."""

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
from nearer.asking.dispatch import Costs, Dispatcher, Retries, Workers
from nearer.asking.journal import Journal
from nearer.asking.memory import Memory
from nearer.asking.names import Names, as_names
from nearer.asking.protocol import (
    Oracle,
    Repeatable,
    Strategy,
    Ties,
    forced_choice,
    limited,
    remembered,
    takes_uncertain,
    wrapped,
)
from nearer.errors import AnswersWarning, InvalidInput
from nearer.questions import Answers, Questions

__all__ = ["Dispatch", "open_journal", "refuse_unknown", "run"]

T = TypeVar("T")


class Dispatch(TypedDict, total=False):
    """Options of `nearer.run` about how the oracle is called."""

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
    """Refuse options that neither `Dispatch` nor the function itself has."""
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
        A file in which every answer is kept as it arrives. After an interruption the same call
        goes on where it stopped, pays for nothing twice, and gives the uninterrupted result.
    about
        What else identifies the run, in words and numbers: a journal that was begun with other
        values is refused.
    progress
        Called whenever answers have arrived, with the number of comparisons and of rounds so far;
        where calls cost anything or are limited, also with the money spent and the calls made.
    workers
        How many threads call the oracle at the same time; or a `concurrent.futures.Executor`.
    max_in_flight
        How many calls may be in flight at once; 16 for async oracles and executors.
    block_size
        How many questions go into one call. None: one if several calls are made at once, the
        whole round otherwise.
    retry, retries, pause
        Exceptions after which a call is made again, how often (5), and the seconds before the
        first time (1); each further pause is twice as long.
    timeout
        Seconds that one call may take before it is abandoned and made again.
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
    limit = {} if budget is None else {"run(budget=)": checks.budget(budget)}
    run_about = {**getattr(oracle, "about", {}), **(about or {}), **limit}
    ties = Ties()
    with (
        open_journal(strategy, journal, names, run_about) as (made, book),
        _dispatcher(oracle, names, book, progress, how) as dispatcher,
    ):
        inner = made if takes_uncertain(made) else forced_choice(made, ties)
        if memory is not None:
            inner = remembered(inner, memory)
        if budget is not None:
            inner = limited(inner, budget)
        result = _drive(inner, dispatcher)
    if ties.n_broken:
        warnings.warn(str(ties), AnswersWarning, stacklevel=2)
    return _with_details(result, names, dispatcher, ties, oracle)


@contextmanager
def open_journal(
    strategy: Strategy[T],
    path: str | os.PathLike[str] | None,
    names: Names | None,
    about: dict[str, Any],
) -> Iterator[tuple[Strategy[T], Journal | None]]:
    """The strategy, made from the journal's seed, and the journal, new or continued."""
    if path is None:
        yield strategy, None
        return
    run: dict[str, Any] = {"version": nearer.__version__, **about}
    if names is not None:
        run["objects"] = names.digest
    drawn: dict[str, Any] = {}
    if isinstance(strategy, Repeatable):
        run |= {"method": strategy.method, **strategy.options}
        seed = strategy.random_state
        if seed is None:
            drawn = {"seed": secrets.randbits(32)}
        elif isinstance(seed, int | np.integer):
            run["seed"] = int(seed)
        else:
            raise InvalidInput(
                f"random_state is a {type(seed).__name__}: a journal must be able to begin again, "
                "so it takes a whole number, or None to draw one"
            )
    else:
        run["method"] = getattr(strategy, "__name__", type(strategy).__name__)
    with closing(Journal(path, {**drawn, **run}, names.objects if names else ())) as journal:
        journal.check(run)
        if isinstance(strategy, Repeatable) and journal.seed is not None:
            strategy = strategy.seeded(journal.seed)
        try:
            yield strategy, journal
        except (Exception, KeyboardInterrupt) as error:
            if len(journal):
                error.add_note(
                    f"{len(journal):,} answers are kept in {journal.path}; the same call goes on"
                )
            raise


@contextmanager
def _dispatcher(
    oracle: Callable[..., Any],
    names: Names | None,
    journal: Journal | None,
    progress: Callable[..., object] | None,
    how: Dispatch,
) -> Iterator[Dispatcher]:
    retries = Retries(
        how.get("retry", ()),  # type: ignore[arg-type]
        how.get("retries", Retries.retries),
        how.get("pause", Retries.pause),
        how.get("timeout"),
    )
    costs = Costs(
        how.get("cost"),
        how.get("max_cost"),
        how.get("max_calls"),
        spent=0.0 if journal is None else journal.spent,
        calls=0 if journal is None else journal.calls,
    )
    by_number = hasattr(oracle, "n_objects")
    workers = Workers(oracle, how.get("workers"), how.get("max_in_flight"), retries.timeout)
    with closing(workers):
        size = how.get("block_size")
        if size is None:
            size = getattr(oracle, "block_size", None if workers.inline else 1)
        yield Dispatcher(
            workers,
            names=None if by_number else names,
            block_size=None if size is None else checks.whole("block_size", size),
            journal=journal,
            costs=costs,
            retries=retries,
            progress=progress,
        )


def _drive(strategy: Strategy[T], dispatcher: Dispatcher) -> T:
    def answer(questions: Questions) -> Strategy[Answers]:
        yield from ()  # the dispatcher has every question answered: none is passed on
        return dispatcher.answer(questions)

    try:
        next(wrapped(strategy, answer))
    except StopIteration as done:
        result: T = done.value
        return result
    raise AssertionError("a round was left unanswered")


def _with_details(
    result: T, names: Names | None, dispatcher: Dispatcher, ties: Ties, oracle: Any
) -> T:
    """The result with the names of objects, the number of uncertain answers, the judge's report."""
    if not is_dataclass(result) or not isinstance(getattr(result, "details", None), dict):
        return result
    details = dict(result.details)  # type: ignore[union-attr]
    if dispatcher.n_unsure:
        details["n_unsure"] = dispatcher.n_unsure
    if ties.n_broken:
        details["n_ties_broken"] = ties.n_broken
    if callable(getattr(oracle, "report", None)):
        details["judge"] = oracle.report()
    known = {} if names is None else {"names": names.objects}
    return replace(result, details=details, **known)  # type: ignore[type-var]
