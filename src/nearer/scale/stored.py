"""Very many triplets on disk, as fits read them: three int32 a row, objects from 0 to n − 1.

Blocks are checked as they come and written to a temporary file that vanishes with the process.
Objects are the distinct ids, ascending; where ids have gaps, or are names, the file is rewritten
once. Every pass of a fit then streams the file, the next block read while one is worked on.

*Two parts are set aside* by a number made of the three objects of a question, so that all answers
to one question stay together, and which they are does not depend on their order. Some answers are
*held out*: they stand at the end of the file, so that a fit to all but them is a fit to a shorter
file. A *sample* is kept in memory besides. How many there will be is not known while reading: when
there are too many, half of the numbers no longer belong.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nearer import checks
from nearer.errors import InvalidInput
from nearer.questions import find
from nearer.scale.blocks import BLOCK, BlockSource
from nearer.triplets.read import sorted_names

__all__ = ["Stored", "store"]

Rows = NDArray[np.int32]
Numbers = NDArray[np.uint64]

HELD_OUT = 1 << 17  # answers; the standard error of their accuracy is below .0014
SAMPLE = 1 << 22  # answers; what a fit makes of them takes 100 bytes each
_READ = 1 << 22  # rows a block of a pass: two parts for two cores where there are 10⁶ objects
_ROW = 12  # bytes
_HASHES = 1 << 32
_HELD_SHARE = 32  # one of so many is held out at first
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_DENSE = 1 << 27  # ids below this are marked in a table of one byte each
_NONE = np.empty((0, 3), dtype=np.int32)


@dataclass(frozen=True)
class Stored:
    """Checked triplets on disk.

    Attributes
    ----------
    n_objects, names
        How many objects there are, and what they are called; None: their numbers.
    n_rows
        How many rows were read, those of other shares included.
    n_kept, n_seen
        How many rows this file has, and how many of them come before those held out.
    held_out, sample
        Rows of the two parts, all of them in every share.
    unread
        Columns of the source that were not used.
    """

    file: IO[bytes]
    n_objects: int
    names: tuple[Any, ...] | None
    n_rows: int
    n_kept: int
    n_seen: int
    held_out: Rows
    sample: Rows
    unread: tuple[str, ...]

    def __post_init__(self) -> None:
        weakref.finalize(self, self.file.close)

    def blocks(self, n_rows: int) -> Iterator[Rows]:
        """The first rows, a block at a time; the next is read while one is worked on."""
        with ThreadPoolExecutor(1) as reader:

            def begin(start: int) -> Future[Rows]:
                return reader.submit(_read, self.file, start, min(_READ, n_rows - start))

            coming: deque[Future[Rows]] = deque()
            for start in range(0, n_rows, _READ):
                coming.append(begin(start))
                if start:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()

    def rows(self) -> Rows:
        """All rows at once."""
        return _read(self.file, 0, self.n_kept)


def store(
    source: BlockSource,
    *,
    n_objects: int | None = None,
    renumber: bool = True,
    share: tuple[int, int] = (0, 1),
    sampled: bool = True,
) -> Stored:
    """Check triplets and write them to a temporary file.

    Parameters
    ----------
    source
        Where they come from.
    n_objects
        How many objects there are; None: as many as there are ids.
    renumber
        Whether objects are the distinct ids; otherwise object i of the source is object i.
    share
        (which, of how many): of the blocks only every so many-th is written. All are read.
    sampled
        Whether a sample is wanted.
    """
    file = tempfile.TemporaryFile(prefix="nearer-")  # noqa: SIM115 - as long as what is returned
    kept = None
    try:
        writing = _Writing(file, n_objects, share, sampled)
        for block in source.blocks:
            writing.add(block, source.where)
        kept = writing.finished(source, renumber)
        return kept
    except OSError as error:
        raise InvalidInput(
            f"{source.where}: cannot be kept in {tempfile.gettempdir()} ({error.strerror}); 12 "
            "bytes a row are needed: set TMPDIR to a folder with room"
        ) from error
    finally:
        if kept is None:
            file.close()


class _Writing:
    """A file of triplets that grows."""

    def __init__(
        self, file: IO[bytes], n_objects: int | None, share: tuple[int, int], sampled: bool
    ) -> None:
        self._file, self._n, (self._which, self._of) = file, n_objects, share
        self._ids = _Ids()
        self._held = _Aside(HELD_OUT, _HASHES // _HELD_SHARE)
        self._sample = _Aside(SAMPLE, _HASHES) if sampled else None
        self._count = self._blocks = 0

    def add(self, block: Any, where: str) -> None:
        try:
            rows = np.asarray(block)
            if rows.shape == (0, 3):
                return
            for start in range(0, len(np.atleast_1d(rows)), BLOCK):
                self._add(checks.triplets(rows[start : start + BLOCK], self._n)[0])
        except InvalidInput as error:
            raise InvalidInput(f"{where}, after row {self._count:,}: {error}") from None

    def _add(self, rows: Rows) -> None:
        numbers = _hashes(rows)
        self._ids.add(rows)
        if self._sample is not None:
            self._sample.add(rows, np.uint64(_HASHES - 1) - numbers)
        if self._blocks % self._of == self._which:
            self._file.write(_some(rows, numbers >= self._held.limit).tobytes())
        released = self._held.add(rows, numbers)
        if self._which == 0:
            self._file.write(released.tobytes())
        self._count += len(rows)
        self._blocks += 1

    def finished(self, source: BlockSource, renumber: bool) -> Stored:
        if not self._count:
            raise InvalidInput(
                f"{source.where}: there are no rows; (m, 3) rows (head, near, far) are needed"
            )
        n, names, new = self._ids.numbered(self._n, renumber, source.names)
        held, sample = self._held.rows, _NONE if self._sample is None else self._sample.rows
        self._file.flush()
        seen = os.fstat(self._file.fileno()).st_size // _ROW
        if new is not None:
            held, sample = new(held), new(sample)
            for start in range(0, seen, _READ):
                block = new(_read(self._file, start, min(_READ, seen - start)))
                os.pwrite(self._file.fileno(), block.tobytes(), start * _ROW)
        if self._which == 0:
            self._file.write(held.tobytes())
            self._file.flush()
        kept = seen + len(held) * (self._which == 0)
        return Stored(self._file, n, names, self._count, kept, seen, held, sample, source.unread)


class _Aside:
    """Rows whose number is below a limit; it is halved when there are too many of them."""

    def __init__(self, most: int, limit: int) -> None:
        self.limit, self._most = limit, most
        self._rows: list[Rows] = []
        self._numbers: list[Numbers] = []

    @property
    def rows(self) -> Rows:
        return np.concatenate([_NONE, *self._rows])

    def add(self, rows: Rows, numbers: Numbers) -> Rows:
        """Take in rows; return those that were set aside, now or before, and no longer are."""
        mine = numbers < self.limit
        self._rows.append(_some(rows, mine))
        self._numbers.append(numbers[mine])
        released = []
        while sum(map(len, self._rows)) > self._most and self.limit > 1:
            self.limit //= 2
            rows, numbers = self.rows, np.concatenate(self._numbers)
            kept = numbers < self.limit
            released.append(_some(rows, ~kept))
            self._rows, self._numbers = [_some(rows, kept)], [numbers[kept]]
        return np.concatenate([_NONE, *released])


class _Ids:
    """The distinct ids met so far."""

    def __init__(self) -> None:
        self._marks = np.zeros(BLOCK, dtype=np.bool_)
        self._large = np.empty(0, dtype=np.int32)
        self._known = 0  # all ids below this have been met

    def add(self, rows: Rows) -> None:
        ids = rows.ravel()
        if int(ids.max()) < self._known:
            return
        if int(ids.max()) >= _DENSE:
            self._large = np.union1d(self._large, ids[ids >= _DENSE])
            ids = ids[ids < _DENSE]
        wanted = int(ids.max(initial=-1)) + 1
        if wanted > len(self._marks):
            more = max(wanted, min(2 * len(self._marks), _DENSE)) - len(self._marks)
            self._marks = np.concatenate([self._marks, np.zeros(more, dtype=np.bool_)])
        self._marks[ids] = True
        self._known = len(self._marks) if self._marks.all() else int(np.argmin(self._marks))

    def numbered(
        self, n: int | None, renumber: bool, texts: dict[str, int] | None
    ) -> tuple[int, tuple[Any, ...] | None, Callable[[Rows], Rows] | None]:
        """How many objects there are, their names, and how ids become numbers; None: they are."""
        if texts is not None:
            names = sorted_names(texts)
            places = np.empty(len(names), dtype=np.int32)
            places[[texts[name] for name in names]] = np.arange(len(names))
            return len(names), tuple(names), lambda rows: places[rows]
        ids = np.concatenate([np.flatnonzero(self._marks), self._large])
        high = int(ids[-1])
        if n is not None or not renumber or len(ids) == high + 1:
            return high + 1 if n is None else n, None, None
        if len(self._large):
            return len(ids), tuple(ids.tolist()), lambda rows: find(ids, rows)[0].astype(np.int32)
        table = (np.cumsum(self._marks, dtype=np.int64) - 1).astype(np.int32)
        return len(ids), tuple(ids.tolist()), lambda rows: table[rows]


def _some(rows: Rows, wanted: NDArray[np.bool_]) -> Rows:
    """``rows[wanted]`` in a fifth of the time."""
    return np.compress(wanted, rows, axis=0)


def _hashes(rows: Rows) -> Numbers:
    """A number below 2³² that looks random, the same for the same three objects in any order."""
    mixed = rows.astype(np.uint64) * _SPREAD | np.uint64(1)
    return np.asarray((mixed[:, 0] * mixed[:, 1] * mixed[:, 2] * _SPREAD) >> np.uint64(32))


def _read(file: IO[bytes], start: int, count: int) -> Rows:
    rows = np.empty((count, 3), dtype=np.int32)
    left, at = rows.data.cast("B"), start * _ROW
    while left:
        done = os.preadv(file.fileno(), [left], at)
        if not done:
            raise OSError("the temporary file of the triplets is shorter than it was")
        left, at = left[done:], at + done
    return rows
