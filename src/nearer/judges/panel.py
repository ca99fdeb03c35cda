"""Several judges: models, prompts or people, each question put to some of them.

Who is asked is drawn for each question; one that comes again goes to somebody who has not answered
it yet. How far each judge can be believed is rated as people are (`nearer.fitting.reliability`): by
how well its answers agree with a fit that has not seen them. A judge of reliability r counts r, at
most 1 here: of a single vote, (1 + r)/2 goes to the side it took. Ratings are made anew whenever
there are half as many votes more.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearer import checks
from nearer.asking.answers import PricedAnswers
from nearer.asking.dispatch import is_async
from nearer.errors import InvalidInput
from nearer.fitting.belief import Belief

__all__ = ["Panel", "PanelReport"]

_ENOUGH = 200  # votes before anybody is rated: with fewer, ratings are hardly more than the prior
_GROWTH = 1.5  # as the belief itself is reviewed


@dataclass(frozen=True)
class PanelReport:
    """What the judges of a panel have done.

    Attributes
    ----------
    votes
        How many each has given.
    reliability
        1 for the average judge, 0 for one who guesses, negative for one who contradicts; empty
        before there are enough votes.
    errors
        Standard error of each.
    reports
        What each says of itself, where it does.
    """

    votes: dict[str, int]
    reliability: dict[str, float]
    errors: dict[str, float]
    reports: dict[str, Any]


class Panel:
    """Several judges as one oracle, rated as they go.

    Parameters
    ----------
    judges
        Oracles by name; a list is named by number. Async ones and others.
    votes
        How many of them are put each question. Their answers make one graded answer.
    random_state
        Seed of who is asked.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> exact = nearer.judges.from_similarity(lambda i, j: -((X[i] - X[j]) ** 2).sum(axis=1))
    >>> guess = lambda questions: np.random.default_rng(questions.sum()).random(len(questions)) < .5
    >>> panel = nearer.judges.Panel({"good": exact, "bad": guess})
    >>> found = nearer.embed(panel, 20, budget=600, random_state=0, progress=False)
    >>> rated = panel.report().reliability
    >>> rated["good"] > 0.8 > 0.3 > rated["bad"]
    True
    """

    expects_noise = True

    def __init__(
        self,
        judges: Mapping[str, Callable[..., Any]] | Sequence[Callable[..., Any]],
        *,
        votes: int = 1,
        random_state: int = 0,
    ) -> None:
        named = judges if isinstance(judges, Mapping) else dict(enumerate(judges))
        self._judges = {str(name): checks.oracle(judge) for name, judge in named.items()}
        if not self._judges:
            raise InvalidInput("judges is empty: a panel needs at least one")
        self._votes = checks.whole("votes", votes, most=len(self._judges))
        self._seed = random_state
        self.block_size: int = max(
            getattr(judge, "block_size", 1) for judge in self._judges.values()
        )
        self._times: dict[str, int] = {}
        self._numbers: dict[Any, int] = {}
        self._log: list[tuple[int, int, int, str, float]] = []
        self._rated: dict[str, tuple[float, float]] = {}
        self._rated_at = 0
        self._rating = False

    @property
    def about(self) -> dict[str, Any]:
        """Who the judges are; a journal begun with others is refused."""
        return {
            "judges": {name: getattr(judge, "about", {}) for name, judge in self._judges.items()},
            "votes": self._votes,
        }

    def report(self) -> PanelReport:
        """Who has voted how often, and how far each can be believed."""
        if len(self._log) >= _ENOUGH:
            self._rate()
        votes = dict.fromkeys(self._judges, 0)
        for *_, name, _ in self._log:
            votes[name] += 1
        told = {
            name: judge.report()
            for name, judge in self._judges.items()
            if callable(getattr(judge, "report", None))
        }
        return PanelReport(
            votes,
            {name: rating for name, (rating, _) in self._rated.items()},
            {name: error for name, (_, error) in self._rated.items()},
            told,
        )

    async def __call__(self, questions: Any) -> PricedAnswers:
        """Put each question to some of the judges, all of them at the same time."""
        keys = [tuple(row) for row in (questions.tolist() if _is_array(questions) else questions)]
        asked: dict[str, list[int]] = {}
        for i, key in enumerate(keys):
            for name in self._chosen(key):
                asked.setdefault(name, []).append(i)
        replies = await asyncio.gather(
            *(self._put(name, _rows(questions, rows)) for name, rows in asked.items())
        )
        ballots: list[dict[str, float | None]] = [{} for _ in keys]
        cost = 0.0
        for (name, rows), reply in zip(asked.items(), replies, strict=True):
            cost += getattr(reply, "cost", None) or 0.0
            for i, answer in zip(rows, reply, strict=True):
                ballots[i][name] = _plain(answer)
        self._note(keys, ballots)
        answers = [self._together(ballot) for ballot in ballots]
        await self._rate_if_due()
        return PricedAnswers(answers, cost=cost, by=list(ballots))

    async def aclose(self) -> None:
        """Close whatever the judges hold."""
        for judge in self._judges.values():
            if hasattr(judge, "aclose"):
                await judge.aclose()

    def _chosen(self, key: tuple[Any, ...]) -> list[str]:
        """Who is put this question: in an order drawn for it, from where it was put last."""
        fact = repr((str(key[0]), *sorted(map(str, key[1:]))))
        start = self._times.get(fact, 0)
        self._times[fact] = start + self._votes

        def lot(name: str) -> bytes:
            return hashlib.blake2b(f"{self._seed} {fact} {name}".encode()).digest()

        order = sorted(self._judges, key=lot)
        return [order[(start + i) % len(order)] for i in range(self._votes)]

    async def _put(self, name: str, questions: Any) -> Any:
        judge = self._judges[name]
        if is_async(judge):
            return await judge(questions)
        return await asyncio.to_thread(judge, questions)

    def _together(self, ballot: dict[str, float | None]) -> float | bool | None:
        """One answer of several: their mean, each counted by how far it can be believed."""
        said = {name: p for name, p in ballot.items() if p is not None}
        trust = {name: min(1.0, max(0.0, self._rated.get(name, (1.0, 0.0))[0])) for name in said}
        if not said or not any(trust.values()):
            return None
        best = max(trust.values())
        p = sum(trust[name] * said[name] for name in said) / sum(trust.values())
        p = 0.5 + best * (p - 0.5)
        return bool(p) if p in (0.0, 1.0) else p

    def _note(self, keys: list[tuple[Any, ...]], ballots: list[dict[str, float | None]]) -> None:
        for key, ballot in zip(keys, ballots, strict=True):
            head, a, b = (self._numbers.setdefault(thing, len(self._numbers)) for thing in key)
            self._log += [(head, a, b, name, p) for name, p in ballot.items() if p is not None]

    async def _rate_if_due(self) -> None:
        due = len(self._log) >= max(_ENOUGH, _GROWTH * self._rated_at)
        if due and not self._rating:
            self._rating = True
            try:
                await asyncio.to_thread(self._rate)
            finally:
                self._rating = False

    def _rate(self) -> None:
        log = list(self._log)
        if len(log) == self._rated_at:
            return
        near = np.array([p > 0.5 for *_, p in log])
        rows = np.array([row[:3] for row in log], dtype=np.int64)
        triplets = np.where(near[:, None], rows, rows[:, [0, 2, 1]])
        belief = Belief(int(rows.max()) + 1, None, np.random.default_rng(self._seed))
        belief.learn(triplets, people=np.array([name for *_, name, _ in log]))
        if belief.reliability is not None:
            found = belief.reliability
            self._rated = {
                str(name): (float(r), float(error))
                for name, r, error in zip(
                    found.people, found.reliability, found.errors, strict=True
                )
            }
        self._rated_at = len(log)


def _is_array(questions: Any) -> bool:
    return isinstance(questions, np.ndarray)


def _rows(questions: Any, rows: list[int]) -> Any:
    return questions[rows] if _is_array(questions) else [questions[i] for i in rows]


def _plain(answer: Any) -> float | None:
    """A vote as a number, None for don't know."""
    if answer is None or answer is np.ma.masked or np.isnan(answer):
        return None
    return float(answer)
