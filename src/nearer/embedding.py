"""The result of `nearer.embed` and `nearer.fit`: positions with uncertainty, dimension, costs.

Its file is one ``.npz`` file of plain arrays and a JSON header. The member ``about`` is JSON in
UTF-8: the name and version of the format, a tree of values, and a SHA-256 checksum of the values
and arrays. The tree refers to arrays by their numbers. Shapes and ranges are checked before
anything else sees the values, because compiled code uses them as indices.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist

from nearer import __version__, checks
from nearer.asking.protocol import Oracle
from nearer.asking.run import run
from nearer.checks import Shown, amount
from nearer.dimension import DimensionEstimate
from nearer.distances import Distances
from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import as_path, data_url, position_columns, read_numpy, write_bytes
from nearer.fitting.draws import draw_positions
from nearer.fitting.heldout import Calibration
from nearer.fitting.likelihood import Curve, Noise
from nearer.fitting.posterior import Posterior
from nearer.metrics import Agreement
from nearer.questions import Answers
from nearer.trials import Report, Trials

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

    from nearer.algorithms.place import Placed
    from nearer.plotting import InteractiveMap


@dataclass(frozen=True)
class Phase:
    """One part of a run: its purpose, its costs, and the reason why it ended."""

    name: str
    n_comparisons: int
    n_rounds: int
    note: str = ""


@dataclass(frozen=True)
class HeldOutAccuracy:
    """Share of answers predicted by fits that had not seen them, with a 95 % interval.

    An answer counts as predicted if all of it is: of a choice of 2 of 8, both. `chance` is the
    share that guessing would predict. With five people or more, the accuracy is that of further
    answers of these people, and `new_people` that of other people, whom no fit had seen.
    """

    accuracy: float
    low: float
    high: float
    n_trials: int
    new_people: HeldOutAccuracy | None = None
    chance: float = 0.5

    @property
    def is_guessing(self) -> bool:
        """Whether guessing may predict as well."""
        return self.low <= self.chance


@dataclass(frozen=True, eq=False, repr=False)
class Embedding(Shown):
    """Positions of objects, with their uncertainty, their dimension and their costs.

    Attributes that a method does not estimate are None.

    Attributes
    ----------
    positions
        ``(n_objects, dimension)``.
    triplets
        Every answer, as rows ``(head, near, far)``.
    n_comparisons, n_rounds
        The numbers of questions and of rounds.
    history
        The phases of the run: the questions of each, and why it stopped.
    evidence
        For each dimension tried, how well it predicted answers, and its ``"probability"``; that of
        the largest one includes all larger ones.
    determined
        Whether the evidence leaves a single dimension possible.
    dimension_low, dimension_high
        The range of dimensions that remain possible.
    covariances
        ``(n_objects, dimension, dimension)``: the uncertainty of each position.
    held_out
        The accuracy on answers that no fit had seen.
    error_rate
        Share of answers that the positions violate, with the weights of the fit.
    people
        A pandas frame of people: id, n_trials, agreement, low, high, sensitivity, error,
        lapse, bias, flag. Sensitivity is 1 for the median person, 0 for one who guesses, negative
        for one who contradicts; `error` is its standard error. Bias is towards the object shown
        first, in units of an answer's noise.
    weights
        ``(people, dimension)``: how much squared differences on each axis count for each person;
        their geometric mean is 1 on each axis. The axes are then those on which people differ.
    names
        The user's names of the objects.
    chosen
        Whether the strategy chose the questions; False if the answers existed before.
    details
        Results that only some methods have (rankings, the posterior, heads …).
    """

    positions: NDArray[np.float64]
    triplets: NDArray[np.int64]
    n_comparisons: int
    n_rounds: int
    history: tuple[Phase, ...]
    evidence: dict[int, Any]
    determined: bool | None = None
    covariances: NDArray[np.float64] | None = None
    held_out: HeldOutAccuracy | None = None
    error_rate: float | None = None
    people: DataFrame | None = None
    weights: NDArray[np.float64] | None = None
    names: tuple[Any, ...] | None = None
    dimension_low: int | None = None
    dimension_high: int | None = None
    chosen: bool = True
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def dimension(self) -> int:
        """The number of dimensions the answers need."""
        return int(self.positions.shape[1])

    @property
    def never_asked(self) -> NDArray[np.int64]:
        """The objects in no question, since the budget did not reach them.

        They have no position: their rows are NaN.
        """
        return np.flatnonzero(np.isnan(self.positions).any(axis=1))

    def positions_for(self, person: Any) -> NDArray[np.float64]:
        """The map of one person: each axis times the square root of the person's weight."""
        at = self._person(person)
        return self.positions if self.weights is None else self.positions * self.weights[at] ** 0.5

    def _person(self, person: Any) -> int:
        """The row of a person in the tables."""
        if self.people is None:
            remedy = "fit with nearer.fit(answers, people=…)"
            raise InvalidInput(f"person={person!r}: {remedy}")
        return _place(person, self.people["id"].tolist(), "people")

    def predict(self, questions: ArrayLike, *, person: Any = None) -> Answers:
        """Answers by the positions: True if a is nearer to head than b is.

        Questions are rows (head, a, b): numbers of the objects, or their names. An object that was
        never asked about counts as being at the origin. With a person, by that person's map.
        """
        head, a, b = checks.questions(questions, len(self.positions), self.names).T
        positions = self.positions if person is None else self.positions_for(person)
        distances = Distances(np.nan_to_num(positions))
        return distances.between(head, a) < distances.between(head, b)

    def predict_proba(self, questions: ArrayLike, *, person: Any = None) -> NDArray[np.float64]:
        """Probabilities of "b is nearer" and "a is nearer", one row for each question.

        Without `person`, they hold for a person without any answers.
        """
        posterior = self.details.get("posterior")
        if posterior is None:
            remedy = "fit the answers with nearer.fit(embedding.triplets, n_objects=…)"
            raise InvalidInput(f"no probabilities: answers were taken to be exact; {remedy}")
        at = None if person is None else self._person(person)
        curve = self.details.get("curve_of_people")
        if curve is not None and at is not None and self.people is not None:
            row, factor = self.people.iloc[at], np.ones(self.dimension)
            factor = factor if self.weights is None else self.weights[at] ** 0.5
            posterior = replace(
                posterior,
                positions=posterior.positions * factor,
                covariances=posterior.covariances * factor[:, None] * factor,
                curve=Curve(
                    curve.sharpness * row["sensitivity"],
                    row["lapse"],
                    curve.sharpness * row["error"],
                ),
            )
        p = posterior.probability(checks.questions(questions, len(self.positions), self.names))
        return np.stack([1 - p, p], axis=1)

    def place(self, oracle: Oracle | Callable[..., Any], new: Any, **how: Any) -> Placed:
        """Find the positions of further objects by comparing them with those of the embedding.

        Each new object is asked about until its position is as certain as those of the old ones.
        See `nearer.algorithms.place_objects`.

        Parameters
        ----------
        oracle
            It gets the names of all objects, if the embedding has names; otherwise the numbers.
        new
            The new objects themselves, if the embedding has names; otherwise their numbers, none of
            them below ``len(positions)``.
        how
            How the oracle is called, see `nearer.run`; also ``journal=``.
        """
        from nearer.algorithms.place import place_objects  # noqa: PLC0415 - a package above this one

        things = None if self.names is None else [*self.names, *new]
        if things is not None:
            new = np.arange(len(self.positions), len(things))
        placed = run(place_objects(self, new, random_state=0), oracle, objects=things, **how)
        return placed if things is None else replace(placed, names=things[len(self.positions) :])

    def draws(
        self, k: int = 100, random_state: int | np.random.Generator | None = None
    ) -> NDArray[np.float64]:
        """Maps that the answers leave possible, ``(k, n_objects, dimension)``.

        Of any figure that is computed from a map (a distance, an order), the middle 95 % of its
        values over the draws is an interval. Every map is aligned with the positions. With five
        people or more, maps vary as those of further people would. See ``docs/uncertainty.md``.
        """
        checks.whole("k", k)
        noisy = self.details.get("method", "noisy") == "noisy"
        return draw_positions(
            self.positions,
            self.covariances,
            self.triplets,
            k,
            posterior=self.details.get("posterior") if noisy else None,
            weights=self.details.get("weights"),
            trials=self.details.get("trials"),
            between=self.details.get("between_people"),
            rng=checks.generator(random_state),
        )

    def distances(self) -> NDArray[np.float64]:
        """The distance of every pair of objects: 0 and 1, 0 and 2, …, as SciPy's ``pdist``."""
        return np.asarray(pdist(self.positions))

    def to_rdm(self) -> dict[str, Any]:
        """Distances as the RSA toolbox takes them: ``rsatoolbox.rdm.RDMs(**map.to_rdm())``."""
        return {
            "dissimilarities": self.distances()[None],
            "dissimilarity_measure": "Euclidean",
            "pattern_descriptors": {"name": [str(name) for name in self.object_names]},
        }

    def to_frame(self) -> Any:
        """A pandas frame, one row an object: ``name``, ``x1`` …, and ``sd1`` … if known."""
        return as_frame(self.object_names, self.positions, self.covariances)

    def nearest(self, thing: Any, k: int = 5) -> list[Any]:
        """The k objects nearest to one, nearest first, by their names if they have names.

        `thing` is an object, by its name or its number, or a position: an array of coordinates.
        """
        n, d = self.positions.shape
        placed = isinstance(thing, np.ndarray) and thing.shape == (d,) and thing.dtype.kind == "f"
        most = n - len(self.never_asked) - (not placed)
        checks.whole("k", k, most=most, rule="there are no more with a position")
        head = None if placed else _place(thing, self.object_names, "objects")
        if head in self.never_asked:
            rule = "no question was about it, so it has no position; a larger budget reaches it"
            raise InvalidInput(f"{thing!r}: {rule}")
        away = np.linalg.norm(self.positions - (thing if placed else self.positions[head]), axis=1)
        if head is not None:
            away[head] = np.nan  # NaN sorts last, like objects without a position
        return [self.object_names[i] for i in np.argsort(away, kind="stable")[:k].tolist()]

    @property
    def object_names(self) -> Sequence[Any]:
        """The names of the objects, or their numbers if they have no names."""
        n = len(self.positions)
        if self.names is None:
            return range(n)
        if len(self.names) != n:
            remedy = "each needs one; dataclasses.replace(embedding, names=…) gives others"
            raise InvalidInput(f"names: {len(self.names)} for {n} objects, and {remedy}")
        return self.names

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to a file, ``map.nearer.npz``, that `nearer.load` reads.

        The file cannot run code. Names that are neither texts nor numbers are saved as the text
        they print; details without a form in the file, such as the paper's basis, are left out.
        """
        if not as_path(path).name:
            raise InvalidInput(f"{path}: is a folder; name a file in it")
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.names is not None:  # texts, numbers, or what they print
            plain = (x.item() if isinstance(x, np.generic) else x for x in self.names)
            values["names"] = tuple(
                x if isinstance(x, str | int | float) else str(x) for x in plain
            )
        values["details"] = {}
        for key, value in self.details.items():
            with suppress(TypeError):  # it has no form in the file
                _encode(value, [])
                values["details"][key] = value
        if problem := next(_problems(values), ""):
            raise InvalidInput(f"{path}: not written, {problem}; dataclasses.replace mends a field")
        if self.people is not None:
            values["people"] = {
                name: np.array(column.tolist(), dtype=str if column.dtype.kind == "O" else None)
                for name, column in self.people.items()
            }
        arrays: list[NDArray[Any]] = []
        try:
            tree = _encode(values, arrays)
        except TypeError as error:
            raise InvalidInput(f"{path}: not written, {error}") from error
        about = {
            "format": FORMAT,
            "version": VERSION,
            "by": f"nearer {__version__}",
            "values": tree,
        }
        about["sha256"] = _checksum(tree, arrays)
        header = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
        members: dict[str, Any] = {str(i): array for i, array in enumerate(arrays)}
        sink = io.BytesIO()
        np.savez_compressed(sink, about=header, **members)
        write_bytes(path, sink.getvalue())

    def _repr_html_(self) -> str:
        """The map with a line below it, for notebooks."""
        from nearer.plotting.canvas import as_png  # noqa: PLC0415 - a package above this one

        line = escape(", ".join(self._summary()))
        picture = data_url(as_png(self.plot()), "image/png")
        return f'<figure><img src="{picture}" alt="{line}"><figcaption>{line}</figcaption></figure>'

    def _summary(self) -> list[str]:
        d = amount(self.dimension, "dimension")
        if self.determined is False:
            d += f" (not determined: {self.dimension_low} to {self.dimension_high})"
        parts = [amount(len(self.positions), "object"), d, amount(self.n_comparisons, "answer")]
        if self.held_out is not None:
            parts.append(f"held-out accuracy {self.held_out.accuracy:.3f}")
        if len(self.never_asked):
            parts.append(f"{len(self.never_asked):,} never asked about, without a position")
        return parts

    @overload
    def plot(self, *, interactive: Literal[False] = ..., **options: Any) -> Axes: ...

    @overload
    def plot(self, *, interactive: Literal[True], **options: Any) -> InteractiveMap: ...

    def plot(
        self, *, interactive: bool = False, people: bool = False, **options: Any
    ) -> Axes | InteractiveMap:
        """Draw a map of the positions; `nearer.plotting.save` writes it to a file.

        Names and, if they are known, 95 % regions of the positions are drawn;
        ``labels=None`` and ``covariances=None`` leave them out.

        Parameters
        ----------
        interactive
            Make a page to explore instead of a drawing to print; as ``.html`` it is one file.
        people
            Draw how much the first two axes count for each person, instead of the map.
        options
            Those of `nearer.plotting.plot_positions`, such as ``colour`` and ``pictures``;
            of `nearer.plotting.explore_positions`, if interactive.
        """
        from nearer import plotting  # noqa: PLC0415 - a package above this one, needed only here

        checks.flag("interactive", interactive)
        if checks.flag("people", people):
            if self.weights is None or self.people is None:
                remedy = 'nearer.fit(answers, people=…, differ="weights") fits them'
                raise InvalidInput(f"people=True draws weights, and this map has none; {remedy}")
            return plotting.plot_people(self.weights, self.people["id"], **options)

        options = {"labels": self.names, "covariances": self.covariances} | options
        placed = np.delete(np.arange(len(self.positions)), self.never_asked)
        if len(placed) < len(self.positions):
            for name in ("labels", "covariances", "colour", "pictures"):
                value = options.get(name)
                if value is not None and len(value) == len(self.positions):
                    options[name] = [value[i] for i in placed.tolist()]
        if interactive:
            return plotting.explore_positions(self.positions[placed], **options)
        return plotting.plot_positions(self.positions[placed], **options)

    def report(
        self,
        path: str | os.PathLike[str],
        *,
        title: str = "Report on a map of objects",
        command: str | None = None,
        source: Mapping[str, str] | None = None,
        pictures: Sequence[str | os.PathLike[str] | None] | None = None,
    ) -> None:
        """Write a report for a paper: ``report.html``, one file, or ``report.md``.

        It has the answers, the dimension and its evidence, predictions of held-out answers, the
        agreement of each person, the map with the uncertainty of each position, text for a methods
        section, and how to reproduce it.

        Parameters
        ----------
        path, title
            Where to write it, Markdown with its pictures beside it; and its heading.
        command
            The command that reproduces the map; None: the call of `nearer.fit`.
        source
            Facts about the source of the answers, name → value.
        pictures
            An image file for each object, drawn on the map.
        """
        from nearer.plotting.report import write_report  # noqa: PLC0415 - a package above this one

        write_report(self, path, title=title, command=command, source=source, pictures=pictures)


def _place(thing: Any, names: Sequence[Any], what: str) -> int:
    """The place of a thing among names."""
    with suppress(ValueError):  # it is none of them, or an array, which equals no name
        return names.index(thing)
    some = ", ".join(repr(name) for name in names[:3])
    raise InvalidInput(f"{thing!r}: is none of the {len(names)} {what}: {some} …")


def as_frame(names: Sequence[Any], *positions: NDArray[np.float64] | None) -> Any:
    """A pandas frame of positions and covariances, see `Embedding.to_frame`."""
    import pandas as pd  # noqa: PLC0415 - slow to import

    return pd.DataFrame({"name": list(names)} | position_columns(*positions))


def warn_of_chance(embedding: Embedding, stacklevel: int = 3) -> Embedding:
    """The embedding, with a warning if guessing would predict answers as well."""
    held = embedding.held_out
    if held is not None and held.is_guessing:
        message = (
            f"{100 * held.accuracy:.0f} % of {held.n_trials:,} answers held out were predicted "
            f"({100 * held.low:.0f} to {100 * held.high:.0f} at 95 %), no better than by guessing: "
            "the map may be chance alone; collect more answers, or check the source of these"
        )
        warnings.warn(message, AnswersWarning, stacklevel=stacklevel)
    return embedding


# --- the file format -----------------------------------------------------------------------------

FORMAT = "nearer.embedding"
VERSION = 2

_STATED = (Agreement, Calibration, DimensionEstimate, HeldOutAccuracy, Phase, Report)
_CLASSES = {kind.__name__: kind for kind in (*_STATED, Curve, Noise, Posterior, Trials)}


def load(path: str | os.PathLike[str]) -> Embedding:
    """Read an embedding that `Embedding.save` wrote.

    Examples
    --------
    >>> import nearer, tempfile
    >>> embedding = nearer.fit([[0, 1, 2], [1, 0, 2], [2, 1, 0]], n_components=1, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     embedding.save(f"{folder}/map.nearer.npz")
    ...     again = nearer.load(f"{folder}/map.nearer.npz")
    >>> bool((again.positions == embedding.positions).all()), again.nearest(0, 1)
    (True, [1])
    """
    import pandas as pd  # noqa: PLC0415 - slow to import

    arrays = read_numpy(path, "give a file that Embedding.save wrote")
    about = _header(path, arrays)
    members = (arrays[str(i)] for i in range(len(arrays) - 1) if str(i) in arrays)
    if about.get("sha256") != _checksum(about.get("values"), members):
        raise InvalidInput(f"{path}: was changed after it had been saved; save it again")
    try:
        values = _decode(about["values"], arrays)
        if values["people"] is not None:
            values["people"] = pd.DataFrame(values["people"])
        if problem := next(_problems(values), ""):
            raise ValueError(problem)
        return Embedding(**values)
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{path}: is no valid embedding ({error}); save it again") from error


def _header(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The JSON header of a file of this format and version."""
    what = ", ".join(sorted(arrays)[:4]) or "nothing"
    try:
        about: dict[str, Any] = json.loads(arrays["about"].tobytes())
        if (about["format"], about["version"]) == (FORMAT, VERSION):
            return about
        what = f"format {about['version']!r} of {about['format']}, written by {about['by']}"
    except (LookupError, TypeError, ValueError, RecursionError):
        pass  # no header, or one of something else
    rule = f"this version of nearer reads format {VERSION} of {FORMAT}"
    remedy = "give a file that Embedding.save wrote, or read it with the version that wrote it"
    raise InvalidInput(f"{path}: holds {what}, and {rule}; {remedy}")


def _encode(value: Any, arrays: list[NDArray[Any]]) -> Any:
    """A value as JSON; its arrays are appended to `arrays` and referred to by number."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return _encode(value.item(), arrays)
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError("an array of Python objects cannot be saved")
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_encode(item, arrays) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[_encode(k, arrays), _encode(v, arrays)] for k, v in value.items()]}
    name = type(value).__name__
    if _CLASSES.get(name) is not type(value):
        raise TypeError(f"a value of type {name} cannot be saved")
    names = [f.name for f in fields(value) if f.init]
    return {"class": name, "fields": {f: _encode(getattr(value, f), arrays) for f in names}}


def _decode(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[str(value["array"])]
    if "class" in value:
        known = {k: _decode(v, arrays) for k, v in value["fields"].items()}
        return _CLASSES[value["class"]](**known)
    if "dict" in value:
        return {_decode(k, arrays): _decode(v, arrays) for k, v in value["dict"]}
    [(kind, items)] = value.items()
    return {"list": list, "tuple": tuple}[kind](_decode(item, arrays) for item in items)


def _checksum(values: Any, arrays: Iterable[NDArray[Any]]) -> str:
    """SHA-256 of the tree as text, and of type, shape and content of all arrays."""
    digest = hashlib.sha256(json.dumps(values).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _problems(values: Mapping[str, Any]) -> Iterator[str]:
    """Each shape or range that is wrong."""
    X, names = values["positions"], values["names"]
    if getattr(X, "ndim", 0) != 2 or not X.size or X.dtype != np.float64:
        yield f"positions are {_describe(X)}, not an (n, d) table of float64"
    n, d = X.shape
    if np.isinf(X).any():
        yield "a position is infinite"
    if names is not None and len(names) != n:
        yield f"{len(names)} names for {n} objects"
    for name, array, shape in _arrays(values, n, d):
        if array is None:
            continue
        sizes = np.shape(array)
        if len(sizes) != len(shape) or any(
            w not in (None, s) for w, s in zip(shape, sizes, strict=True)
        ):
            yield f"{name} are {_describe(array)}, for {n} objects"
        if array.dtype.kind == "i" and array.size and (array.min() < 0 or array.max() >= n):
            yield f"{name} refer to objects {array.min()} to {array.max()}, and there are {n}"
        if array.dtype.kind == "f" and np.isinf(array).any():
            yield f"{name} are infinite"
    who, people = values["details"].get("answered_by"), values["people"]
    if who is not None and (
        who.shape != (len(values["triplets"]),)
        or not -2 < who.min(initial=0) <= who.max(initial=0) < len(() if people is None else people)
    ):
        yield "the people of the answers are not those of the table"


def _arrays(
    values: Mapping[str, Any], n: int, d: int
) -> Iterator[tuple[str, Any, tuple[int | None, ...]]]:
    """Name, array and expected shape; whole numbers in them are numbers of objects."""
    details, T = values["details"], values["triplets"]
    yield "triplets", T.astype(np.int64, casting="safe"), (None, 3)
    yield "covariances", values["covariances"], (n, d, d)
    yield "weights of people", values["weights"], (None, d)
    yield "draws of people", details.get("between_people"), (None, n, d)
    posterior: Posterior | None = details.get("posterior")
    if posterior is not None:
        yield "the posterior's positions", posterior.positions, (n, d)
        yield "the posterior's covariances", posterior.covariances, (n, d, d)
    trials: Trials | None = details.get("trials")
    if trials is not None:
        asked = trials.questions.astype(np.int64, casting="safe")
        yield "trials", asked[asked != -1], (None,)
    if trials is not None or len(T):
        yield "weights", details.get("weights"), (len(T if trials is None else trials),)
    yield "heads", details.get("heads"), (None,)
    yield "places", details.get("places"), (None,)


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return repr(value)[:40]
