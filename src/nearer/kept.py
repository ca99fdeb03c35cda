"""A result on disk: one ``.npz`` file of plain arrays, and a text that says what they are.

The member ``about`` is JSON in UTF-8 with the name of the format, its version, a tree of values and
a checksum of all that is kept (earlier files have none). Arrays lie beside it under numbers and are
referred to by them; nothing is pickled, so that a file of a stranger can do no more than be wrong.
Classes are those that the caller names, kept by their fields. What is none of these cannot be kept.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.files import as_path, read_numpy, write_bytes

__all__ = [
    "CannotBeKept",
    "called",
    "keepable",
    "plain_name",
    "read_kept",
    "without_objects",
    "write_kept",
]

FORMAT = "nearer.embedding"
VERSION = 1

Classes = Mapping[str, type[Any]]


class CannotBeKept(TypeError):
    """A value that a file has no form for."""


class _Tree:
    """Values on their way into a file: JSON, with numbers that stand for arrays."""

    def __init__(self, classes: Classes) -> None:
        self.classes = classes
        self.arrays: list[NDArray[Any]] = []

    def encode(self, value: Any) -> Any:
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self.encode(item) for item in value]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(k), self.encode(v)] for k, v in value.items()]}
        name = type(value).__name__
        if self.classes.get(name) is type(value):
            fields = [f.name for f in dataclasses.fields(value) if f.init]
            return {"class": name, "fields": {f: self.encode(getattr(value, f)) for f in fields}}
        raise CannotBeKept(f"a {name} cannot be kept in a file")

    def _array(self, value: NDArray[Any]) -> Any:
        if value.dtype.hasobject:
            raise CannotBeKept("an array of Python objects cannot be kept in a file")
        self.arrays.append(value)
        return {"array": len(self.arrays) - 1}


def keepable(value: Any, classes: Classes) -> bool:
    """Whether a file has a form for a value."""
    try:
        _Tree(classes).encode(value)
    except CannotBeKept:
        return False
    return True


def write_kept(path: str | os.PathLike[str], values: Any, classes: Classes, by: str) -> None:
    """Write a tree of values, whole or not at all.

    Parameters
    ----------
    path
        Of the file.
    values
        Numbers, texts, arrays, lists, tuples, dicts, and dataclasses of these.
    classes
        The dataclasses that may occur, by their names.
    by
        Which program writes it.
    """
    if not as_path(path).name:
        raise InvalidInput(f"{path}: is a folder; name a file in it")
    tree = _Tree(classes)
    encoded = tree.encode(values)
    about = {"format": FORMAT, "version": VERSION, "by": by, "values": encoded}
    about["sha256"] = _checksum(encoded, tree.arrays)
    text = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    sink = io.BytesIO()
    members: dict[str, Any] = {str(i): array for i, array in enumerate(tree.arrays)}
    np.savez_compressed(sink, about=text, **members)
    write_bytes(path, sink.getvalue())


def read_kept(path: str | os.PathLike[str], classes: Classes) -> Any:
    """The values that `write_kept` wrote."""
    arrays = read_numpy(path, "give a file that Embedding.save wrote")
    try:
        about = json.loads(arrays["about"].astype(np.uint8, casting="equiv").tobytes())
        what, version, by = about["format"], about["version"], about["by"]
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError):
        what = None
    if what != FORMAT:
        held = ", ".join(sorted(arrays)[:4]) or "nothing"
        raise InvalidInput(
            f"{path}: holds {held}, which is no saved embedding; give a file that Embedding.save "
            "wrote"
        )
    if version != VERSION:
        raise InvalidInput(
            f"{path}: has format {version!r}, written by {by}, and this version of nearer reads "
            f"format {VERSION}; read it with that version, or a newer one"
        )
    members = (arrays[str(i)] for i in range(len(arrays) - 1) if str(i) in arrays)
    if "sha256" in about and about["sha256"] != _checksum(about.get("values"), members):
        raise InvalidInput(f"{path}: was changed after it had been saved; save it again")
    try:
        return _decode(about["values"], arrays, classes)
    except (LookupError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidInput(
            f"{path}: a part of the saved embedding is damaged ({error!r}); save it again"
        ) from error


def _checksum(values: Any, arrays: Iterable[NDArray[Any]]) -> str:
    """Of the tree as text, and of all arrays: what they are and what they hold."""
    found = hashlib.sha256(json.dumps(values).encode())
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def _decode(value: Any, arrays: Mapping[str, NDArray[Any]], classes: Classes) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return arrays[str(value["array"])]
    if "class" in value:
        fields = {k: _decode(v, arrays, classes) for k, v in value["fields"].items()}
        return classes[value["class"]](**fields)
    if "dict" in value:
        pairs = value["dict"]
        return {_decode(k, arrays, classes): _decode(v, arrays, classes) for k, v in pairs}
    [(kind, items)] = value.items()
    return {"list": list, "tuple": tuple}[kind](_decode(item, arrays, classes) for item in items)


def called(names: Sequence[Any] | None, n: int) -> Sequence[Any]:
    """What n objects are called: their names, or their numbers where they have none."""
    if names is None:
        return range(n)
    if len(names) != n:
        raise InvalidInput(
            f"names: {len(names)} for {n} objects, and each needs one; "
            "dataclasses.replace(embedding, names=…) gives others"
        )
    return names


def plain_name(name: Any) -> Any:
    """A name that can be kept: a text or a number, or what it prints."""
    value = name.item() if isinstance(name, np.generic) else name
    return value if isinstance(value, str | int | float) else str(value)


def without_objects(table: NDArray[np.void]) -> NDArray[np.void]:
    """A table whose columns of Python objects have become text."""
    names = table.dtype.names or ()
    columns = [table[n].astype(str) if table[n].dtype.hasobject else table[n] for n in names]
    plain = np.empty(len(table), dtype=[(n, c.dtype) for n, c in zip(names, columns, strict=True)])
    for name, column in zip(names, columns, strict=True):
        plain[name] = column
    return plain
