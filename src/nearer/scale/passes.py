"""Passes over stored answers: by this process, by its GPU, or shared among processes.

Passes over answers on disk read block after block and add the sums in that order, so that a fit
gives the same bits every time.

*Several processes* that ``torchrun`` has started have a share of the answers each. Process 0 runs
the optimiser as if it were alone. For each pass it sends the positions to all others, and the sums
over their shares come back to it. That moves as many bytes as summing the gradient everywhere
would, and nothing can run out of step. A process that dies closes its connections, which the others
notice at once. Every process leaves a sign of life each second, so that the others can name the one
that is missing.
"""

from __future__ import annotations

import itertools
import math
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np

from nearer.checks import amount
from nearer.errors import InvalidInput, WorkerDied
from nearer.files import one_message
from nearer.fitting.solver import Loss, Passes, using, violated, wants_gpu
from nearer.questions import Floats
from nearer.scale import blocks
from nearer.scale.blocks import Rows, Stored

_PATIENCE = 300.0  # seconds without an answer after which a process is given up


def lay_out(answers: Stored) -> tuple[Passes, Passes]:
    """Passes over the answers not held out, and over all; on a GPU if one is wanted."""
    n = answers.n_objects
    if wants_gpu(answers.n_kept, n):
        from nearer.scale.gpu import GpuPasses  # noqa: PLC0415 - imports PyTorch

        on_gpu = GpuPasses.of_blocks(answers.blocks(answers.n_kept), answers.n_kept, n)
        return on_gpu.part(slice(answers.n_seen)), on_gpu
    seen, every = (
        BlockPasses(partial(answers.blocks, n_rows), n_rows, n)
        for n_rows in (answers.n_seen, answers.n_kept)
    )
    return seen, every


class BlockPasses(Passes):
    """Passes over answers that are read block by block, in every pass again."""

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
        # A pass over a block holds fewer gradients than one over all that are drawn.
        cut = range(0, n, blocks.READ)
        parts = [drawn[start : min(start + blocks.READ, n)] for start in cut]
        return BlockPasses(lambda: parts, n, self.n_objects)


# --- several processes ---------------------------------------------------------------------------


# What each process adds to the sums of a pass over its own share.
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
        self.share = self.rank, self.size  # which part of the answers is this process's
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
        can = self._torch.tensor([int(wants_gpu(answers.n_kept, answers.n_objects))])
        self._together(self._dist.all_reduce, can, self._dist.ReduceOp.MIN)
        with nullcontext() if int(can) else using("cpu"):
            seen, every = lay_out(answers)
        return self._shared(seen), self._shared(every)

    def serve(self, answers: Stored) -> None:
        """Do what process 0 orders, until it dismisses the others."""
        self.layout(answers)
        while (order := self._heard(None)) is not None:
            self._work_on(None, *order)
        self._dist.destroy_process_group()

    def dismiss(self) -> None:
        """Process 0: all is done."""
        self._heard(None)
        self._dist.destroy_process_group()

    def order(self, which: int, name: str, X: Any, *arguments: Any) -> Any:
        """Process 0: let all do the same with their shares of some answers."""
        if isinstance(X, np.ndarray):
            X = self._torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64))
        self._heard((which, name, X.shape[1], *arguments))
        return self._work_on(X, which, name, X.shape[1], *arguments)

    # --- what all do

    def _heard(self, order: Any) -> Any:
        """What process 0 orders, which is what it passes here."""
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
        """One's own passes by a number that is the same for all, and how many answers all have."""
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
            raise WorkerDied(
                f"{self._missing()} (noticed by process {self.rank}: "
                f"{str(error).splitlines()[0][:120]}); start all of them again, and the fit goes "
                "on from where it was"
            ) from error

    # --- signs of life

    def _live(self) -> None:
        for beat in itertools.count():
            try:
                self._store.set(f"beat/{self.rank}", str(beat))
            except Exception:  # process 0, which has the store, is gone
                return
            time.sleep(1.0)

    def _stop(self, *_: Any) -> None:
        raise WorkerDied(f"process {self.rank} was told to stop, as another had failed; see above")

    def _missing(self) -> str:
        """The processes that leave no sign of life."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            before = [self._noted("beat", rank) for rank in others]
            time.sleep(3.0)
            dead = [
                f"process {rank} of {self.size} ({self._noted('who', rank)})"
                for rank, beat in zip(others, before, strict=True)
                if self._noted("beat", rank) == beat
            ]
        except RuntimeError:
            return f"process 0 of {self.size} died"
        named = f"{' and '.join(dead)} died or hangs"
        return named if dead else "the connection to another process was lost"

    def _noted(self, what: str, rank: int) -> str:
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
