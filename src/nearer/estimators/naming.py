"""The edge of the estimators: names and frames in, arrays or frames out, randomness in any form.

Inside, objects are numbers. A frame is read like the file it would be written to, so that columns
may stand in any order, with people and weights; an array may hold names. What an estimator was
given decides what it takes afterwards: questions about names where answers were about names.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, check_random_state

from nearer import checks
from nearer._given import gather
from nearer.errors import InvalidInput
from nearer.fitting.losses import Floats

__all__ = ["FramesOut", "Numbered", "as_generator", "number_answers", "number_questions"]

Output = Literal["default", "pandas", "polars"]


def as_generator(random_state: Any) -> np.random.Generator:
    """Whatever scikit-learn calls a random state, or a generator, as a generator."""
    if random_state is None or isinstance(random_state, np.random.Generator | int | np.integer):
        return checks.generator(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31, size=4))


@dataclass(frozen=True)
class Numbered:
    """Answers about numbered objects.

    Attributes
    ----------
    rows, n_objects
        What estimators work with; the second None where only the rows tell.
    names
        What the objects are called; None: by their numbers.
    people, weights
        What a frame says of them; None where it says nothing.
    """

    rows: Any
    n_objects: int | None
    names: NDArray[Any] | None = None
    people: NDArray[Any] | None = None
    weights: Floats | None = None


def number_answers(triplets: Any, *, questions: bool, n_objects: int | None) -> Numbered:
    """Objects as numbers, whatever they were.

    Parameters
    ----------
    triplets
        Rows of numbers or names, a frame, or `nearer.Triplets`.
    questions
        Whether the answers are given apart: a frame then holds three columns (head, a, b).
    n_objects
        As the user has it.

    Examples
    --------
    >>> number_answers([["eel", "cat", "dog"]], questions=False, n_objects=None).rows.tolist()
    [[2, 0, 1]]
    """
    framed = hasattr(triplets, "columns") and not isinstance(triplets, np.ndarray)
    if framed and not questions and all(isinstance(name, str) for name in triplets.columns):
        given = gather(triplets, None, None, n_objects, "numbers").split()
        names = None if given.names is None else np.array(given.names)
        if names is not None and names.dtype.kind in "iu":
            names = None  # objects that have numbers already
        return Numbered(given.rows, given.n, names, given.people, given.weights)
    labels = getattr(triplets, "labels", None)
    rows = np.asarray(triplets)
    if labels is not None and n_objects is None:
        return Numbered(rows, len(labels), np.array(labels))
    if rows.dtype.kind not in "USO" or rows.ndim != 2:
        return Numbered(rows, n_objects)
    try:
        names, numbers = np.unique(rows, return_inverse=True)
    except TypeError as error:
        raise InvalidInput(
            f"triplets of names of different kinds ({error}): make all of them texts or numbers"
        ) from error
    return Numbered(numbers.reshape(rows.shape), n_objects or len(names), names)


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
