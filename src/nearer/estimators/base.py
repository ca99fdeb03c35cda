"""What all scikit-learn estimators of answers share; the mathematics is in `nearer.fitting`.

They take ``(m, 3)`` rows (head, near, far), or questions (head, a, b) with ``y`` that says whether
a is nearer, so that `sklearn.model_selection.cross_val_score` works with either. Objects are
numbers or names, rows an array or a frame. An estimator that was fitted to names takes questions
about names. Positions come out as an array, or as a frame after ``set_output``.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, check_random_state

from nearer import checks
from nearer._fit import load_answers
from nearer.errors import AnswersWarning, InvalidInput
from nearer.fitting.device import gpu, is_tensor, using
from nearer.fitting.solver import Fit, Passes, prepare, violated
from nearer.questions import Floats, pack
from nearer.text import amount

__all__ = ["FramesOut", "TripletEstimator", "as_generator", "number_questions"]

Output = Literal["default", "pandas", "polars"]
_MOST_SORTED = 10_000_000  # answers; sorting more would take longer than a fit on a GPU


def as_generator(random_state: Any) -> np.random.Generator:
    """Whatever scikit-learn calls a random state, or a generator, as a generator."""
    if random_state is None or isinstance(random_state, np.random.Generator | int | np.integer):
        return checks.generator(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


def number_questions(questions: ArrayLike, names: NDArray[Any] | None) -> NDArray[Any]:
    """Questions about names as questions about numbers."""
    rows = np.asarray(questions)
    if names is None or rows.dtype.kind not in "USO":
        return rows
    known = {name: number for number, name in enumerate(names.tolist())}
    strange = [name for name in np.unique(rows).tolist() if name not in known]
    if strange:
        raise InvalidInput(
            f"{strange[0]!r}: is none of the {len(known)} objects that answers were fitted about"
        )
    numbers = [known[name] for name in rows.ravel().tolist()]
    return np.array(numbers, dtype=np.int64).reshape(rows.shape)


class FramesOut(TransformerMixin):  # type: ignore[misc]
    """Positions as an array or, after ``set_output``, as a frame with one row an object.

    scikit-learn's own way takes the rows of what comes out for those of what went in; here the ones
    are objects, the others answers.
    """

    embedding_: Floats
    objects_: NDArray[Any] | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(auto_wrap_output_keys=None, **options)

    def set_output(self, *, transform: Output | None = None) -> Self:
        """Choose what ``transform`` and ``fit_transform`` return.

        Parameters
        ----------
        transform
            ``"pandas"`` or ``"polars"``: a frame, by pandas with the objects as its index;
            ``"default"``: an array; None: as it was.
        """
        if transform is not None:
            checks.one_of("transform", transform, ("default", "pandas", "polars"))
            self._sklearn_output_config = {"transform": transform}  # what sklearn.clone copies
        return self

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Names of the coordinates: the estimator's name and a number."""
        check_is_fitted(self, "embedding_")
        prefix = type(self).__name__.lower()
        return np.array([f"{prefix}{j}" for j in range(self.embedding_.shape[1])], dtype=object)

    def _returned(self) -> Any:
        """The positions as the user wants them."""
        check_is_fitted(self, "embedding_")
        chosen = getattr(self, "_sklearn_output_config", {})
        wanted = chosen.get("transform", get_config()["transform_output"])
        columns = [str(name) for name in self.get_feature_names_out()]
        try:
            if wanted == "pandas":
                import pandas as pd  # noqa: PLC0415 - only here

                return pd.DataFrame(self.embedding_, columns=columns, index=self.objects_)
            if wanted == "polars":
                import polars as pl  # noqa: PLC0415

                return pl.DataFrame(self.embedding_, schema=columns)
        except ImportError as error:
            raise InvalidInput(
                f"set_output(transform={wanted!r}) needs {wanted}; pip install {wanted}, or take "
                "transform='default'"
            ) from error
        return self.embedding_


class TripletEstimator(FramesOut, BaseEstimator):  # type: ignore[misc]
    """What all embedders of triplets share."""

    _rates_people = False
    n_contradictions_: int | None
    device: str = "cpu"

    def fit(
        self,
        triplets: ArrayLike,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        people: ArrayLike | None = None,
        init: ArrayLike | None = None,
        n_objects: int | None = None,
    ) -> Self:
        """Find positions.

        Parameters
        ----------
        triplets
            ``(m, 3)`` rows (head, near, far), or questions (head, a, b) when `y` is given: of
            numbers or of names, which `objects_` then lists in the order of the positions. A
            pandas or polars frame is read as `nearer.fit` does.
        y
            One answer a question: True or 1 where a is nearer, False, 0 or -1 where b is.
        sample_weight
            One non-negative number a triplet.
        people
            Who gave each answer, for `nearer.OrdinalEmbedding`, which rates them.
        init, n_objects
            Where given, they go before the constructor's.
        """
        if people is not None and not self._rates_people:
            raise InvalidInput(
                f"people: {type(self).__name__} counts everybody's answers the same; "
                "nearer.OrdinalEmbedding rates people"
            )
        generator = as_generator(self.random_state)
        start = getattr(self, "init", None) if init is None else init
        n = n_objects if n_objects is not None else self.n_objects
        with using(self.device):
            passes, own = self._prepared(triplets, y, sample_weight, n)
            d = checks.n_components(self.n_components, passes.n_objects)
            fit = self._embed(passes, d, generator, start, own if people is None else people)
        self.embedding_ = fit.positions
        self.stress_: float = fit.loss
        self.n_iter_: int = fit.n_iter
        self.converged_: bool = fit.converged
        self.n_features_in_ = 3
        if not fit.converged:
            warnings.warn(
                f"max_iter={self.max_iter} steps were not enough; raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _prepared(
        self, triplets: Any, y: ArrayLike | None, sample_weight: ArrayLike | None, n: int | None
    ) -> tuple[Passes, ArrayLike | None]:
        """Answers, checked and laid out for passes over them, and who a frame says gave them."""
        self.objects_ = None
        if is_tensor(triplets) and y is None:
            self.n_contradictions_ = None  # what lies on the device already is not sorted
            return gpu().GpuPasses.of_tensor(triplets, sample_weight, n), None
        answers = triplets if y is None else answered(triplets, y)
        loaded = load_answers(answers, n_objects=n, objects="numbers").split()
        names = loaded.trials.names
        if names is not None and not isinstance(names[0], int):
            self.objects_ = np.array(names)
        self.n_contradictions_ = warn_about(loaded.rows, loaded.n)
        weights = loaded.weights if sample_weight is None else sample_weight
        return prepare(loaded.rows, loaded.n, weights), loaded.trials.people

    def _embed(
        self,
        passes: Passes,
        d: int,
        rng: np.random.Generator,
        init: Any,
        people: ArrayLike | None,
    ) -> Fit:
        raise NotImplementedError

    def fit_transform(self, triplets: ArrayLike, y: ArrayLike | None = None, **options: Any) -> Any:
        """Find positions and return them: an array, or a frame after ``set_output``."""
        return self.fit(triplets, y, **options)._returned()

    def transform(self, triplets: ArrayLike | None = None) -> Any:
        """Return the positions found; triplets are not looked at, pipelines pass them."""
        return self._returned()

    def predict(self, questions: ArrayLike) -> NDArray[np.bool_]:
        """Answer questions (head, a, b) by the positions: True where a is nearer."""
        check_is_fitted(self, "embedding_")
        rows, _ = checks.triplets(number_questions(questions, self.objects_), len(self.embedding_))
        return ~violated(self.embedding_, rows)

    def score(
        self,
        triplets: ArrayLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Share of answers that the positions satisfy."""
        rows = answered(triplets, y)
        weights = checks.weights(sample_weight, len(rows))
        return float(weights @ self.predict(rows) / weights.sum())


def answered(triplets: ArrayLike, y: ArrayLike | None) -> NDArray[Any]:
    """Rows (head, near, far) from triplets, or from questions and answers."""
    try:
        rows = np.asarray(triplets)
    except ValueError as error:
        raise InvalidInput(f"triplets must be rows of three objects: {error}") from error
    if rows.ndim != 2 or rows.shape[1] != 3:
        what = f"{triplets!r:.60}" if rows.ndim == 0 else f"of shape {rows.shape}"
        raise InvalidInput(f"triplets {what}: must be (m, 3) rows of three objects, head first")
    if y is None:
        return rows
    answers = np.asarray(y)
    if answers.shape != (len(rows),):
        raise InvalidInput(
            f"y of shape {answers.shape}: must be ({len(rows)},), one answer for each question"
        )
    if not np.isin(answers, (-1, 0, 1)).all():
        odd = answers[~np.isin(answers, (-1, 0, 1))][0]
        raise InvalidInput(
            f"y holds {odd!r}: answers must be True or 1 (a is nearer), or False, 0 or -1"
        )
    if (answers == 0).any() and (answers == -1).any():
        raise InvalidInput("y holds both 0 and -1: write 'b is nearer' in one way, 0 or -1")
    return np.where((answers == 1)[:, None], rows, rows[:, [0, 2, 1]])


def warn_about(rows: NDArray[np.int32], n: int) -> int | None:
    """Warn of contradictions and objects never compared; return how many contradict.

    Very many answers are not sorted just for that: None.
    """
    contradictions = None
    if len(rows) <= _MOST_SORTED:
        keys, mirrored = pack(rows)
        seen = np.sort(2 * keys + mirrored)  # the two answers of one question become neighbours
        contradictions = int(np.sum((seen[1:] ^ seen[:-1]) == 1))
    if contradictions:
        warnings.warn(
            f"{amount(contradictions, 'question has', 'questions have')} both answers; the "
            "fit weighs one against the other",
            AnswersWarning,
            stacklevel=3,
        )
    seen = np.zeros(n, dtype=np.bool_)
    for column in rows.T:
        seen[column] = True
    unseen = np.flatnonzero(~seen)
    if len(unseen):
        some = ", ".join(map(str, unseen[:10])) + (", …" if len(unseen) > 10 else "")
        warnings.warn(
            f"objects never compared: {some} ({len(unseen)} in all); their positions mean "
            "nothing; add triplets or drop them",
            AnswersWarning,
            stacklevel=3,
        )
    return contradictions
