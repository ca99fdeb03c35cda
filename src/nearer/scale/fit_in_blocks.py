"""Fits of very many answers in blocks, whether memory holds them or not: `nearer.fit` calls this.

The dimension is estimated from a sample of the answers. The fit starts in more dimensions with
some of the answers, reduces, and goes on with all answers but those held out
(`nearer.scale.stored`). The held-out answers say whether the answers are exact. If not, the curve
that fits them gives the rate of errors and the unit of distance; the prior is as wide as the
positions then are, since with many answers a coordinate it hardly matters. A last fit, from there,
includes the held-out answers.

Passes over answers on disk read block after block. Their sums are added in the order of the blocks,
so that a fit gives the same bits every time. All answers have the same weight.

A fit that is interrupted leaves the positions it has reached, and the next one continues from them
(`Checkpoint`).
"""

from __future__ import annotations

import hashlib
import io
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer import _fit
from nearer._dimension import SETTLED, DimensionEstimate, find_dimension, fit_exactly
from nearer._fit import Goal
from nearer.embedding import Embedding, HeldOutAccuracy, Phase
from nearer.errors import InvalidInput
from nearer.files import read_numpy, write_bytes
from nearer.fitting.belief import Belief
from nearer.fitting.descent import principal_axes
from nearer.fitting.device import as_array, gpu, wants_gpu
from nearer.fitting.dimension import is_exact
from nearer.fitting.heldout import as_noise, fit_curve
from nearer.fitting.losses import Floats, Loss
from nearer.fitting.posterior import Curve, MarginForecast, Noise, Posterior, moderate
from nearer.fitting.solver import Fit, Passes, disobeyed, fit_positions
from nearer.fitting.starts import ENOUGH, EXTRA, ROUGH, random_start
from nearer.metrics import share_interval
from nearer.scale.blocks import BlockSource, as_source
from nearer.scale.stored import Stored, store
from nearer.text import amount

__all__ = ["BlockPasses", "Checkpoint", "fit_many", "in_blocks", "lay_out"]

_MOST_DRAWN = 1 << 25  # answers in memory on the way to fewer dimensions: 384 MiB
_BLOCK = 1 << 22  # … passed over at a time, which bounds the gradients held
_SAMPLED = 30  # answers an object in the sample that settles the dimension
_TELLING = 12  # … without which it settles nothing: three a coordinate of four dimensions
_ATTEMPTS = 3  # fits with doubt, each in the unit that the one before has found
_SAME = 1.25  # units of distance that differ by less are the same

Layout = Callable[[Stored], tuple[Passes, Passes]]
Watch = Callable[[float], object]


def in_blocks(
    answers: Any, n_objects: int | None = None, objects: str = "auto", *, sampled: bool = True
) -> Any:
    """Very many answers as they are fitted in blocks; fewer, and what has no blocks, as they are.

    They are `sampled` where their dimension is to be found.
    """
    source = as_source(answers)
    if source is None:
        return answers
    if source.n_rows is None:
        source = _counted(source)
    if source.n_rows is not None and source.n_rows <= _fit.MANY:
        return answers if _fit.blocks_of(answers) is None else source.blocks
    return store(source, n_objects=n_objects, renumber=objects == "auto", sampled=sampled)


def _counted(source: BlockSource) -> BlockSource:
    """The same source; where it has few rows, it says how many."""
    blocks, read, count = iter(source.blocks), [], 0
    for block in blocks:
        read.append(block)
        count += len(block)
        if count > _fit.MANY:
            return replace(source, blocks=itertools.chain(read, blocks))
    return replace(source, blocks=iter(read), n_rows=count)


def lay_out(answers: Any, watch: Watch = bool) -> tuple[Passes, Passes]:
    """Passes over the answers that are not held out, and over all.

    On a GPU where one is wanted and has room for all of them. `watch` is told how much of a pass
    on the processor is done.
    """
    if wants_gpu(answers.n_kept, answers.n_objects):
        every = gpu().GpuPasses.of_blocks(
            answers.blocks(answers.n_kept), answers.n_kept, answers.n_objects
        )
        return every.first(answers.n_seen), every
    return BlockPasses(answers, answers.n_seen, watch), BlockPasses(answers, answers.n_kept, watch)


class BlockPasses(Passes):
    """The first rows of answers that are read block by block."""

    def __init__(self, answers: Any, n_rows: int, watch: Watch = bool) -> None:
        self._answers, self._n_rows, self._watch = answers, n_rows, watch
        self.n_objects, self.total = answers.n_objects, float(n_rows)

    def __len__(self) -> int:
        return self._n_rows

    def sums(self, loss: Loss, X: Floats) -> tuple[float, Floats]:
        """One pass: the sum of the losses, and its gradient."""
        value, gradient = 0.0, np.zeros(X.shape)
        for rows in self._blocks():
            more, slope = loss.sums(X, rows)
            value += more
            gradient += slope
        return value, gradient

    def share_disobeyed(self, X: Floats) -> float:
        """How much of the answers the positions contradict."""
        wrong = sum(int(disobeyed(X, rows).sum()) for rows in self._blocks())
        return wrong / max(self.total, 1.0)

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        n, d = X.shape
        told = np.zeros((n, d, d))
        for rows in self._blocks():
            told += Passes(rows, None, n).information(X, lapse, tail)
        return told

    def few(self, size: int, rng: np.random.Generator) -> Passes:
        """Some of the answers, drawn at random from every block, in memory."""
        share = min(size, _MOST_DRAWN) / max(len(self), 1)
        drawn, at = np.empty((math.ceil(share * len(self)), 3), dtype=np.int32), 0
        for rows in self._blocks():
            count = min(math.ceil(share * len(rows)), len(drawn) - at)
            drawn[at : at + count] = rows[np.sort(rng.integers(len(rows), size=count))]
            at += count
        return BlockPasses(_InMemory(drawn[:at], self.n_objects), at)

    def _blocks(self) -> Iterator[NDArray[np.int32]]:
        done = 0
        for rows in self._answers.blocks(self._n_rows):
            yield rows
            done += len(rows)
            self._watch(done / self._n_rows)


@dataclass(frozen=True)
class _InMemory:
    """Blocks of an array."""

    rows: NDArray[np.int32]
    n_objects: int

    @property
    def n_kept(self) -> int:
        return len(self.rows)

    n_seen = n_kept

    def blocks(self, n_rows: int) -> Iterator[NDArray[np.int32]]:
        for start in range(0, n_rows, _BLOCK):
            yield self.rows[start : min(start + _BLOCK, n_rows)]


class Checkpoint:
    """The stages of a fit, those that are over and the one under way.

    Parameters
    ----------
    file
        Where an interrupted fit is kept; None: nowhere.
    progress
        Told what is being done, after every step.
    """

    def __init__(self, file: Path | None = None, progress: Callable[[str], object] = bool) -> None:
        self._file, self._progress = file, progress
        self._about = ""
        self._done: dict[str, Fit] = {}
        self._begun: tuple[str, Any] | None = None
        self.steps = 0

    def take_up(self, answers: Stored, goal: Goal) -> bool:
        """Go on from the file, if it is of the same answers and the same goal."""
        told = [answers.n_rows, answers.n_objects, goal.method, goal.d, goal.most]
        self._about = hashlib.sha256(answers.held_out.tobytes() + repr(told).encode()).hexdigest()
        if self._file is None or not self._file.is_file():
            return False
        try:
            kept = read_numpy(self._file)
            if str(kept["about"]) != self._about:
                return False
            for i, name in enumerate(kept["stages"].tolist()):
                loss, n_iter, converged = kept["figures"][i].tolist()
                self._done[name] = Fit(kept[f"positions{i}"], loss, int(n_iter), bool(converged))
            if str(kept["begun"]):
                self._begun = str(kept["begun"]), kept["positions"]
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise InvalidInput(
                f"{self._file}: is no checkpoint of a fit ({error}); remove it to begin anew"
            ) from error
        return True

    def stage(
        self,
        name: str,
        begin: Callable[[], Floats],
        passes: Callable[[], Passes],
        loss: Loss,
        **how: Any,
    ) -> Fit:
        """One fit: as it was found before, or from where it was left, or from the beginning."""
        if name in self._done:
            return self._done[name]
        going_on = self._begun is not None and self._begun[0] == name
        start = self._begun[1] if going_on and self._begun is not None else begin()

        def after_step(step: int, value: float, X: Any) -> None:
            self._begun = name, X
            self._progress(f"{name}: step {step}, loss {value:.4g}")

        self._begun = name, start
        self._progress(name)
        fit = fit_positions(passes(), start=start, loss=loss, callback=after_step, **how)
        self.steps += fit.n_iter
        self._done[name], self._begun = fit, None
        self.save()
        return fit

    def forget(self, name: str) -> None:
        """Nobody needs the positions of this stage any more."""
        self._done[name] = replace(self._done[name], positions=np.empty((0, 0)))

    def save(self) -> None:
        """Write down what was reached."""
        if self._file is None or not self._about:
            return
        begun, at = self._begun or ("", np.empty((0, 0)))
        X = as_array(at)
        figures = [(fit.loss, fit.n_iter, fit.converged) for fit in self._done.values()]
        positions = {f"positions{i}": fit.positions for i, fit in enumerate(self._done.values())}
        sink = io.BytesIO()
        arrays: dict[str, Any] = {
            "about": self._about,
            "stages": np.array(list(self._done), dtype=np.str_),
            "figures": np.array(figures, dtype=np.float64).reshape(-1, 3),
            "begun": begun,
            "positions": X,
            **positions,
        }
        np.savez(sink, **arrays)
        write_bytes(self._file, sink.getvalue())

    def remove(self) -> None:
        """All is done."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)


def fit_many(
    answers: Stored,
    goal: Goal,
    rng: np.random.Generator,
    *,
    layout: Layout = lay_out,
    kept: Checkpoint | None = None,
    call: str = "",
) -> Embedding:
    """Positions from stored answers; see `nearer.fit`.

    `layout` says where passes over them run. `kept` has the stages that an interrupted fit has
    gone through. `call` is how the user has asked for it.
    """
    kept = kept or Checkpoint()
    try:
        estimate = None
        if goal.d is None:
            estimate = _dimension(answers, goal, rng)
            goal = replace(goal, d=estimate.dimension)
        seen, every = layout(answers)
        return _Many(answers, goal, seen, every, kept, rng).embedding(estimate, call)
    except BaseException:
        kept.save()
        raise


def _dimension(answers: Stored, goal: Goal, rng: np.random.Generator) -> DimensionEstimate:
    """How many dimensions a sample of the answers needs."""
    rows, n = answers.sample, answers.n_objects
    if len(rows) < min(_TELLING * n, answers.n_rows // 2):
        raise InvalidInput(
            f"n_components='auto': {len(rows):,} answers, as many as are sampled, do not tell the "
            f"dimension of {n:,} objects; say it, n_components=… or --dim …"
        )
    size = max(SETTLED, _SAMPLED * n)
    if len(rows) > size:
        rows = rows[np.sort(rng.choice(len(rows), size, replace=False))]
    belief = Belief(n, None, rng, max_components=goal.most)
    belief.learn(rows)
    exact = None
    if goal.method != "noisy":
        exact = fit_exactly(belief, rows, np.ones(len(rows)), rng)
    return find_dimension(belief, goal.most, exact)


class _Many:
    """One fit of very many answers."""

    def __init__(
        self,
        answers: Stored,
        goal: Goal,
        seen: Passes,
        every: Passes,
        kept: Checkpoint,
        rng: np.random.Generator,
    ) -> None:
        self._answers, self._goal, self._kept, self._rng = answers, goal, kept, rng
        self._seen, self._every = seen, every
        self._n, self._d = answers.n_objects, goal.d or 1

    def embedding(self, estimate: DimensionEstimate | None, call: str) -> Embedding:
        goal, answers = self._goal, self._answers
        plain = goal.method not in ("auto", "noisy")
        loss = Loss(goal.method if plain else "soe")
        fit = self._fit("without those held out", self._come_down(loss), self._seen, loss)
        right, curve = self._predicted(fit.positions)
        method, covariances, noise = goal.method, np.zeros((self._n, self._d, self._d)), Noise()
        if method == "auto":
            wrong = int((right < 1).sum())
            obeyed = is_exact(wrong, len(right), len(self._seen), self._n * self._d)
            method = "soe" if obeyed else "noisy"
        for attempt in range(_ATTEMPTS if method == "noisy" else 0):
            noise, start = as_noise(fit.positions, curve), curve.sharpness * fit.positions
            loss, name = noise.loss, f"with doubt, {attempt + 1}"
            fit = self._fit(name, start, self._seen, loss, self._ridge(noise))
            covariances = self._covariances(fit.positions, noise, self._seen)
            right, curve = self._predicted(fit.positions, covariances)
            if 1 / _SAME < curve.sharpness < _SAME:
                break
        ridge = self._ridge(noise) if method == "noisy" else 0.0
        done = self._fit("all answers", fit.positions, self._every, loss, ridge)
        if method == "noisy":
            covariances = self._covariances(done.positions, noise, self._every)
        posterior = Posterior(
            done.positions, covariances, noise, curve, done.loss, self._kept.steps, done.converged
        )
        found = self._every.share_disobeyed(done.positions)
        return _embedding(answers, method, posterior, estimate, _accuracy(right), found, call)

    def _come_down(self, loss: Loss) -> Floats:
        """Positions from some of the answers, in one dimension fewer after the other."""
        n, d, kept = self._n, self._d, self._kept
        first = d + EXTRA
        drawn: list[Passes] = []

        def few() -> Passes:
            size = ENOUGH * n * first
            if not drawn:
                some = len(self._seen) >= 2 * size
                drawn.append(self._seen.few(size, self._rng) if some else self._seen)
            return drawn[0]

        fit: Fit | None = None
        for e in range(first, d - 1, -1):
            before = fit

            def begin(e: int = e, before: Fit | None = before) -> Floats:
                if before is None:
                    return random_start(n, e, self._rng)
                return principal_axes(before.positions, e)

            steps = self._goal.max_iter
            name = amount(e, "dimension")
            fit = kept.stage(name, begin, few, loss, max_iter=steps, tol=ROUGH)
            if before is not None:
                kept.forget(amount(e + 1, "dimension"))
        assert fit is not None
        return fit.positions

    def _fit(self, name: str, start: Floats, passes: Passes, loss: Loss, ridge: float = 0.0) -> Fit:
        last = passes is self._every
        return self._kept.stage(
            name,
            lambda: start,
            lambda: passes,
            loss,
            ridge=ridge,
            max_iter=self._goal.max_iter,
            tol=self._goal.tol if last else max(self._goal.tol, ROUGH),
        )

    def _ridge(self, noise: Noise) -> float:
        return noise.ridge(self._every.total)

    def _covariances(self, X: Floats, noise: Noise, passes: Passes) -> Floats:
        told = passes.information(X, noise.lapse, noise.tail)
        return np.asarray(np.linalg.inv(told + np.eye(self._d) / noise.prior**2))

    def _predicted(self, X: Floats, covariances: Floats | None = None) -> tuple[Floats, Curve]:
        """Which of the answers held out were predicted, and the curve that fits them best."""
        rows = self._answers.held_out
        if not len(rows):
            return np.empty(0), Curve()
        blurred = np.zeros((self._n, self._d, self._d)) if covariances is None else covariances
        forecast = MarginForecast(moderate(*Posterior(X, blurred, Noise()).margins(rows)))
        curve, _ = fit_curve(forecast, np.ones(len(rows)))
        return forecast.right, curve


def _accuracy(right: Floats) -> HeldOutAccuracy | None:
    if not len(right):
        return None
    share = float(right.mean())
    return HeldOutAccuracy(share, *share_interval(share, float(len(right))), len(right))


def _embedding(
    answers: Stored,
    method: str,
    posterior: Posterior,
    estimate: DimensionEstimate | None,
    held_out: HeldOutAccuracy | None,
    error_rate: float,
    call: str,
) -> Embedding:
    d, m = posterior.positions.shape[1], answers.n_rows
    note = f"{amount(m, 'answer')}, {method}, {amount(d, 'dimension')}, in blocks"
    return Embedding(
        positions=posterior.positions,
        triplets=np.empty((0, 3), dtype=np.int64),
        n_comparisons=m,
        n_rounds=0,
        history=(Phase("fit", m, 0, note),),
        evidence={} if estimate is None else estimate.evidence,
        determined=None if estimate is None else estimate.determined,
        dimension_low=d if estimate is None else estimate.dimension_low,
        dimension_high=d if estimate is None else estimate.dimension_high,
        covariances=posterior.covariances if method == "noisy" else None,
        held_out=held_out,
        error_rate=error_rate,
        names=answers.names,
        chosen=False,
        details={
            "method": method,
            "posterior": posterior,
            "loss": posterior.loss,
            "estimate": estimate,
            "reliability": None,
            "weights": None,
            "expected_tau": None,
            "agreement": {},
            "calibration": None,
            "read": None,
            "call": call,
        },
    )
