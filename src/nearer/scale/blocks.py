"""Very many triplets: read block by block, and stored on disk in the form that fits read.

docs/scale.md shows how a fit uses them, also in several processes. A block is an ``(m, 3)`` array
of whole numbers (head, near, far), from Parquet, from an ``.npy`` file or from Python.

Triplets are stored as three int32 a row, about objects from 0 to n − 1. Those held out come last,
so that a fit to all others is a fit to a shorter file. They, and the sample that is in memory, are
chosen by a hash of the three objects of a question, so that all answers to one question stay
together; counts of the first bits of the hash make the parts as large as they may be.

Passes add the sums of one block after another, so that a fit gives the same bits every time. With
several processes, process 0 runs the optimiser as if it were alone. That moves as many bytes as
summing the gradient in every process would, and processes cannot diverge.
"""

from __future__ import annotations

import itertools
import math
import os
import signal
import socket
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from nearer import _fit, checks
from nearer.checks import amount
from nearer.errors import InvalidInput, WorkerDied
from nearer.files import as_path, one_message, parquet_files, parquet_texts
from nearer.fitting.heldout import FOLDS
from nearer.fitting.solver import Loss, Passes, using, violated, wants_gpu
from nearer.questions import SPREAD, Floats
from nearer.triplets.columns import by_choice, by_name
from nearer.triplets.read import sorted_names

Rows = NDArray[np.int32]
Renumber = Callable[[Rows], Rows]

BLOCK = 1 << 20  # rows read at a time: 24 MB as they are in most files
HELD_OUT = 1 << 17  # answers; the standard error of their accuracy is below .0014
READ = _fit.MANY  # rows a block of a pass: as many as are fitted without blocks
_PATIENCE = 300.0  # seconds without an answer after which a process counts as dead
_ROW = 3 * np.dtype(np.int32).itemsize  # bytes
# Bits of a hash: of up to HELD_OUT² answers, fewer share a value than are held out.
_BITS = HELD_OUT.bit_length() - 1
_THREE = ("head", "near", "far")
_NONE = np.empty((0, 3), dtype=np.int32)


@dataclass
class BlockSource:
    """Blocks of triplets from somewhere, to be read once."""

    where: str  # as messages call it
    blocks: Iterable[NDArray[Any]]
    n_rows: int  # of an iterator: those that were read to see whether there are very many
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
    """Rows of an array on disk, read when they are needed."""
    load = partial(np.load, path, mmap_mode="r", allow_pickle=False)
    try:
        whole = load()
    except (ValueError, OSError, EOFError):
        return None  # the reader of whole files says what is wrong
    if not _are_triplets(whole):
        return None
    cut = range(0, len(whole), BLOCK)
    # each block is mapped by itself, since pages of a map count as used memory
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
        opened = partial(pq.ParquetFile, file, pre_buffer=False, buffer_size=BLOCK)
        return opened(read_dictionary=parquet_texts(opened())[0])


def _three(
    path: Path, header: list[str], columns: Mapping[str, str | int] | None
) -> tuple[list[str], tuple[str, ...]]:
    """The names of the three columns, and those that are not used."""
    parts = by_name(str(path), header)
    if columns is not None:
        parts = by_choice(str(path), columns, header, len(header))
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
    """A column of a batch; texts become numbers of objects."""
    if names is None:
        return np.asarray(column)
    coded = column if hasattr(column, "dictionary") else column.dictionary_encode()
    texts, rows = coded.dictionary.cast("string").to_pylist(), np.asarray(coded.indices)
    used, codes = np.flatnonzero(np.bincount(rows)), np.empty(len(texts), dtype=np.int64)
    codes[used] = [names.setdefault(texts[i], len(names)) for i in used]
    return np.asarray(codes[rows])


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
    def n_stored(self) -> int:
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

    With `share` = (i, k), this process writes only every k-th block, from the i-th on.
    """
    with ExitStack() as until_done:
        try:
            file = until_done.enter_context(tempfile.TemporaryFile(prefix="nearer-"))
            ids, counts = _written(file, source, n_objects, share)
            n, names, new = _numbered(ids, n_objects, renumber, source.names)
            held, sample, n_seen = _arranged(file, new, counts, share[1], sampled)
        except OSError as error:
            what = f"cannot be stored in {tempfile.gettempdir()} ({error.strerror})"
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
    """The number of objects, their names, and a map from ids to numbers; None: ids are numbers."""
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
    """A hash of three objects, the same in any order."""
    mixed = rows.astype(np.uint64) * SPREAD | np.uint64(1)
    product = mixed[:, 0] * mixed[:, 1] * mixed[:, 2] * SPREAD
    return np.asarray(product >> np.uint64(64 - _BITS), dtype=np.int64)


def _read(file: IO[bytes], start: int, count: int) -> Rows:
    rows = np.empty((count, 3), dtype=np.int32)
    os.preadv(file.fileno(), [rows.data.cast("B")], start * _ROW)
    return rows


# --- passes --------------------------------------------------------------------------------------


def lay_out(answers: Stored) -> tuple[Passes, Passes]:
    """Passes over the answers not held out, and over all; on a GPU if one is wanted."""
    n = answers.n_objects
    if wants_gpu(answers.n_stored, n):
        from nearer.scale.gpu import GpuPasses  # noqa: PLC0415 - imports PyTorch

        on_gpu = GpuPasses.of_blocks(answers.blocks(answers.n_stored), answers.n_stored, n)
        return on_gpu.part(slice(answers.n_seen)), on_gpu
    seen, every = (
        BlockPasses(partial(answers.blocks, n_rows), n_rows, n)
        for n_rows in (answers.n_seen, answers.n_stored)
    )
    return seen, every


class BlockPasses(Passes):
    """Passes over answers, each of which reads all blocks again."""

    def __init__(self, blocks: Callable[[], Iterable[Rows]], n_rows: int, n_objects: int) -> None:
        self._blocks, self.n_objects, self.total = blocks, n_objects, float(n_rows)

    def __len__(self) -> int:
        return int(self.total)

    def sums(self, loss: Loss, X: Floats) -> tuple[float, Floats]:
        """One pass: the sum of the losses, and its gradient."""
        value, gradient = 0.0, np.zeros(X.shape)
        for rows in self._blocks():
            more, slope = loss.sums(X, rows)
            value += more
            gradient += slope
        return value, gradient

    def share_violated(self, X: Floats) -> float:
        """Share of the answers that the positions violate."""
        wrong = sum(int(violated(X, rows).sum()) for rows in self._blocks())
        return wrong / max(self.total, 1.0)

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        n, d = X.shape
        total = np.zeros((n, d, d))
        for rows in self._blocks():
            total += Passes(rows, None, n).information(X, lapse, tail)
        return total

    def few(self, size: int, rng: np.random.Generator) -> Passes:
        """Some of the answers, drawn at random from every block, in memory."""
        share = size / max(len(self), 1)
        drawn, n = np.empty((math.ceil(share * len(self)), 3), dtype=np.int32), 0
        for rows in self._blocks():
            count = min(math.ceil(share * len(rows)), len(drawn) - n)
            drawn[n : n + count] = rows[np.sort(rng.integers(len(rows), size=count))]
            n += count
        # A pass over a block needs less memory than one over the whole sample.
        cut = range(0, n, READ)
        parts = [drawn[start : min(start + READ, n)] for start in cut]
        return BlockPasses(lambda: parts, n, self.n_objects)


# --- several processes ---------------------------------------------------------------------------


# The sums of a pass that each process computes over its share.
_WORK: dict[str, Callable[..., Iterable[Any]]] = {
    "sums": lambda mine, X, loss: mine.sums(loss, X),
    "violated": lambda mine, X: [mine.share_violated(X) * len(mine)],
    "information": lambda mine, X, lapse, tail: [mine.information(X, lapse, tail)],
}


def is_one_of_many() -> bool:
    """Whether this process was started by torchrun, or another launcher, with others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


class Processes:
    """The processes of one fit, each with a GPU of its own or all on processors."""

    def __init__(self, device: str = "auto") -> None:
        if device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # PyTorch has not looked yet: sums go by gloo
        with one_message(f"WORLD_SIZE={os.environ['WORLD_SIZE']}", "a fit by several processes"):
            import torch  # noqa: PLC0415 - an extra
            import torch.distributed as dist  # noqa: PLC0415
        _check_gpus(device, torch.cuda.device_count())
        self._torch, self._dist = torch, dist
        self._passes: list[Any] = []  # over this process's own share, in the order of their making
        patience = timedelta(seconds=_PATIENCE)
        self._store, self.rank, self.size = next(dist.rendezvous("env://", timeout=patience))
        self.share = self.rank, self.size  # the part of the answers of this process
        gpus = torch.cuda.is_available()
        if gpus:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", self.rank)))
        self._together(
            dist.init_process_group,
            "cpu:gloo,cuda:nccl" if gpus else "gloo",
            store=dist.PrefixStore("group", self._store),
            rank=self.rank,
            world_size=self.size,
            timeout=patience,
        )
        self._store.set(f"who/{self.rank}", f"{socket.gethostname()}, process {os.getpid()}")
        threading.Thread(target=self._live, daemon=True).start()
        if self.rank:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for process 0
        signal.signal(signal.SIGTERM, self._stop)

    def layout(self, answers: Stored) -> tuple[Passes, Passes]:
        """Passes over the shares of all, on GPUs if every process can use its own."""
        can = self._torch.tensor([int(wants_gpu(answers.n_stored, answers.n_objects))])
        self._together(self._dist.all_reduce, can, self._dist.ReduceOp.MIN)
        with nullcontext() if int(can) else using("cpu"):
            seen, every = lay_out(answers)
        return self._shared(seen), self._shared(every)

    def serve(self, answers: Stored) -> None:
        """Execute orders of process 0 until it dismisses the others."""
        self.layout(answers)
        while (order := self._receive_order(None)) is not None:
            self._work_on(None, *order)
        self._dist.destroy_process_group()

    def dismiss(self) -> None:
        """Process 0: all is done."""
        self._receive_order(None)
        self._dist.destroy_process_group()

    def order(self, which: int, name: str, X: Any, *arguments: Any) -> Any:
        """Process 0: let all do the same with their shares of some answers."""
        if isinstance(X, np.ndarray):
            X = self._torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64))
        self._receive_order((which, name, X.shape[1], *arguments))
        return self._work_on(X, which, name, X.shape[1], *arguments)

    # --- the work of every process

    def _receive_order(self, order: Any) -> Any:
        """The order that process 0 passes here, in every process."""
        box, cpu = [order], self._torch.device("cpu")
        self._together(self._dist.broadcast_object_list, box, 0, device=cpu)
        return box[0]

    def _work_on(self, X: Any, which: int, name: str, d: int, *arguments: Any) -> Any:
        """Work on one's own share, for most orders at positions that process 0 sends."""
        mine = self._passes[which]
        if name == "few":
            seed, size = arguments
            return self._shared(mine.few(size, np.random.default_rng([seed, self.rank])))
        on_gpu = mine.on_gpu and name == "sums"
        if X is None:
            kind, place = (self._torch.float32, "cuda") if on_gpu else (self._torch.float64, "cpu")
            X = self._torch.empty((mine.n_objects, d), dtype=kind, device=place)
        self._together(self._dist.broadcast, X, 0)
        parts = _WORK[name](mine, X if on_gpu else X.numpy(), *arguments)
        is_tensor, tensor = self._torch.is_tensor, self._torch.as_tensor
        sums = [part if is_tensor(part) else tensor(np.asarray(part)) for part in parts]
        for part in sums:
            self._together(self._dist.reduce, part, 0)
        return sums

    def _shared(self, mine: Any) -> Passes:
        """The number of these passes, the same in all processes, and the number of all answers."""
        self._passes.append(mine)
        number = self._torch.tensor([len(mine)])
        self._together(self._dist.all_reduce, number)
        return _SharedPasses(self, len(self._passes) - 1, mine, int(number))

    def _together(self, collective: Callable[..., object], *arguments: Any, **options: Any) -> None:
        """Communicate with the others; an error names the one that is missing."""
        try:
            collective(*arguments, **options)
        except RuntimeError as error:  # PyTorch's errors of connections and time-outs
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun stops those that are left
            noticed = f"noticed by process {self.rank}: {str(error).splitlines()[0][:120]}"
            message = f"{self._missing()} ({noticed}); start all of them again to continue"
            raise WorkerDied(message) from error

    # --- signs of life

    def _live(self) -> None:
        for beat in itertools.count():
            try:
                self._store.set(f"beat/{self.rank}", str(beat))
            except Exception:  # process 0, which has the store, has ended
                return
            time.sleep(1.0)

    def _stop(self, *_: Any) -> None:
        raise WorkerDied(
            f"process {self.rank} stopped because another process had failed; see above"
        )

    def _missing(self) -> str:
        """The processes that no longer respond."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            before = [self._last_sign("beat", rank) for rank in others]
            time.sleep(3.0)
            dead = [
                f"process {rank} of {self.size} ({self._last_sign('who', rank)})"
                for rank, beat in zip(others, before, strict=True)
                if self._last_sign("beat", rank) == beat
            ]
        except RuntimeError:
            return f"process 0 of {self.size} died"
        named = f"{' and '.join(dead)} died or hangs"
        return named if dead else "the connection to another process was lost"

    def _last_sign(self, what: str, rank: int) -> str:
        key = f"{what}/{rank}"
        return self._store.get(key).decode() if self._store.check([key]) else "never seen"


def _check_gpus(device: str, gpus: int) -> None:
    """Refuse processes that would share a GPU: NCCL would wait for ever."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE") or int(os.environ.get("LOCAL_RANK", "0")) + 1)
    if 0 < gpus < here:
        what = f"{here} processes for {amount(gpus, 'GPU')} of this machine"
        remedy = f"start torchrun --nproc-per-node={gpus}, or take --device cpu"
        raise InvalidInput(f"--device {device}: {what}, and each needs its own; {remedy}")


class _SharedPasses(Passes):
    """Passes of process 0 in which every process has a share, on processors or on GPUs."""

    def __init__(self, processes: Processes, which: int, mine: Any, count: int) -> None:
        self._processes, self._which, self._mine = processes, which, mine
        self.n_objects, self.total, self.on_gpu = mine.n_objects, float(count), mine.on_gpu

    def __len__(self) -> int:
        return int(self.total)

    def fit(self, loss: Loss, X: Floats, **how: Any) -> Any:
        return type(self._mine).fit(self, loss, X, **how)

    def sums(self, loss: Loss, X: Any) -> tuple[float, Any]:
        value, gradient = self._processes.order(self._which, "sums", X, loss)
        return float(value), gradient if self.on_gpu else gradient.numpy()

    def share_violated(self, X: Floats) -> float:
        (wrong,) = self._processes.order(self._which, "violated", X)
        return float(wrong) / self.total

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        (total,) = self._processes.order(self._which, "information", X, lapse, tail)
        return np.asarray(total.numpy())

    def few(self, size: int, rng: np.random.Generator) -> Any:
        each = -(-size // self._processes.size)
        nowhere = np.empty((self.n_objects, 0))
        return self._processes.order(self._which, "few", nowhere, int(rng.integers(2**31)), each)
