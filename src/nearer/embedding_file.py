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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer import __version__
from nearer.dimension import DimensionEstimate
from nearer.embedding import Embedding, HeldOutAccuracy, Phase
from nearer.errors import InvalidInput
from nearer.files import as_path, read_numpy, write_bytes
from nearer.fitting.heldout import Calibration
from nearer.fitting.likelihood import Choices, Curve, Noise
from nearer.fitting.posterior import Posterior
from nearer.metrics import Agreement
from nearer.trials import Report

__all__ = ["load", "save"]

FORMAT = "nearer.embedding"
VERSION = 1

_CLASSES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        Agreement,
        Calibration,
        Choices,
        Curve,
        DimensionEstimate,
        HeldOutAccuracy,
        Noise,
        Phase,
        Posterior,
        Report,
    )
}


def save(embedding: Embedding, path: str | os.PathLike[str]) -> None:
    """Write an embedding to a file, completely or not at all; see `Embedding.save`."""
    if not as_path(path).name:
        raise InvalidInput(f"{path}: is a folder; name a file in it")
    values = {f.name: getattr(embedding, f.name) for f in dataclasses.fields(embedding)}
    if embedding.names is not None:
        values["names"] = tuple(_plain_name(name) for name in embedding.names)
    if embedding.people is not None:
        values["people"] = _without_objects(embedding.people)
    values["details"] = {k: v for k, v in embedding.details.items() if _is_storable(v)}
    if problem := _problem(values):
        raise InvalidInput(f"{path}: not written, {problem}; dataclasses.replace mends a field")
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
    >>> found = nearer.fit([[0, 1, 2], [1, 0, 2], [2, 1, 0]], n_components=1, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(f"{folder}/map.nearer.npz")
    ...     again = nearer.load(f"{folder}/map.nearer.npz")
    >>> bool((again.positions == found.positions).all()), again.nearest(0, 1)
    (True, [1])
    """
    arrays = read_numpy(path, "give a file that Embedding.save wrote")
    about = _header(path, arrays)
    members = (arrays[str(i)] for i in range(len(arrays) - 1) if str(i) in arrays)
    if about.get("sha256") != _checksum(about.get("values"), members):
        raise InvalidInput(f"{path}: was changed after it had been saved; save it again")
    try:
        values = _decode(about["values"], arrays)
        problem = _problem(values)
        embedding = Embedding(**values)
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(f"{path}: is damaged ({error!r}); save it again") from error
    if problem:
        raise InvalidInput(f"{path}: is no valid embedding ({problem}); save it again")
    return embedding


def _header(path: str | os.PathLike[str], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """The JSON header of a file of this format and version."""
    about: Any = None
    if "about" in arrays and arrays["about"].dtype == np.uint8:
        try:
            about = json.loads(arrays["about"].tobytes())
        except (ValueError, RecursionError):
            about = None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        members = ", ".join(sorted(arrays)[:4]) or "nothing"
        raise InvalidInput(
            f"{path}: holds {members}, which is no saved embedding; give a file that "
            "Embedding.save wrote"
        )
    if about.get("version") != VERSION:
        raise InvalidInput(
            f"{path}: has format {about.get('version')!r}, written by {about.get('by')}, and this "
            f"version of nearer reads format {VERSION}; read it with that version, or a newer one"
        )
    return about


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


def _is_storable(value: Any) -> bool:
    try:
        _encode(value, [])
    except TypeError:
        return False
    return True


def _checksum(values: Any, arrays: Iterable[NDArray[Any]]) -> str:
    """SHA-256 of the tree as text, and of type, shape and content of all arrays."""
    digest = hashlib.sha256(json.dumps(values).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _problem(values: Mapping[str, Any]) -> str:
    """The first shape or range that is wrong; "" where all are right."""
    X, names, choices = values["positions"], values["names"], values["details"].get("choices")
    if getattr(X, "ndim", 0) != 2 or not X.size or X.dtype != np.float64:
        return f"positions are {_describe(X)}, not an (n, d) table of float64"
    n, d = X.shape
    if np.isinf(X).any():
        return "a position is infinite"
    if names is not None and len(names) != n:
        return f"{len(names)} names for {n} objects"
    if choices is not None and not _is_consistent(choices, n):
        return "its choices do not fit together"
    problems = (_array_problem(name, a, shape, n) for name, a, shape in _arrays(values, n, d))
    return next(filter(None, problems), "")


def _array_problem(name: str, array: Any, shape: tuple[int | None, ...], n: int) -> str:
    if array is None:
        return ""
    found = np.shape(array)
    if len(found) != len(shape) or any(
        w not in (None, s) for w, s in zip(shape, found, strict=True)
    ):
        return f"{name} are {_describe(array)}, for {n} objects"
    if array.dtype.kind == "i" and not _is_index(array, n):
        return f"{name} refer to objects {array.min()} to {array.max()}, and there are {n}"
    if array.dtype.kind == "f" and np.isinf(array).any():
        return f"{name} are infinite"
    return ""


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
    if details.get("choices") is None and len(T):
        yield "weights", details.get("weights"), (len(T),)
    yield "people of answers", details.get("answered_by"), (len(T),)
    yield "heads", details.get("heads"), (None,)
    yield "places", details.get("places"), (None,)


def _is_consistent(choices: Choices, n: int) -> bool:
    """True if the arrays of choices, described in `nearer.fitting.likelihood`, index each other."""
    m, items = choices.wanted.size, choices.spans.size - 1
    sizes = {"credit": items, "starts": m + 1}
    sizes |= dict.fromkeys(("wanted", "ranked", "log_ways", "weights", "odds", "group"), m)
    return (
        all(getattr(choices, name).shape == (size,) for name, size in sizes.items())
        and choices.pairs.shape[1:] == (2,)
        and _cuts(choices.starts, items)
        and _cuts(choices.spans, len(choices.pairs))
        and _is_index(choices.pairs, n)
        and _is_index(choices.row, m)
        and choices.n_objects == n
        and bool(np.all(choices.wanted >= 1))
        and bool(np.all(choices.wanted <= np.diff(choices.starts)))
    )


def _cuts(ends: NDArray[Any], size: int) -> bool:
    """True if ascending ends cut `size` things into parts."""
    covers = ends.ndim == 1 and ends.size and ends[0] == 0 and ends[-1] == size
    return bool(covers and np.all(np.diff(ends) >= 0))


def _is_index(numbers: NDArray[Any], n: int) -> bool:
    return not numbers.size or bool(numbers.min() >= 0 and n > numbers.max())


def _describe(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape} and type {value.dtype}"
    return repr(value)[:40]


def _plain_name(name: Any) -> Any:
    """A name that JSON has a form for: a text or a number, or the text that it prints."""
    value = name.item() if isinstance(name, np.generic) else name
    return value if isinstance(value, str | int | float) else str(value)


def _without_objects(table: NDArray[np.void]) -> NDArray[np.void]:
    """The table of people, with columns of Python objects as text."""
    names = table.dtype.names or ()
    columns = [table[n].astype(str) if table[n].dtype.hasobject else table[n] for n in names]
    plain = np.empty(len(table), dtype=[(n, c.dtype) for n, c in zip(names, columns, strict=True)])
    for name, column in zip(names, columns, strict=True):
        plain[name] = column
    return plain
