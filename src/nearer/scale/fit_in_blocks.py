"""Fits of very many answers in blocks, also of more than memory holds, for `nearer.fit`.

docs/scale.md lists the steps. The curve that fits the held-out answers gives the rate of errors and
the unit of distance. The prior is as wide as the positions then are; with many answers per
coordinate it hardly matters.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from nearer import _fit
from nearer._fit import Goal
from nearer.checks import amount
from nearer.dimension import SETTLED, DimensionEstimate, learn_answers
from nearer.embedding import Embedding, HeldOutAccuracy
from nearer.errors import InvalidInput
from nearer.files import read_numpy, write_bytes
from nearer.fitting import solver
from nearer.fitting.heldout import as_noise, fit_curve
from nearer.fitting.initial import ENOUGH, EXTRA, FEWEST, ROUGH, is_exact
from nearer.fitting.likelihood import Curve, Noise, PredictedMargins, moderate
from nearer.fitting.posterior import WEAK_PRIOR, Posterior
from nearer.fitting.solver import Fit, Loss, Passes
from nearer.questions import Floats, share_interval
from nearer.scale.blocks import Stored, as_source, lay_out, store

_LAST = "all answers"  # the stage that ends at the tolerance of the call


def in_blocks(
    answers: Any, n_objects: int | None = None, objects: str = "auto", *, sampled: bool = True
) -> Any:
    """Very many answers in the form for blocks; all others unchanged."""
    source = as_source(answers)
    if source is None:
        return answers
    if source.n_rows <= _fit.MANY:
        return answers if _fit.blocks_of(answers) is None else source.blocks
    return store(source, n_objects=n_objects, renumber=objects == "auto", sampled=sampled)


class Checkpoint:
    """The positions that each stage of a fit has reached, from which a later call continues."""

    def __init__(self, file: Path | None = None, progress: Callable[[str], object] = bool) -> None:
        self._file, self._progress = file, progress
        self._about = ""
        self._reached: dict[str, Any] = {}
        self.steps = 0

    def take_up(self, answers: Stored, goal: Goal) -> bool:
        """Continue from the file, if it has the same answers and the same goal."""
        facts = [answers.n_rows, answers.n_objects, goal.method, goal.d, goal.most]
        self._about = hashlib.sha256(answers.held_out.tobytes() + repr(facts).encode()).hexdigest()
        if self._file is None or not self._file.is_file():
            return False
        arrays = read_numpy(self._file, "remove it to begin again")
        if str(arrays.pop("about", "")) != self._about:
            return False
        self._reached = arrays
        return True

    def stage(
        self, name: str, begin: Callable[[], Floats], passes: Callable[[], Passes], **how: Any
    ) -> Fit:
        """One fit, continued or from its beginning."""
        start = self._reached[name] if name in self._reached else begin()

        def after_step(step: int, value: float, X: Any) -> None:
            self._reached[name] = X
            self._progress(f"{name}: step {step}, loss {value:.4g}")

        self._progress(name)
        fit = solver.fit_positions(passes(), start=start, callback=after_step, **how)
        self._reached[name] = fit.positions
        self.steps += fit.n_iter
        self.save()
        return fit

    def save(self) -> None:
        """Write the positions so far to the file."""
        if self._file is not None and self._about:
            sink = io.BytesIO()
            arrays: dict[str, Any] = {name: solver.as_array(X) for name, X in self._reached.items()}
            np.savez(sink, about=self._about, **arrays)
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
    layout: Callable[[Stored], tuple[Passes, Passes]] = lay_out,
    checkpoint: Checkpoint | None = None,
    call: str = "",
) -> Embedding:
    """Positions from stored answers; `layout` says where passes over them run."""
    checkpoint = checkpoint or Checkpoint()
    try:
        estimate = None
        if goal.d is None:
            estimate = _dimension(answers, goal, rng)
            goal = replace(goal, d=estimate.dimension)
        many = _ManyAnswers(answers, goal, checkpoint, rng, *layout(answers))
        return many.embedding(estimate, call)
    except BaseException:
        checkpoint.save()
        raise


def _dimension(answers: Stored, goal: Goal, rng: np.random.Generator) -> DimensionEstimate:
    """How many dimensions a sample of the answers needs."""
    rows, n = answers.sample, answers.n_objects
    if len(rows) < min(FEWEST * EXTRA * n, answers.n_rows // 2):
        what = f"{len(rows):,} sampled answers do not determine the dimension of {n:,} objects"
        raise InvalidInput(f"n_components='auto': {what}; give n_components=… or --dim …")
    size = max(SETTLED, ENOUGH * EXTRA * n)
    if len(rows) > size:
        rows = rows[np.sort(rng.choice(len(rows), size, replace=False))]
    exactly = goal.method != "noisy"
    estimate = learn_answers(rows, rows, n, None, goal.most, rng, exactly=exactly, enough=size)[2]
    assert estimate is not None
    return estimate


@dataclass(frozen=True)
class _ManyAnswers:
    """One fit of very many answers: `seen` are those not held out, `every` all of them."""

    answers: Stored
    goal: Goal
    checkpoint: Checkpoint
    rng: np.random.Generator
    seen: Passes
    every: Passes

    @property
    def d(self) -> int:
        return self.goal.d or 1

    def embedding(self, estimate: DimensionEstimate | None, call: str) -> Embedding:
        method, n, d = self.goal.method, self.answers.n_objects, self.d
        loss = Loss("soe" if method in ("auto", "noisy") else method)
        rough = Noise(WEAK_PRIOR, tail=1.0)  # in which no answer pulls hard
        begin = partial(self._reduced, rough.loss if loss.name == "soe" else loss)
        fit = self._fit("without those held out", begin, lambda: self.seen, loss)
        posterior = Posterior(fit.positions, np.zeros((n, d, d)), Noise())
        right, curve = self._predicted(posterior)
        if method == "auto":
            wrong = int((right < 1).sum())
            method = "soe" if is_exact(wrong, len(right), len(self.seen), n * d) else "noisy"
        if method == "noisy":
            posterior = self._noisy("noisy answers", posterior, curve, self.seen)
            right, curve = self._predicted(posterior)
            posterior = self._noisy(_LAST, posterior, curve, self.every)
            curve = replace(curve, sharpness=1.0)  # since the unit is now the noise
        else:
            fit = self._fit(_LAST, lambda: posterior.positions, lambda: self.every, loss)
            posterior = replace(
                posterior, positions=fit.positions, loss=fit.loss, converged=fit.converged
            )
        posterior = replace(posterior, curve=curve, n_iter=self.checkpoint.steps)
        error_rate = self.every.share_violated(posterior.positions)
        return _embedding(self.answers, method, posterior, estimate, right, error_rate, call)

    def _noisy(self, name: str, posterior: Posterior, curve: Curve, passes: Passes) -> Posterior:
        """A fit to noisy answers in the unit in which the curve is steepest by one."""
        X, noise = posterior.positions, as_noise(posterior.positions, curve)
        ridge = noise.ridge(self.every.total)
        fit = self._fit(name, lambda: curve.sharpness * X, lambda: passes, noise.loss, ridge)
        information = passes.information(fit.positions, noise.lapse, noise.tail)
        precision = information + np.eye(self.d) / noise.prior**2
        covariances = np.linalg.inv(precision).astype(np.float64)
        return Posterior(fit.positions, covariances, noise, loss=fit.loss, converged=fit.converged)

    def _reduced(self, loss: Loss) -> Floats:
        """Positions from some of the answers, reduced one dimension at a time."""
        n, first = self.answers.n_objects, self.d + EXTRA
        size = ENOUGH * n * first

        @cache
        def few() -> Passes:
            rng = np.random.default_rng(0)  # the same answers if a fit continues
            return self.seen.few(size, rng) if len(self.seen) >= 2 * size else self.seen

        def reduced(d: int) -> Floats:
            def begin() -> Floats:
                if d == first:
                    return solver.random_start(n, d, self.rng)
                return solver.principal_axes(reduced(d + 1), d)

            return self._fit(amount(d, "dimension"), begin, few, loss).positions

        return reduced(self.d)

    def _fit(
        self,
        name: str,
        begin: Callable[[], Floats],
        passes: Callable[[], Passes],
        loss: Loss,
        ridge: float = 0.0,
    ) -> Fit:
        tol = self.goal.tol if name == _LAST else max(self.goal.tol, ROUGH)
        how = {"loss": loss, "ridge": ridge, "max_iter": self.goal.max_iter, "tol": tol}
        return self.checkpoint.stage(name, begin, passes, **how)

    def _predicted(self, posterior: Posterior) -> tuple[Floats, Curve]:
        """Which of the answers held out were predicted, and the curve that fits them best."""
        rows = self.answers.held_out
        if not len(rows):
            return np.empty(0), Curve()
        predictions = PredictedMargins(moderate(*posterior.margins(rows)))
        curve = fit_curve(predictions, np.ones(len(rows)))
        return predictions.right, curve


def _embedding(
    answers: Stored,
    method: str,
    posterior: Posterior,
    estimate: DimensionEstimate | None,
    right: Floats,
    error_rate: float,
    call: str,
) -> Embedding:
    held_out = None
    if len(right):
        share = float(right.mean())
        held_out = HeldOutAccuracy(share, *share_interval(share, len(right)), len(right))
    return _fit.make_embedding(
        posterior,
        estimate,
        method,
        answers.n_rows,
        f"{amount(answers.n_rows, 'answer')}, {method}, in blocks",
        triplets=np.empty((0, 3), dtype=np.int64),
        evidence={} if estimate is None else estimate.evidence,
        covariances=posterior.covariances if method == "noisy" else None,
        held_out=held_out,
        error_rate=error_rate,
        names=answers.names,
        details={"agreement": {}, "call": call},
    )
