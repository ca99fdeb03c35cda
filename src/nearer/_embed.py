"""`nearer.embed` asks an oracle; its defaults suit exact and noisy answers."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from nearer import checks
from nearer.algorithms.adaptive import Expected, adaptive
from nearer.algorithms.plan import expected_cost
from nearer.asking.progress import asking_progress
from nearer.asking.protocol import Oracle
from nearer.asking.run import Dispatch, Names, as_names, refuse_unknown, run
from nearer.checks import amount, as_called, money
from nearer.embedding import Embedding, warn_of_chance
from nearer.errors import AnswersWarning, InvalidInput
from nearer.questions import random_questions

_DIMENSIONS = (2, 8)  # for which the expected costs are shown before the first question


def embed(
    oracle: Oracle | Callable[..., Any],
    objects: Any,
    *,
    budget: int | None = None,
    noise: Expected = "auto",
    quality: float = 0.99,
    random_state: int | np.random.Generator | None = None,
    journal: str | os.PathLike[str] | None = None,
    keep_triplets: bool = True,
    progress: bool | Callable[..., object] = True,
    **how: Unpack[Dispatch],
) -> Embedding:
    """Find the dimension and the positions of objects by asking an oracle.

    Parameters
    ----------
    oracle
        Any callable from ``(m, 3)`` questions to ``(m,)`` booleans, also an ``async def``; None
        for "I don't know".
    objects
        How many objects there are, at least 3; or the objects: a list of names, texts or paths,
        a pandas column. The oracle then gets a list of tuples ``(head, a, b)`` of them.
    budget
        The largest number of comparisons. None: as many as `quality` needs, at most
        2·(d + 1)·n·log2 n / C in d ≤ 7 dimensions, with C the bits that an answer carries.
    noise
        The rate below ½ at which the estimate of the share of wrong answers begins.
    quality
        The run stops when the expected Kendall's τ between predicted and true distances from a head
        reaches this, or when the budget is spent; with 1, only when it is spent.
    random_state
        Seed or generator.
    journal
        A file in which every answer is stored as it comes. After an interruption the same call
        continues where it stopped and gives the uninterrupted result.
    keep_triplets
        False: the result has no ``triplets``, which take 24 bytes for each comparison.
    progress
        True: a terminal shows the expected costs, then a line that counts them. A callable gets the
        counts whenever answers have come. False: nothing is shown.
    how
        How the oracle is called: ``workers=16``, ``max_in_flight=``, ``retry=``, ``timeout=``,
        ``cost=``, ``max_cost=`` and the others of `nearer.run`.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> oracle = nearer.PointOracle(np.random.default_rng(0).normal(size=(60, 2)))
    >>> nearer.embed(oracle, 60, random_state=0, progress=False).dimension
    2
    """
    checks.oracle(oracle)
    rule = "a function of the counts, True or False"
    checks.one("progress", progress, bool | Callable | None, rule)
    refuse_unknown(how, embed)
    n, names = as_names(objects)
    asked: dict[str, Any] = {"budget": budget, "noise": noise, "quality": quality}
    places = ("oracle", str(n) if names is None else "objects")
    typed, defaults = asked | {"random_state": random_state}, embed.__kwdefaults__ or {}
    call = as_called("nearer.embed", *places, given=typed, defaults=defaults)
    known = getattr(oracle, "n_objects", None)
    if known is not None and n > known:
        raise InvalidInput(f"{n} objects: the oracle knows only {known}; ask for at most that many")
    strategy = adaptive(n, **asked, keep_triplets=keep_triplets, random_state=random_state)
    line: AbstractContextManager[Any] = nullcontext(progress or None)
    if progress is True:
        line = asking_progress("asking", _expected(oracle, n, names, asked, how))
    with line as count:
        things = None if names is None else names.objects
        embedding = run(strategy, oracle, objects=things, journal=journal, progress=count, **how)
    positions = embedding.positions.copy()
    never = np.asarray(embedding.details.get("never_asked", []), dtype=np.int64)
    positions[never] = np.nan
    _warn(embedding, len(never))
    triplets = embedding.triplets if keep_triplets else embedding.triplets[:0].copy()
    details = embedding.details | {"call": call}
    return replace(embedding, positions=positions, triplets=triplets, details=details)


def _expected(
    oracle: Any, n: int, names: Names | None, asked: Mapping[str, Any], how: Dispatch
) -> str:
    """The expected numbers of questions, rounds and calls, and the money, as text."""
    least = 0.0 if asked["noise"] == "auto" else asked["noise"]
    most = max(least, 0.1 if getattr(oracle, "expects_noise", False) else 0.0)
    fixed = {"quality": asked["quality"], "budget": asked["budget"]}
    cases = zip(_DIMENSIONS, (least, most), strict=True)
    few, many = (expected_cost(n, min(d, n - 1), noise=wrong, **fixed) for d, wrong in cases)
    comparisons, rounds = zip(few, many, strict=True)
    text = f"expected: about {_span(*comparisons)} comparisons in {_span(*rounds)} rounds"
    size = how.get("block_size") or getattr(oracle, "block_size", 0)
    if size:
        text += f", {_span(*(-(-m // size) for m in comparisons))} calls"
    if (cost := how.get("cost") or getattr(oracle, "expected_cost", None)) is not None:
        block = random_questions(n, size or 1, np.random.default_rng(0))
        price = cost(block if names is None else names.tuples(block)) / len(block)
        costs = _span(*(price * m for m in comparisons), form=money)
        text += f", at a cost of {costs}" if price else ""  # unknown without a model's price=
    if few == many:
        return text
    text += ", if the objects differ in {} to {} dimensions".format(*_DIMENSIONS)
    share = f"{100 * most:g} % of the answers are" if most else "no answer is"
    return f"{text} and {'up to ' * (most > least)}{share} wrong"


def _span(low: float, high: float, *, form: Callable[[float], str] = "{:,.0f}".format) -> str:
    return form(low) + (f" to {form(high)}" if low < high else "")


def _warn(embedding: Embedding, n_never: int) -> None:
    """Warn if positions are unknown: no question, no decided answer, or objects never asked."""
    problems = []
    if not embedding.n_comparisons:
        what = "no question was asked, so no object has a position (NaN)"
        problems.append(f"{what} and nothing is determined; raise budget=")
    elif embedding.details.get("n_decided") == 0:
        what = f"{amount(embedding.n_comparisons, 'answer')}, and none says which object is nearer"
        problems.append(f"{what}: the result is chance alone; look at what the oracle returns")
    else:
        warn_of_chance(embedding, stacklevel=4)
    if embedding.n_comparisons and n_never:
        what = f"{amount(n_never, 'object')} of {len(embedding.positions):,} were in no question"
        why = "since the budget did not reach them, and have no position (NaN)"
        problems.append(f"{what}, {why}, see embedding.never_asked")
    for problem in problems:
        warnings.warn(problem, AnswersWarning, stacklevel=3)
