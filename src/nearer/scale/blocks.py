"""Very many triplets: read block by block, and stored on disk in the form that fits read.

A block is an ``(m, 3)`` array of whole numbers (head, near, far). Blocks come from a Parquet file,
from a folder of them in the order of their names, from an ``.npy`` file, or from Python.

*Stored* triplets are a temporary file of three int32 a row, which vanishes with the process. It is
written as the blocks come, and arranged once all are there: objects are numbered from 0 to n − 1,
and some answers, which are *held out*, are moved to the end, so that a fit to all but them is a fit
to a shorter file. A *sample*, as large as what is fitted in memory, is in memory besides. Both are
chosen by a hash of the three objects of a question, so that all answers to one question stay
together. Answers are counted by the first bits of their hash, so that the parts can be made as
large as they may be.
"""

from __future__ import annotations

import itertools
import os
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nearer import _fit, checks
from nearer.errors import InvalidInput
from nearer.files import as_path, one_message, parquet_files
from nearer.fitting.heldout import FOLDS
from nearer.questions import SPREAD
from nearer.triplets.columns import by_choice, by_name
from nearer.triplets.read import sorted_names

Rows = NDArray[np.int32]
Renumber = Callable[[Rows], Rows]

BLOCK = 1 << 20  # rows read at a time: 24 MB as they are in most files
HELD_OUT = 1 << 17  # answers; the standard error of their accuracy is below .0014
READ = _fit.MANY  # rows a block of a pass: as many as are fitted without blocks
_ROW = 3 * np.dtype(np.int32).itemsize  # bytes
# Bits of a hash: fewer answers have one value than are held out, up to HELD_OUT² of them.
_BITS = HELD_OUT.bit_length() - 1
_THREE = ("head", "near", "far")
_NONE = np.empty((0, 3), dtype=np.int32)


@dataclass
class BlockSource:
    """Blocks of triplets from somewhere, to be read once."""

    where: str  # as messages call it
    blocks: Iterable[NDArray[Any]]
    n_rows: int  # of an iterator, as many as are read to see whether there are very many
    names: dict[str, int] | None = None  # numbers of objects that are texts; grows with reading
    unread: tuple[str, ...] = ()  # columns that are not used


def as_source(answers: Any, columns: Mapping[str, str | int] | None = None) -> BlockSource | None:
    """Blocks of what can be read in blocks; None for everything else."""
    if isinstance(answers, str | os.PathLike):
        path = as_path(answers)
        if parquet_files(path):
            return _parquet(path, columns)
        return _npy(path) if path.suffix.lower() == ".npy" and path.is_file() else None
    if isinstance(answers, np.ndarray):
        return BlockSource("answers", [answers], len(answers)) if _are_triplets(answers) else None
    blocks, begun, n_rows = _fit.blocks_of(answers), list[Any](), 0
    if blocks is None:
        return None
    while n_rows <= _fit.MANY and (block := next(blocks, None)) is not None:
        begun.append(block)
        n_rows += len(block)
    return BlockSource("the blocks", itertools.chain(begun, blocks), n_rows)


def _are_triplets(rows: NDArray[Any]) -> bool:
    return rows.ndim == 2 and rows.shape[1] == 3 and rows.dtype.kind in "iu"


def _npy(path: Path) -> BlockSource | None:
    """Rows of an array on disk, none of them in memory before they are wanted."""
    load = partial(np.load, path, mmap_mode="r", allow_pickle=False)
    try:
        whole = load()
    except (ValueError, OSError, EOFError):
        return None  # the reader of whole files says what is wrong
    if not _are_triplets(whole):
        return None
    cut = range(0, len(whole), BLOCK)
    # each block has a map of its own, since pages of a map count as memory in use
    return BlockSource(str(path), (np.array(load()[i : i + BLOCK]) for i in cut), len(whole))


def _parquet(path: Path, columns: Mapping[str, str | int] | None) -> BlockSource:
    files = parquet_files(path)
    opened = [_opened(file) for file in files]
    three, unread = _three(path, opened[0].schema_arrow.names, columns)
    for file, other in zip(files, opened, strict=True):
        missing = [name for name in three if name not in other.schema_arrow.names]
        if missing:
            what = f"has no column {missing[0]!r}, which {files[0].name} has"
            raise InvalidInput(f"{file}: {what}; all files of a folder need the same columns")
    types = [file.schema_arrow.field(name).type for file in opened for name in three]
    # one of the types of strings, or a dictionary of such
    names: dict[str, int] | None = {} if any("string" in str(kind) for kind in types) else None
    n_rows = sum(file.metadata.num_rows for file in opened)
    return BlockSource(str(path), _batches(files, opened, three, names), n_rows, names, unread)


def _opened(file: Path) -> Any:
    with one_message(file, "a Parquet file"):
        import pyarrow.parquet as pq  # noqa: PLC0415 - an extra

        # row groups of any size are streamed, not read whole
        return pq.ParquetFile(file, pre_buffer=False, buffer_size=BLOCK)


def _three(
    path: Path, header: list[str], columns: Mapping[str, str | int] | None
) -> tuple[list[str], tuple[str, ...]]:
    """The names of the three columns, and those that are not used."""
    parts = by_name(header) if columns is None else by_choice(columns, header, len(header))
    if not set(_THREE) <= set(parts):
        what = f"columns {', '.join(header) or 'none'} make no triplets of head, winner and loser"
        raise InvalidInput(f"{path}: {what}; say which is which: --columns head=…,near=…,far=…")
    if "weight" in parts:
        rule = "which answers read in blocks cannot have; leave the column out, or repeat rows"
        raise InvalidInput(f"{path}: column {header[parts['weight']]!r} holds weights, {rule}")
    three = [header[parts[part]] for part in _THREE]
    return three, tuple(name for name in header if name not in three)


def _batches(
    files: list[Path], opened: list[Any], three: list[str], names: dict[str, int] | None
) -> Iterator[NDArray[Any]]:
    for path, file in zip(files, opened, strict=True):
        n_rows = 0
        for batch in file.iter_batches(BLOCK, columns=three):
            columns = [batch.column(name) for name in three]
            empty = np.any([np.asarray(column.is_null()) for column in columns], axis=0)
            if empty.any():
                rule = "has an empty object; fill it in, or leave out rows without an answer"
                raise InvalidInput(f"{path}, row {n_rows + empty.argmax()}: {rule}")
            yield np.stack([_numbers(column, names) for column in columns], axis=1)
            n_rows += batch.num_rows
        file.close()


def _numbers(column: Any, names: dict[str, int] | None) -> NDArray[Any]:
    """A column of a batch; of texts, the numbers of objects that are called so."""
    if names is None:
        return np.asarray(column)
    coded = column.cast("string").dictionary_encode()
    codes = [names.setdefault(text, len(names)) for text in coded.dictionary.to_pylist()]
    return np.asarray(np.array(codes, dtype=np.int64)[np.asarray(coded.indices)])


@dataclass(frozen=True)
class Stored:
    """Checked triplets on disk: those of one process, where several share them."""

    file: IO[bytes]
    n_objects: int
    names: tuple[Any, ...] | None  # of the objects; None: they are called by their numbers
    n_rows: int  # that were read, those of other processes included
    n_seen: int  # of this file, before those held out
    held_out: Rows
    sample: Rows
    unread: tuple[str, ...]  # columns of the source that were not used

    def __post_init__(self) -> None:
        weakref.finalize(self, self.file.close)

    @property
    def n_kept(self) -> int:
        """How many rows this file has."""
        return self.n_seen + len(self.held_out)

    def blocks(self, n_rows: int) -> Iterator[Rows]:
        """The first rows, a block at a time."""
        for start in range(0, n_rows, READ):
            # The system reads the next block from the disk while this one is worked on.
            ahead = ((start + READ) * _ROW, READ * _ROW, os.POSIX_FADV_WILLNEED)
            os.posix_fadvise(self.file.fileno(), *ahead)
            yield _read(self.file, start, min(READ, n_rows - start))


def store(
    source: BlockSource,
    *,
    n_objects: int | None = None,
    renumber: bool = True,
    share: tuple[int, int] = (0, 1),
    sampled: bool = True,
) -> Stored:
    """Check triplets and write them to a temporary file.

    Of the blocks, this process writes every so many-th: `share` says which, of how many.
    """
    with ExitStack() as until_done:
        try:
            file = until_done.enter_context(tempfile.TemporaryFile(prefix="nearer-"))
            ids, counts = _written(file, source, n_objects, share)
            n, names, new = _numbered(ids, n_objects, renumber, source.names)
            held, sample, n_seen = _arranged(file, new, counts, share[1], sampled)
        except OSError as error:
            what = f"cannot be kept in {tempfile.gettempdir()} ({error.strerror})"
            rule = "12 bytes a row are needed: set TMPDIR to a folder with room"
            raise InvalidInput(f"{source.where}: {what}; {rule}") from error
        until_done.pop_all()  # the file stays open
    return Stored(file, n, names, int(counts.sum()), n_seen, held, sample, source.unread)


def _written(
    file: IO[bytes], source: BlockSource, n: int | None, share: tuple[int, int]
) -> tuple[Rows, NDArray[np.int64]]:
    """Write the rows as they are; return the distinct ids, and how many rows have each hash."""
    ids, first_gap = np.empty(0, dtype=np.int32), 0
    counts = np.zeros(1 << _BITS, dtype=np.int64)
    n_parts = 0
    for block in source.blocks:
        for start in range(0, len(block), BLOCK):
            try:
                rows, _ = checks.triplets(block[start : start + BLOCK], n)
            except InvalidInput as error:
                read = f"after row {counts.sum():,}"
                raise InvalidInput(f"{source.where}, {read}: {error}") from None
            unknown = rows[rows >= first_gap]
            if unknown.size:
                ids = np.union1d(ids, unknown)
                first_gap = int(np.argmin(np.append(ids == np.arange(len(ids)), False)))
            counts += np.bincount(_hashes(rows), minlength=len(counts))
            if n_parts % share[1] == share[0]:
                file.write(rows.tobytes())
            n_parts += 1
    if not n_parts:
        rule = "there are no rows; (m, 3) rows (head, near, far) are needed"
        raise InvalidInput(f"{source.where}: {rule}")
    file.flush()
    return ids, counts


def _numbered(
    ids: Rows, n: int | None, renumber: bool, texts: dict[str, int] | None
) -> tuple[int, tuple[Any, ...] | None, Renumber | None]:
    """How many objects there are, their names, and how ids become numbers; None: they are."""
    if texts is not None:
        names = sorted_names(texts)
        places = np.empty(len(names), dtype=np.int32)
        places[[texts[name] for name in names]] = np.arange(len(names))
        return len(names), tuple(names), lambda rows: places[rows]
    high = int(ids[-1])
    if n is not None or not renumber or len(ids) == high + 1:
        return high + 1 if n is None else n, None, None
    return len(ids), tuple(ids.tolist()), lambda rows: np.searchsorted(ids, rows).astype(np.int32)


def _arranged(
    file: IO[bytes], new: Renumber | None, counts: NDArray[np.int64], n_shares: int, sampled: bool
) -> tuple[Rows, Rows, int]:
    """Renumber objects and move held-out rows to the end; return these, a sample, a count."""
    most = min(HELD_OUT * n_shares, int(counts.sum()) // FOLDS)
    # The first hashes belong to answers held out, the last ones to the sample.
    n_held = int(np.searchsorted(np.cumsum(counts), most, side="right"))
    n_sampled = np.searchsorted(np.cumsum(counts[::-1]), _fit.MANY * n_shares, side="right")
    first_sampled = len(counts) - int(n_sampled) * sampled
    size = os.fstat(file.fileno()).st_size // _ROW
    held, sample, n_seen = [_NONE], [_NONE], 0
    for start in range(0, size, READ):
        rows = _read(file, start, min(READ, size - start))
        hashes = _hashes(rows)
        rows = rows if new is None else new(rows)
        # np.compress takes a fifth of the time of rows[mask]
        held.append(np.compress(hashes < n_held, rows, axis=0))
        sample.append(np.compress(hashes >= first_sampled, rows, axis=0))
        seen = np.compress(hashes >= n_held, rows, axis=0)
        os.pwrite(file.fileno(), seen.tobytes(), n_seen * _ROW)
        n_seen += len(seen)
    last = np.concatenate(held)
    os.pwrite(file.fileno(), last.tobytes(), n_seen * _ROW)
    return last, np.concatenate(sample), n_seen


def _hashes(rows: Rows) -> NDArray[np.int64]:
    """A number that looks random, the same for the same three objects in any order."""
    mixed = rows.astype(np.uint64) * SPREAD | np.uint64(1)
    product = mixed[:, 0] * mixed[:, 1] * mixed[:, 2] * SPREAD
    return np.asarray(product >> np.uint64(64 - _BITS), dtype=np.int64)


def _read(file: IO[bytes], start: int, count: int) -> Rows:
    rows = np.empty((count, 3), dtype=np.int32)
    os.preadv(file.fileno(), [rows.data.cast("B")], start * _ROW)
    return rows
