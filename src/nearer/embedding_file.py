"""The file format of embeddings: one ``.npz`` file of plain arrays and a JSON header.

The member ``about`` is JSON in UTF-8: the name and version of the format, a tree of values, and a
SHA-256 checksum of the values and arrays. The tree refers to arrays by their numbers. Nothing is
pickled, so that a file from an unknown source cannot run code. Shapes and ranges are checked
before anything else sees the values, because compiled code uses them as indices.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer import __version__
from nearer.dimension import DimensionEstimate
from nearer.embedding import Embedding, HeldOutAccuracy, Phase
from nearer.errors import InvalidInput
from nearer.files import as_path, read_numpy, write_bytes
from nearer.fitting.heldout import Calibration
from nearer.fitting.likelihood import Curve, Noise
from nearer.fitting.posterior import Posterior
from nearer.metrics import Agreement
from nearer.trials import Report, Trials

FORMAT = "nearer.embedding"
VERSION = 2

_STATED = (Agreement, Calibration, DimensionEstimate, HeldOutAccuracy, Phase, Report)
_CLASSES = {kind.__name__: kind for kind in (*_STATED, Curve, Noise, Posterior, Trials)}


def save(embedding: Embedding, path: str | os.PathLike[str]) -> None:
    """Write an embedding to a file, completely or not at all; see `Embedding.save`."""
    if not as_path(path).name:
        raise InvalidInput(f"{path}: is a folder; name a file in it")
    values = {f.name: getattr(embedding, f.name) for f in dataclasses.fields(embedding)}
    if embedding.names is not None:  # texts, numbers, or what they print
        plain = (x.item() if isinstance(x, np.generic) else x for x in embedding.names)
        values["names"] = tuple(x if isinstance(x, str | int | float) else str(x) for x in plain)
    values["details"] = {}
    for key, value in embedding.details.items():
        with suppress(TypeError):  # it has no form in the file
            _encode(value, [])
            values["details"][key] = value
    if problem := next(_problems(values), ""):
        raise InvalidInput(f"{path}: not written, {problem}; dataclasses.replace mends a field")
    if embedding.people is not None:
        values["people"] = {
            name: np.array(column.tolist(), dtype=str if column.dtype.kind == "O" else None)
            for name, column in embedding.people.items()
        }
    arrays: list[NDArray[Any]] = []
    try:
        tree = _encode(values, arrays)
    except TypeError as error:
        raise InvalidInput(f"{path}: not written, {error}") from error
    about = {"format": FORMAT, "version": VERSION, "by": f"nearer {__version__}", "values": tree}
    about["sha256"] = _checksum(tree, arrays)
    header = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    members: dict[str, Any] = {str(i): array for i, array in enumerate(arrays)}
    sink = io.BytesIO()
    np.savez_compressed(sink, about=header, **members)
    write_bytes(path, sink.getvalue())


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
    raise InvalidInput(
        f"{path}: holds {what}, and this version of nearer reads format {VERSION} of {FORMAT}; "
        "give a file that Embedding.save wrote, or read it with the version that wrote it"
    )


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
    fields = [f.name for f in dataclasses.fields(value) if f.init]
    return {"class": name, "fields": {f: _encode(getattr(value, f), arrays) for f in fields}}


def _decode(value: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[str(value["array"])]
    if "class" in value:
        fields = {k: _decode(v, arrays) for k, v in value["fields"].items()}
        return _CLASSES[value["class"]](**fields)
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
