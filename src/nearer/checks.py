"""One rule and one message for each kind of argument, and texts of messages and results.

Every function returns the argument in the form that the package works with, or raises
`InvalidInput` with the value, the rule and the remedy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from numbers import Integral
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearer.errors import InvalidInput
from nearer.questions import MAX_OBJECTS, Floats, Objects

#: Control characters, and surrogates, which no file can hold.
UNREADABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
_MOST = int(np.iinfo(np.int32).max)  # objects are numbered, and things counted, in 32 bits


def shown(value: Any) -> str:
    """A value for messages, on one line and shortened."""
    return " ".join(repr(value).split())[:60]


def whole(name: str, value: Any, *, least: int = 1, most: int = _MOST, rule: str = "") -> int:
    """A whole number in a range; `rule` says what the range means."""
    good = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if not good or not least <= value <= most:
        above = most < _MOST or (good and value > most)
        span = f"from {least} to {most}" if above else f"at least {least}"
        rule = f"must be a whole number, {span}{rule and '; ' + rule}"
        raise InvalidInput(f"{name}={shown(value)}: {rule}")
    return int(value)


def n_objects(value: Any, least: int = 3) -> int:
    """How many objects there are; a comparison needs three."""
    rule = f"at least {least} objects are needed, a head and {least - 1} to compare"
    return whole("n_objects", value, least=least, most=MAX_OBJECTS, rule=rule)


def budget(value: Any, least: int = 0) -> int:
    """How many comparisons may be asked."""
    return whole("budget", value, least=least, most=2**63 - 1, rule="it counts comparisons")


def n_components(value: Any, n: int | None = None, name: str = "n_components") -> int:
    """A dimension, of n objects at most n − 1."""
    d = whole(name, value)
    if n is not None and d > n - 1:
        raise InvalidInput(f"{name}={d}: {n} objects span at most {n - 1} dimensions; lower {name}")
    return d


def _number(name: str, value: Any, is_good: Callable[[Any], bool], rule: str) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    is_number = is_number and not (isinstance(value, int) and value.bit_length() > 1000)
    if not is_number or not is_good(value):
        raise InvalidInput(f"{name}={shown(value)}: must be {rule}")
    return float(value)


finite = partial(_number, is_good=np.isfinite, rule="a finite number")
positive = partial(_number, is_good=lambda x: 0 < x < np.inf, rule="a finite number above 0")
not_negative = partial(_number, is_good=lambda x: 0 <= x < np.inf, rule="a finite number from 0")
probability = partial(_number, is_good=lambda x: 0 <= x <= 1, rule="a probability from 0 to 1")
_SHARE = "a number from 0 to below 0.5, the share of wrong answers"
rate = partial(_number, is_good=lambda x: 0 <= x < 0.5, rule=_SHARE)


def one_of(name: str, value: Any, choices: tuple[Any, ...]) -> str:
    """One of a few words."""
    if not isinstance(value, Hashable) or value not in choices:  # an array is equal to nothing
        words = ", ".join(map(repr, choices))
        raise InvalidInput(f"{name}={shown(value)}: must be one of {words}")
    return str(value)


def as_array(value: Any) -> NDArray[Any]:
    """Anything as an array, which is empty if rows have different lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.empty(())


def people(value: ArrayLike | None, m: int) -> NDArray[Any] | None:
    """The person who gave each of m answers; a missing one (None, nan, "") is ""."""
    if value is None:
        return None
    who = as_array(value)
    if who.shape != (m,):
        rule = f"must be ({m},), the person who gave each answer"
        raise InvalidInput(f"people of shape {who.shape}: {rule}")
    if who.dtype.kind in "fO":
        texts = [str(x).removesuffix(".0") for x in who.tolist()]
        who = np.array(["" if x in ("None", "nan", "<NA>") else x for x in texts], dtype=np.str_)
    return None if who.dtype.kind == "U" and bool((who == "").all()) else who


def one(name: str, value: Any, kind: Any, rule: str) -> Any:
    """A thing of a certain type, such as `Callable`, or of any that has the attribute `kind`."""
    if not (hasattr(value, kind) if isinstance(kind, str) else isinstance(value, kind)):
        raise InvalidInput(f"{name}={shown(value)}: must be {rule}")
    return value


_ORACLE = "a function from (m, 3) questions (head, a, b) to (m,) booleans, True where a is nearer"
oracle = partial(one, "oracle", kind=Callable, rule=f"{_ORACLE}; for points nearer.PointOracle(X)")
_STRATEGY = "a generator of questions; call the function that makes it, such as nearer.adaptive(40)"
strategy = partial(one, "strategy", kind=Generator, rule=_STRATEGY)
flag = partial(one, kind=bool | np.bool_, rule="True or False")
_ASKABLE = "a function from (m, 3) questions to (m,) booleans: which may be asked"
askable = partial(one, "askable", kind=Callable | None, rule=_ASKABLE)


def names(name: str, values: Any) -> None:
    """Names of objects, without lone surrogates, which names of files may have."""
    for i, value in enumerate(one(name, values, Iterable, "a list of names")):
        if isinstance(value, str | PathLike) and re.search("[\ud800-\udfff]", str(value)):
            raise InvalidInput(f"{name}[{i}]={value!r:.60}: holds half of a character; take it out")


def one_round(value: Any) -> NDArray[np.integer[Any]]:
    """Questions as a strategy yields them: comparisons, or the wider rows of screens."""
    rows = as_array(value)
    if rows.ndim != 2 or rows.shape[1] < 3 or rows.dtype.kind not in "iu":
        rule = "(m, 3) rows of whole numbers (head, a, b), or wider rows of screens"
        raise InvalidInput(f"questions={shown(value)}: must be {rule}")
    return rows


def objects(name: str, value: Any) -> Objects:
    """A list of objects by their numbers."""
    rows = value if isinstance(value, np.ndarray) else np.asarray(value, dtype=object)
    whole = rows.dtype.kind in "iu" or (rows.ndim and all(isinstance(x, Integral) for x in rows))
    if rows.ndim != 1 or not whole:
        raise InvalidInput(f"{name}={shown(value)}: must be a list of objects' numbers")
    return rows.astype(np.int64)


def text(name: str, value: Any) -> str:
    """A text that can be written down, without control characters; it may have several lines."""
    if not isinstance(value, str) or not value.strip() or UNREADABLE.search(value):
        raise InvalidInput(f"{name}={shown(value)}: must be a text without control characters")
    return value


def title(value: Any, name: str = "title") -> str | None:
    """A text, which may be empty, or None."""
    return text(name, value) if one(name, value, str | None, "a text, or None") else value


def generator(random_state: Any) -> np.random.Generator:
    """A source of randomness from a seed, a generator or None."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        rule = "must be None, a whole number from 0, or a numpy.random.Generator"
        raise InvalidInput(f"random_state={shown(random_state)}: {rule}") from error


def as_points(X: ArrayLike | Any) -> Any:
    """Positions as a float array or a CSR matrix; an error names the value that cannot be used."""
    from scipy import sparse  # noqa: PLC0415 - slow to import

    if sparse.issparse(X):
        points = sparse.csr_matrix(X, dtype=np.float64)
        values = points.data
    else:
        try:
            raw = np.asarray(X)
            if raw.dtype.kind == "c":
                raise TypeError("complex numbers are two columns")
            points = values = np.asarray(raw, dtype=np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            rule = "points must be numbers in n rows of equal length"
            raise InvalidInput(f"{rule}: {error}") from None
        if points.ndim == 1:
            points = points[:, None]
    if points.ndim != 2 or points.shape[1] < 1:
        raise InvalidInput(f"points of shape {points.shape}: must be (n_objects, n_features)")
    if not np.isfinite(values).all():
        dense = points.toarray() if sparse.issparse(points) else points
        row, column = np.argwhere(~np.isfinite(dense))[0]
        what = f"points[{row}, {column}] = {dense[row, column]}"
        raise InvalidInput(f"{what}: every value must be finite; drop or impute that row")
    size, limits = float(np.abs(values).max(initial=0.0)), np.finfo(np.float64)
    if 4 * points.shape[1] * size > limits.max / max(size, 1.0) or 0 < size < limits.tiny**0.5:
        rule = "the squares of their differences overflow; rescale the points"
        raise InvalidInput(f"points as large as {size:.3g}: {rule}")
    return points


def questions(value: Any, n: int, names: Sequence[Any] | None = None) -> Objects:
    """Questions (head, a, b) about n objects as an (m, 3) array; one alone may be a row of three.

    Whole numbers are the numbers of the objects; anything else is one of their `names`.
    """
    rows = rows_of_three("questions", value, "(head, a, b)", one=True)
    numbers = _as_whole(rows)
    if numbers is None:  # an array of texts and numbers would turn all into texts
        numbers = _numbered(np.asarray(value, dtype=object).reshape(-1, 3), n, names)
    bad = ((numbers < 0) | (numbers >= n)).any(axis=1)
    _refuse("question", numbers, bad, f"objects must be from 0 to {n - 1}; mend the row")
    return numbers.astype(np.int64)


def _numbered(rows: NDArray[Any], n: int, names: Sequence[Any] | None) -> Objects:
    """The numbers of objects that are given by name."""
    known = range(n) if names is None else names
    places = {name: i for i, name in enumerate(known) if isinstance(name, Hashable)}
    numbers = np.empty(rows.shape, dtype=np.int64)
    for at, thing in np.ndenumerate(rows):
        place = places.get(thing) if isinstance(thing, Hashable) else None
        if place is None or (names is None and not isinstance(thing, Integral)):
            some = ", ".join(map(repr, known[:3]))
            rule = f"is none of the {n} objects, which are {some} …"
            if names is None:
                rule = f"these objects have no names; give whole numbers from 0 to {n - 1}"
            raise InvalidInput(f"question {at[0]} names {thing!r}: {rule}")
        numbers[at] = place
    return numbers


def rows_of_three(name: str, value: Any, form: str, *, one: bool = False) -> NDArray[Any]:
    """Anything with three columns as an array; with `one`, a row alone may be without brackets."""
    rows = as_array(value)
    if one and rows.shape in ((3,), (0,)):
        rows = rows.reshape(-1, 3)
    if rows.ndim != 2 or rows.shape[1] != 3:
        what = f"of shape {rows.shape}" if rows.ndim else f"{value!r:.60}"
        raise InvalidInput(f"{name} {what}: must be (m, 3) rows {form}")
    return rows


def _as_whole(rows: NDArray[Any]) -> NDArray[np.integer[Any]] | None:
    """Whole numbers, also those stored as fractions or truth values; None for anything else."""
    if rows.dtype.kind in "iu":
        return rows
    if rows.dtype.kind not in "fb":
        return None
    with np.errstate(invalid="ignore"):
        numbers = rows.astype(np.int64)
    return numbers if np.array_equal(numbers, rows) else None


def _refuse(what: str, rows: NDArray[Any], bad: Any, rule: str) -> None:
    """Show the first of the bad rows, if there are any, with the rule that it breaks."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InvalidInput(f"{what} {row} is {rows[row].tolist()}: {rule}")


def triplet_rows(value: Any, form: str = "(head, near, far)") -> NDArray[np.integer[Any]]:
    """Triplets as an (m, 3) array of whole numbers."""
    given = rows_of_three("triplets", value, form)
    rows = _as_whole(given)
    if rows is None:
        rule = "objects must be whole numbers from 0; number the labels first"
        raise InvalidInput(f"triplets of type {given.dtype}: {rule}")
    return rows


def triplets(value: Any, n: int | None = None) -> tuple[NDArray[np.int32], int]:
    """Triplets as an (m, 3) array and the number of objects."""
    form = "(head, near, far), at least one"
    if callable(value):
        form += "; an oracle is asked by nearer.embed(oracle, n)"
    rows = triplet_rows(value, form)
    if not len(rows):
        raise InvalidInput(f"triplets of shape {rows.shape}: must be (m, 3) rows {form}")
    high = int(rows.max())
    rule = f"objects must be from 0 to {_MOST - 1}; number them from 0"
    if n is not None:
        n = whole("n_objects", n, most=MAX_OBJECTS)
        rule = f"objects must be from 0 to {n - 1} (n_objects={n}); raise n_objects or mend the row"
    most = _MOST if n is None else n
    if high >= most or rows.min() < 0:  # extremes are computed faster than bad rows
        _refuse("triplet", rows, ((rows < 0) | (rows >= most)).any(axis=1), rule)
    same = (rows[:, 0] == rows[:, 1]) | (rows[:, 0] == rows[:, 2]) | (rows[:, 1] == rows[:, 2])
    rule = f"its three objects must differ; drop such rows ({int(same.sum())} in all)"
    _refuse("triplet", rows, same, rule)
    return np.ascontiguousarray(rows, dtype=np.int32), high + 1 if n is None else n


def weights(value: ArrayLike | None, m: int, most: float = np.inf) -> Floats:
    """One weight for each triplet, ones where None is given."""
    if value is None:
        return np.ones(m)
    values = array("weights", value, (m,), f"one for each of the {m} triplets")
    if (values < 0).any() or not values.any():
        raise InvalidInput("weights must be finite, not negative, and not all zero")
    if values.max() > most:
        rule = f"must be {most:g} at most; divide all weights by one number"
        raise InvalidInput(f"weight {values.max():g} of answer {values.argmax()}: {rule}")
    return values


def odds(value: ArrayLike, m: int) -> Floats:
    """One number above 0 for each triplet: how likely its question was, relative to chance."""
    values = array("odds", value, (m,), f"one for each of the {m} triplets")
    if not (values > 0).all():
        raise InvalidInput("odds must be above 0; 1 if a question was drawn at random")
    return values


def array(name: str, value: Any, shape: tuple[int | str, ...], rule: str) -> Floats:
    """An array of finite numbers of a shape, in which a name stands for any length."""
    try:
        values = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{name} must be numbers, {rule}: {error}") from error
    fits = (want in (have, str(want)) for want, have in zip(shape, values.shape, strict=False))
    if values.ndim != len(shape) or not all(fits):
        form = str(shape).replace("'", "")
        raise InvalidInput(f"{name} of shape {values.shape}: must be {form}, {rule}")
    if not np.isfinite(values).all():
        raise InvalidInput(f"{name} must be finite numbers")
    return values


# --- texts of messages and results ---------------------------------------------------------------


def amount(n: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def money(value: float) -> str:
    """An amount of money: two decimals, or significant digits if it is less than one."""
    return f"{value:,.2f}" if value >= 1 else f"{value:.2g}"


def as_called(
    function: str, *places: str, given: Mapping[str, Any], defaults: Mapping[str, Any]
) -> str:
    """A call as the user could write it again: without defaults, and "…" for long values."""
    arguments = list(places)
    for name, value in given.items():
        plain = isinstance(value, str | int | float)
        if value is not defaults[name] and not (plain and value == defaults[name]):
            arguments.append(f"{name}={value!r}" if plain else f"{name}=…")
    return f"{function}({', '.join(arguments)})"


class Shown:
    """Prints as its name and `_summary`; a notebook shows the first ten rows of `to_frame`, too."""

    def _summary(self) -> list[str]:
        raise NotImplementedError

    def to_frame(self) -> Any:
        """A pandas frame."""
        raise NotImplementedError

    def _first(self) -> Any:
        return self.to_frame()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._summary())})"

    def _repr_html_(self) -> str:
        return f"<p>{escape(repr(self))}</p>{self._first().head(10).to_html()}"
