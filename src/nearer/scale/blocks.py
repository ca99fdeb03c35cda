"""Very many triplets, read block by block: from Parquet, from NumPy's files, from Python.

A block is an ``(m, 3)`` array of whole numbers (head, near, far). Parquet is read by PyArrow, one
batch of rows after the other, from one file or all of a folder in the order of their names; its
columns are found by their names as everywhere (`nearer.triplets.forms`).
Objects that are text get numbers in the order in which they occur, and `names` says which.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nearer._fit import blocks_of
from nearer.errors import InvalidInput
from nearer.files import as_path, parquet_files
from nearer.triplets import forms as parts_of

__all__ = ["BLOCK", "BlockSource", "as_source"]

BLOCK = 1 << 20  # rows read at a time: 24 MB as they are in most files
_THREE = ("head", "near", "far")


@dataclass
class BlockSource:
    """Blocks of triplets from somewhere.

    Attributes
    ----------
    where
        What messages call it.
    blocks
        The blocks, to be read once.
    n_rows
        How many rows there are, where that is known before they are read.
    names
        What the objects are called where they are text; it grows while blocks are read.
    unread
        Columns that are not used.
    """

    where: str
    blocks: Iterable[NDArray[Any]]
    n_rows: int | None = None
    names: dict[str, int] | None = None
    unread: tuple[str, ...] = field(default=())


def as_source(answers: Any, columns: Mapping[str, str | int] | None = None) -> BlockSource | None:
    """Blocks of what can be read in blocks; None for everything else."""
    if isinstance(answers, str | os.PathLike):
        path = as_path(answers)
        if parquet_files(path):
            return _parquet(path, columns)
        return _npy(path) if path.suffix.lower() == ".npy" and path.is_file() else None
    if isinstance(answers, np.ndarray):
        if answers.ndim != 2 or answers.shape[1] != 3 or answers.dtype.kind not in "iu":
            return None
        cut = range(0, len(answers), BLOCK)
        return BlockSource("answers", (answers[i : i + BLOCK] for i in cut), len(answers))
    blocks = blocks_of(answers)
    return None if blocks is None else BlockSource("the blocks", blocks)


# --- NumPy ---------------------------------------------------------------------------------------


def _npy(path: Path) -> BlockSource | None:
    """Rows of an array on disk, none of them in memory before they are wanted."""
    try:
        held = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError):
        return None  # whoever reads it whole says what is wrong
    if held.ndim != 2 or held.shape[1] != 3 or held.dtype.kind not in "iu":
        return None
    return BlockSource(str(path), _mapped(path, held), len(held))


def _mapped(path: Path, held: Any) -> Iterator[NDArray[Any]]:
    """Blocks read from the file; pages of a map would be counted as memory in use."""
    m, size = len(held), held.dtype.itemsize
    with path.open("rb") as file:
        for start in range(0, m, BLOCK):
            count = min(BLOCK, m - start)
            if held.flags.c_contiguous:
                file.seek(held.offset + 3 * start * size)
                yield np.fromfile(file, held.dtype, 3 * count).reshape(-1, 3)
                continue
            block = np.empty((count, 3), dtype=held.dtype)
            for column in range(3):
                file.seek(held.offset + (column * m + start) * size)
                block[:, column] = np.fromfile(file, held.dtype, count)
            yield block


# --- Parquet -------------------------------------------------------------------------------------


def _parquet(path: Path, columns: Mapping[str, str | int] | None) -> BlockSource:
    files = parquet_files(path)
    opened = [_opened(file) for file in files]
    schema = opened[0].schema_arrow
    three, unread = _three(path, schema.names, columns)
    for file, other in zip(files, opened, strict=True):
        missing = [name for name in three if name not in other.schema_arrow.names]
        if missing:
            raise InvalidInput(
                f"{file}: has no column {missing[0]!r}, which {files[0].name} has; all files of a "
                "folder need the same columns"
            )
    types = [file.schema_arrow.field(name).type for file in opened for name in three]
    texts = any(_is_text(kind) for kind in types)
    names: dict[str, int] | None = {} if texts else None
    blocks = _batches(files, opened, three, names)
    n_rows = sum(file.metadata.num_rows for file in opened)
    return BlockSource(str(path), blocks, n_rows, names, unread)


def _opened(file: Path) -> Any:
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        import pyarrow.parquet as pq  # noqa: PLC0415
    except ImportError:
        raise InvalidInput(
            f"{file}: reading Parquet needs pyarrow; pip install 'nearer[parquet]'"
        ) from None
    try:
        # row groups of any size are streamed, not read whole
        return pq.ParquetFile(file, pre_buffer=False, buffer_size=BLOCK)
    except FileNotFoundError:
        raise InvalidInput(f"{file}: there is no such file; check the path") from None
    except (OSError, pa.ArrowException) as error:
        raise InvalidInput(f"{file}: is no Parquet file ({error}); check the path") from error


def _three(
    path: Path, header: list[str], columns: Mapping[str, str | int] | None
) -> tuple[list[str], tuple[str, ...]]:
    """The names of the three columns, and those that are not used."""
    if columns is not None:
        parts = parts_of.by_choice(columns, header, len(header))
    else:
        parts = parts_of.by_name(header)
    if not set(_THREE) <= set(parts):
        raise InvalidInput(
            f"{path}: columns {', '.join(header) or 'none'} make no triplets; needed are head, "
            "winner and loser. Rename them, or say which is which: --columns head=…,near=…,far=…"
        )
    if "weight" in parts:
        raise InvalidInput(
            f"{path}: column {header[parts['weight']]!r} holds weights, which answers read in "
            "blocks cannot have; leave the column out, or repeat rows"
        )
    three = [header[parts[part]] for part in _THREE]
    return three, tuple(name for name in header if name not in three)


def _is_text(kind: Any) -> bool:
    import pyarrow.types as of  # noqa: PLC0415 - an extra

    if of.is_dictionary(kind):
        kind = kind.value_type
    return bool(of.is_string(kind) or of.is_large_string(kind) or of.is_string_view(kind))


def _batches(
    files: list[Path], opened: list[Any], three: list[str], names: dict[str, int] | None
) -> Iterator[NDArray[Any]]:
    for path, file in zip(files, opened, strict=True):
        row = 0
        for batch in file.iter_batches(BLOCK, columns=three):
            read = [_column(path, row, batch.column(name), name, names) for name in three]
            yield np.stack(read, axis=1)
            row += batch.num_rows
        file.close()


def _column(
    path: Path, row: int, values: Any, name: str, names: dict[str, int] | None
) -> NDArray[Any]:
    """One column of a batch as whole numbers."""
    if values.null_count:
        at = row + int(np.argmax(np.asarray(values.is_null())))
        raise InvalidInput(
            f"{path}, row {at}: {name} is empty; fill it in, or leave out rows without an answer"
        )
    if names is not None:
        if not _is_text(values.type):
            values = values.cast("string")
        coded = values if hasattr(values, "dictionary") else values.dictionary_encode()
        codes = [names.setdefault(text, len(names)) for text in coded.dictionary.to_pylist()]
        numbers: NDArray[Any] = np.array(codes, dtype=np.int64)[np.asarray(coded.indices)]
        return numbers
    numbers = np.asarray(values)
    if numbers.dtype.kind == "f":
        off = numbers != np.trunc(numbers)
        if not off.any():
            return numbers.astype(np.int64)
        at = int(np.argmax(off))
        raise InvalidInput(
            f"{path}, row {row + at}: {name} is {numbers[at]}; objects are whole numbers or names"
        )
    if numbers.dtype.kind not in "iu":
        raise InvalidInput(
            f"{path}: column {name!r} is {values.type}; objects are whole numbers or names"
        )
    return numbers
