"""What an embedding cannot be: asked before it is saved, and of a file that a stranger has made.

Values are held against the types that their classes declare, then against each other: numbers of
objects, answers about them, covariances that are none, choices that compiled code would run past.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import zip_longest
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from nearer._dimension import METHODS, DimensionEstimate
from nearer.fitting.choices import Choices
from nearer.fitting.posterior import Curve, Noise, Posterior
from nearer.fitting.reliability import Reliability
from nearer.triplets.report import Report
from nearer.trust import Agreement, Calibration

__all__ = ["KEPT", "fault"]

#: classes that a saved embedding may hold, but for its own
KEPT = (
    Agreement,
    Calibration,
    Choices,
    Curve,
    DimensionEstimate,
    Noise,
    Posterior,
    Reliability,
    Report,
)

_PEOPLE = {"id", "n_trials", "agreement", "low", "high", "reliability", "flag"}
_DETAILS: dict[str, Any] = {  # those that are used by their names
    "agreement": dict[str, Agreement],
    "calibration": Calibration | None,
    "call": str,
    "choices": Choices | None,
    "covariances_by": str | None,
    "estimate": DimensionEstimate | None,
    "expected_tau": float | None,
    "heads": NDArray[np.int64],
    "loss": float | None,
    "method": str,
    "places": NDArray[np.int64],
    "posterior": Posterior | None,
    "read": Report | None,
    "reliability": Reliability | None,
    "weights": NDArray[np.float64] | None,
}
_SLACK = 1e-6  # of the largest covariance: rounding


def fault(values: Any, kind: type[Any]) -> str:
    """What is wrong with the fields of an embedding, of the class `kind`; "" where nothing is."""
    if not isinstance(values, dict):
        return f"it holds {_what(values)}"
    hints = get_type_hints(kind)
    if missing := hints.keys() - values.keys() - vars(kind).keys() - {"details"}:
        return f"it has no {min(missing)}"
    if others := values.keys() - hints.keys():
        return f"it has {_what(min(map(str, others)))}, which is nothing of an embedding"
    details = values.get("details", {})
    known = [(name, values[name], hint) for name, hint in hints.items() if name in values]
    if isinstance(details, dict):
        known += [(name, details[name], hint) for name, hint in _DETAILS.items() if name in details]
    for name, value, hint in known:
        if not _is(value, hint):
            return f"{name} is {_what(value)}"
    return next(_faults(values, details), "")


def _faults(values: Mapping[str, Any], details: Mapping[str, Any]) -> Iterator[str]:
    X, T = values["positions"], values["triplets"]
    if X.ndim != 2 or not X.size:
        yield f"positions are {_what(X)}, no (n, d) table of numbers"
        return
    if not np.isfinite(X).all():
        yield f"the position of object {int(np.argmin(np.isfinite(X).all(axis=1)))} is not finite"
    n, d = X.shape
    shapes: dict[str, tuple[Any, tuple[int | None, ...]]] = {
        "triplets": (T, (None, 3)),
        "covariances": (values.get("covariances"), (n, d, d)),
    }
    if (posterior := details.get("posterior")) is not None:
        shapes["the posterior's positions"] = posterior.positions, (n, d)
        shapes["the posterior's covariances"] = posterior.covariances, (n, d, d)
        yield from _noise_faults(posterior)
    for name, (array, shape) in shapes.items():
        if array is not None and not _has_shape(array, shape):
            yield f"{name} are {_what(array)}, for positions of shape {X.shape}"
            return
    C = values.get("covariances")
    if C is not None and not _are_covariances(C):
        yield "covariances are those of nothing: not finite, or negative in some direction"
    yield from _answer_faults(T, details, n)
    yield from _other_faults(values, details, n)


def _answer_faults(T: NDArray[Any], details: Mapping[str, Any], n: int) -> Iterator[str]:
    """Answers about n objects."""
    if not _within(T, n):
        yield f"triplets name objects from {T.min()} to {T.max()}, and there are {n}"
    choices, weights = details.get("choices"), details.get("weights")
    if choices is not None:
        if not _whole_choices(choices, n):
            yield "its choices do not fit together"
    elif weights is not None and len(T) and weights.shape != (len(T),):
        yield f"weights are {_what(weights)}, for {len(T):,} triplets"
    for name in ("heads", "places"):
        if name in details and not (details[name].ndim == 1 and _within(details[name], n)):
            yield f"{name} are {_what(details[name])}, of {n} objects"


def _other_faults(values: Mapping[str, Any], details: Mapping[str, Any], n: int) -> Iterator[str]:
    names, people = values.get("names"), values.get("people")
    if names is not None and len(names) != n:
        yield f"{len(names)} names for {n} objects"
    if people is not None and not set(people.dtype.names or ()) >= _PEOPLE:
        yield f"people is {_what(people)}, no table of them"
    if not all(isinstance(found, dict) for found in values["evidence"].values()):
        yield f"evidence is {_what(values['evidence'])}"
    estimate, calibration = details.get("estimate"), details.get("calibration")
    rated = details.get("reliability")
    for name, columns in (
        ("estimate", estimate and (estimate.dimensions, estimate.scores, estimate.errors)),
        ("calibration", calibration and vars(calibration).values()),
        ("reliability", rated and vars(rated).values()),
    ):
        shapes = {column.shape for column in columns or ()}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            yield f"the columns of the {name} have the shapes {shapes}"
    if estimate is not None and (estimate.method not in METHODS or not estimate.dimensions.size):
        yield f"estimate is {_what(estimate)}"


def _noise_faults(posterior: Posterior) -> Iterator[str]:
    noise, curve = posterior.noise, posterior.curve
    if not (
        noise.prior > 0
        and curve.sharpness > 0
        and noise.tail >= 0
        and 0 <= noise.lapse <= 1
        and 0 <= curve.lapse <= 1
    ):
        yield f"noise cannot be {noise}, {curve}"


def _whole_choices(choices: Choices, n: int) -> bool:
    """Whether compiled code may run over choices: rows of items, items of pairs, pairs of objects.

    Their fields are described in `nearer.fitting.choices`.
    """
    m, items = choices.wanted.size, choices.spans.size - 1
    sizes = {"credit": items, "starts": m + 1}
    sizes |= dict.fromkeys(("wanted", "ranked", "log_ways", "weights", "odds", "group"), m)
    return (
        all(getattr(choices, name).shape == (size,) for name, size in sizes.items())
        and _has_shape(choices.pairs, (None, 2))
        and _cuts(choices.starts, items)
        and _cuts(choices.spans, len(choices.pairs))
        and _within(choices.pairs, n)
        and _within(choices.row, m)
        and choices.n_objects == n
        and bool(np.all(choices.wanted >= 1))
        and bool(np.all(choices.wanted <= np.diff(choices.starts)))
    )


def _is(value: Any, hint: Any) -> bool:
    """Whether a value is of a declared type."""
    kind, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if kind in (Union, UnionType):
        return any(_is(value, one) for one in inside)
    if kind is np.ndarray:
        return isinstance(value, np.ndarray) and _is_of(value.dtype, get_args(inside[1])[0])
    if hint in (bool, int, float):
        numbers = {bool: bool | np.bool_, int: int | np.integer, float: int | float | np.number}
        return isinstance(value, numbers[hint]) and isinstance(value, bool | np.bool_) == (
            hint is bool
        )
    return isinstance(value, kind or hint) and all(_is(x, one) for x, one in _parts(value, hint))


def _parts(value: Any, hint: Any) -> Iterator[tuple[Any, Any]]:
    """What a value of that kind holds, with the type declared of it."""
    kind, inside = get_origin(hint), get_args(hint)
    if kind is dict:
        for key, held in value.items():
            yield from ((key, inside[0]), (held, inside[1]))
    elif kind is tuple:
        each = [inside[0]] * len(value) if inside[-1] is Ellipsis else inside
        yield from zip_longest(value, each, fillvalue=type(None))
    elif is_dataclass(hint):
        for name, declared in get_type_hints(hint).items():
            yield getattr(value, name), declared


def _is_of(dtype: np.dtype[Any], wanted: type[np.generic]) -> bool:
    """Whether an array holds such numbers, in bits enough."""
    if wanted in (np.generic, np.void):
        return not dtype.hasobject
    kind = np.dtype(wanted).kind
    return dtype.kind == kind and (kind != "f" or dtype.itemsize >= 4)


def _cuts(ends: NDArray[Any], size: int) -> bool:
    """Whether numbers that never fall cut so many things into parts."""
    whole = ends.ndim == 1 and ends.size and ends[0] == 0 and ends[-1] == size
    return bool(whole and np.all(np.diff(ends) >= 0))


def _within(numbers: NDArray[Any], n: int) -> bool:
    return not numbers.size or bool(numbers.min() >= 0 and n > numbers.max())


def _are_covariances(C: NDArray[Any]) -> bool:
    if not np.isfinite(C).all():
        return False
    least = np.linalg.eigvalsh(C)
    return bool(least.min() >= -_SLACK * max(1e-300, float(np.abs(least).max())))


def _has_shape(array: NDArray[Any], wanted: tuple[int | None, ...]) -> bool:
    return len(array.shape) == len(wanted) and all(
        w is None or s == w for s, w in zip(array.shape, wanted, strict=True)
    )


def _what(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return repr(value)[:40]
