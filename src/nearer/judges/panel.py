"""A panel of judges: models, prompts or people, each question answered by some of them.

docs/judges.md shows one. Judges are rated as people are (`nearer.fitting.people`). A judge of
reliability r, at most 1 here, has weight r: a vote counts as a graded answer of (1 + r)/2.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearer import checks
from nearer.asking.protocol import PricedAnswers, as_answers
from nearer.asking.run import DaemonThreads, is_async
from nearer.errors import InvalidInput
from nearer.fitting.belief import Belief
from nearer.fitting.people import rate_people
from nearer.questions import answered

_FEWEST_VOTES = 200  # with fewer, ratings hardly differ from the prior
_GROWTH = 1.5  # of the number of votes between two ratings


@dataclass(frozen=True)
class PanelReport:
    """The votes and the reliability of the judges of a panel.

    Attributes
    ----------
    votes
        How many each judge has given.
    reliability
        1 for the average judge, 0 for guesses, negative for contradictions; empty before there
        are enough votes.
    errors
        Standard error of each.
    reports
        The report of each judge that has one.
    """

    votes: dict[str, int]
    reliability: dict[str, float]
    errors: dict[str, float]
    reports: dict[str, Any]


class Panel:
    """Several judges as one oracle, rated as they answer.

    Parameters
    ----------
    judges
        Oracles by name; a list is named by number. Async ones and others.
    votes
        How many of them answer each question. Their answers make one graded answer.
    random_state
        Seed of the choice of judges.

    Examples
    --------
    >>> import nearer, numpy as np
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> exact = nearer.judges.from_similarity(lambda i, j: -((X[i] - X[j]) ** 2).sum(axis=1))
    >>> guess = lambda questions: np.random.default_rng(questions.sum()).random(len(questions)) < .5
    >>> panel = nearer.judges.Panel({"good": exact, "bad": guess})
    >>> embedding = nearer.embed(panel, 20, budget=600, random_state=0, progress=False)
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
        checks.one("judges", judges, Mapping | Sequence, "judges by name, or a list of judges")
        named = judges if isinstance(judges, Mapping) else dict(enumerate(judges))
        self._judges = {str(name): checks.oracle(judge) for name, judge in named.items()}
        if not self._judges:
            raise InvalidInput("judges is empty: a panel needs at least one")
        self._votes = checks.whole("votes", votes, most=len(self._judges))
        self._seed = checks.whole("random_state", random_state, least=0)
        self.block_size: int = max(getattr(j, "block_size", 1) for j in self._judges.values())
        self._times: dict[str, int] = {}
        self._numbers: dict[Any, int] = {}
        self._log: list[tuple[int, int, int, str, float]] = []
        self._reliability: dict[str, float] = {}
        self._errors: dict[str, float] = {}
        self._rated_at = 0
        self._rating = asyncio.Lock()

    @property
    def about(self) -> dict[str, Any]:
        """The identity of the judges; a journal of others is refused."""
        return {
            "judges": {name: getattr(judge, "about", {}) for name, judge in self._judges.items()},
            "votes": self._votes,
        }

    def resume(
        self, answered: Iterable[tuple[tuple[Any, ...], Any, Any]], calls: int, cost: float
    ) -> None:
        """Take over the votes in a journal; `nearer.run` calls this before it asks."""
        self._times, self._log, self._rated_at = {}, [], 0
        for question, _, ballot in answered:
            self._chosen(question)
            self._note([question], [ballot or {}])

    def report(self) -> PanelReport:
        """How often each judge has voted, and how reliable it is."""
        if len(self._log) >= _FEWEST_VOTES:
            self._rate()
        votes = dict.fromkeys(self._judges, 0) | Counter(name for *_, name, _ in self._log)
        reports = {name: j.report() for name, j in self._judges.items() if hasattr(j, "report")}
        return PanelReport(votes, self._reliability, self._errors, reports)

    async def __call__(self, questions: Any) -> PricedAnswers:
        """Ask some of the judges about each question, all of them at the same time."""
        numbered = isinstance(questions, np.ndarray)
        keys = [tuple(row) for row in (questions.tolist() if numbered else questions)]
        asked: dict[str, list[int]] = {}
        for i, key in enumerate(keys):
            for name in self._chosen(key):
                asked.setdefault(name, []).append(i)
        calls: list[Awaitable[Any]] = []
        for name, rows in asked.items():
            part = questions[rows] if numbered else [questions[i] for i in rows]
            judge = self._judges[name]
            of_thread = None if is_async(judge) else DaemonThreads().submit(judge, part)
            calls.append(asyncio.wrap_future(of_thread) if of_thread else judge(part))
        replies = await asyncio.gather(*calls)
        ballots: list[dict[str, float | None]] = [{} for _ in keys]
        cost = 0.0
        for (name, rows), reply in zip(asked.items(), replies, strict=True):
            cost += checks.not_negative("cost", getattr(reply, "cost", None) or 0.0)
            said = as_answers(reply, np.empty((len(rows), 3), dtype=np.int64))
            votes = np.ma.asarray(said).astype(np.float64).tolist()  # None for don't know
            for i, vote in zip(rows, votes, strict=True):
                ballots[i][name] = vote
        self._note(keys, ballots)
        answers = [self._together(ballot) for ballot in ballots]
        await self._rate_if_due()
        return PricedAnswers(answers, cost=cost, by=list(ballots))

    async def aclose(self) -> None:
        """Close the connections of the judges."""
        for judge in self._judges.values():
            if hasattr(judge, "aclose"):
                await judge.aclose()

    def _chosen(self, key: tuple[Any, ...]) -> list[str]:
        """The judges of this question: the next in an order that is drawn for it."""
        fact = repr((str(key[0]), *sorted(map(str, key[1:]))))
        start = self._times.get(fact, 0)
        self._times[fact] = start + self._votes

        lots = {name: f"{self._seed} {fact} {name}".encode() for name in self._judges}
        order = sorted(lots, key=lambda name: hashlib.blake2b(lots[name]).digest())
        return [order[(start + i) % len(order)] for i in range(self._votes)]

    def _together(self, ballot: dict[str, float | None]) -> float | bool | None:
        """One answer from several: their mean, weighted by reliability."""
        said = {name: p for name, p in ballot.items() if p is not None}
        weight = {name: min(1.0, max(0.0, self._reliability.get(name, 1.0))) for name in said}
        if not any(weight.values()):
            return None
        mean = sum(weight[name] * said[name] for name in said) / sum(weight.values())
        p = 0.5 + max(weight.values()) * (mean - 0.5)
        return bool(p) if p in (0.0, 1.0) else p

    def _note(self, keys: list[tuple[Any, ...]], ballots: list[dict[str, float | None]]) -> None:
        for key, ballot in zip(keys, ballots, strict=True):
            head, a, b = (self._numbers.setdefault(thing, len(self._numbers)) for thing in key)
            self._log += [(head, a, b, name, p) for name, p in ballot.items() if p is not None]

    async def _rate_if_due(self) -> None:
        due = len(self._log) >= max(_FEWEST_VOTES, _GROWTH * self._rated_at)
        if due and not self._rating.locked():
            async with self._rating:
                await asyncio.to_thread(self._rate)

    def _rate(self) -> None:
        log = list(self._log)
        if len(log) == self._rated_at:
            return
        rows = np.array([row[:3] for row in log], dtype=np.int64)
        belief = Belief(int(rows.max()) + 1, None, np.random.default_rng(self._seed))
        belief.learn(answered(rows, np.array([p for *_, p in log])))
        if belief.held_out is not None:
            names, who = np.unique([name for *_, name, _ in log], return_inverse=True)
            rated = rate_people(belief.answers, belief.held_out, who, np.ones(len(log)))
            self._reliability = dict(zip(names.tolist(), rated.sensitivity.tolist(), strict=True))
            self._errors = dict(zip(names.tolist(), rated.error.tolist(), strict=True))
        self._rated_at = len(log)
