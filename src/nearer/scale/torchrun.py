"""A fit by several processes that ``torchrun`` has started, each with a share of the answers.

Process 0 decides: it runs the optimiser as if it were alone. For each pass it sends the positions
to all others, every process passes over its own share, and the sums come back to process 0. That
moves as many bytes as summing the gradient everywhere would, nothing can run out of step, and only
process 0 holds what the optimiser remembers. The sums travel by NCCL between GPUs, by gloo between
processors; orders, which are eight numbers, always by gloo.

*A process that dies* closes its connections, and the others notice at once; one that hangs is
given up after `_PATIENCE`. Every process leaves a sign of life each second, so the others can say
who it was.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import numpy as np

from nearer.errors import InvalidInput, WorkerDied
from nearer.fitting.device import gpu, is_tensor, using, wants_gpu
from nearer.fitting.losses import LOSSES, Floats, Loss
from nearer.fitting.solver import Passes
from nearer.scale.fit_in_blocks import lay_out
from nearer.text import amount

__all__ = ["Processes", "is_one_of_many"]

_PATIENCE = 300.0  # seconds without an answer after which a process is given up
_BEAT = 1.0  # seconds between two signs of life
_STOP, _SUMS, _WRONG, _TOLD, _FEW = range(5)
_SEEN, _EVERY = range(2)


def is_one_of_many() -> bool:
    """Whether this process was started by torchrun, or another launcher, with others."""
    return int(os.environ.get("WORLD_SIZE", "1")) > 1


class Processes:
    """The processes of one fit, each with a GPU of its own or all on processors."""

    def __init__(self, device: str = "auto") -> None:
        if device == "cpu":
            os.environ["CUDA_VISIBLE_DEVICES"] = ""  # PyTorch has not looked yet: sums go by gloo
        try:
            import torch  # noqa: PLC0415 - an extra
            import torch.distributed as dist  # noqa: PLC0415
        except ImportError as error:
            raise InvalidInput(
                f"WORLD_SIZE={os.environ['WORLD_SIZE']}: several processes need PyTorch ({error}); "
                "install nearer[gpu]"
            ) from error
        _check_gpus(device, torch.cuda.device_count())
        self._torch, self._dist, self._handles = torch, dist, _EVERY
        patience = timedelta(seconds=_PATIENCE)
        self._store, self.rank, self.size = next(dist.rendezvous("env://", timeout=patience))
        gpus = torch.cuda.is_available()
        if gpus:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", self.rank)))
        with self._naming_the_dead():
            dist.init_process_group(
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
        signal.signal(signal.SIGTERM, self._told_to_stop)

    @property
    def share(self) -> tuple[int, int]:
        """Which share of the answers is this process's, and of how many."""
        return self.rank, self.size

    # --- process 0

    def layout(
        self, answers: Any, watch: Callable[[float], object] = bool
    ) -> tuple[Passes, Passes]:
        """Passes over the shares of all: the answers that are not held out, and every one."""
        seen, every = self._laid_out(answers, watch)
        first = _Shared(self, _SEEN, seen, self.total(len(seen)))
        return first, _Shared(self, _EVERY, every, self.total(len(every)))

    def dismiss(self) -> None:
        """All is done: the others may go."""
        self.order(_STOP)
        self._dist.destroy_process_group()

    def new_handle(self) -> int:
        """A number by which all know some answers."""
        self._handles += 1
        return self._handles

    def tensor(self, X: Floats) -> Any:
        """Positions as they are sent."""
        return self._torch.from_numpy(np.ascontiguousarray(X, dtype=np.float64))

    def order(self, what: int, *numbers: float) -> None:
        """Tell the others what to do next."""
        message = self._torch.zeros(8, dtype=self._torch.float64)
        message[: 1 + len(numbers)] = self._torch.tensor([what, *numbers], dtype=message.dtype)
        with self._naming_the_dead():
            self._dist.broadcast(message, 0)

    # --- all others

    def serve(self, answers: Any) -> None:
        """Do what process 0 orders, until it has all it wants."""
        torch = self._torch
        passes = dict(enumerate(self._laid_out(answers, bool)))
        for mine in (passes[_SEEN], passes[_EVERY]):
            self.total(len(mine))
        while True:
            message = torch.zeros(8, dtype=torch.float64)
            with self._naming_the_dead():
                self._dist.broadcast(message, 0)
            what, handle, d, *rest = message.tolist()
            if what == _STOP:
                self._dist.destroy_process_group()
                return
            mine = passes[int(handle)]
            if what == _FEW:
                seed, size, new = map(int, rest[:3])
                passes[new] = self.part(mine, size, seed)
                self.total(len(passes[new]))
                continue
            shape = answers.n_objects, int(d)
            if mine.on_gpu and what == _SUMS:
                X = torch.zeros(shape, dtype=torch.float32, device=gpu().DEVICE)
            else:
                X = torch.zeros(shape, dtype=torch.float64)
            self.spread(X)
            self.answer(mine, int(what), X, rest)

    def answer(self, mine: Any, what: int, X: Any, rest: list[float]) -> tuple[Any, Any]:
        """Work on one's own share, and send the result to process 0, which is given the sums."""
        torch = self._torch
        if what == _SUMS:
            value, array = mine.sums(_loss(rest), X if mine.on_gpu else X.numpy())
        elif what == _WRONG:
            value, array = mine.share_disobeyed(X.numpy()) * len(mine), np.zeros(0)
        else:
            value, array = 0.0, mine.information(X.numpy(), rest[0], rest[1])
        tensor = array if isinstance(array, torch.Tensor) else torch.from_numpy(array)
        total = torch.tensor([value], dtype=torch.float64)
        with self._naming_the_dead():
            self._dist.reduce(total, 0)
            if tensor.numel():
                self._dist.reduce(tensor, 0)
        return float(total), tensor

    # --- what all do

    def spread(self, X: Any) -> None:
        """Process 0's positions, everywhere."""
        with self._naming_the_dead():
            self._dist.broadcast(X, 0)

    def part(self, mine: Any, size: int, seed: int) -> Any:
        """One's own share of some answers drawn at random."""
        rng = np.random.default_rng([seed, self.rank])
        return mine.few(size, rng)

    def total(self, count: int) -> int:
        """How many there are in all shares."""
        number = self._torch.tensor([count])
        with self._naming_the_dead():
            self._dist.all_reduce(number)
        return int(number)

    def _laid_out(self, answers: Any, watch: Callable[[float], object]) -> Any:
        """On GPUs where all can, else on processors."""
        can = self._torch.tensor([int(wants_gpu(answers.n_kept, answers.n_objects))])
        with self._naming_the_dead():
            self._dist.all_reduce(can, self._dist.ReduceOp.MIN)
        if int(can):
            return lay_out(answers, watch)
        with using("cpu"):
            return lay_out(answers, watch)

    # --- who lives

    def _live(self) -> None:
        """Leave a sign of life, again and again."""
        beat = 0
        while True:
            beat += 1
            try:
                self._store.set(f"beat/{self.rank}", str(beat))
            except Exception:  # process 0, which has the store, is gone
                return
            time.sleep(_BEAT)

    def _told_to_stop(self, *_: Any) -> None:
        raise WorkerDied(f"process {self.rank} was told to stop, as another had failed; see above")

    @contextmanager
    def _naming_the_dead(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # PyTorch's errors of connections and time-outs
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun stops those that are left
            raise WorkerDied(
                f"{self._missing()} (noticed by process {self.rank}: "
                f"{str(error).splitlines()[0][:120]}); start all of them again, and the fit goes "
                "on from where it was"
            ) from error

    def _missing(self) -> str:
        """Who leaves no sign of life."""
        others = [rank for rank in range(self.size) if rank != self.rank]
        try:
            before = {rank: self._beat(rank) for rank in others}
            time.sleep(3 * _BEAT)
            dead = [rank for rank in others if self._beat(rank) == before[rank]]
            said = [f"process {rank} of {self.size} ({self._who(rank)})" for rank in dead]
        except RuntimeError:
            return f"process 0 of {self.size} died"
        if not said:
            return "the connection to another process was lost"
        return f"{' and '.join(said)} died or hangs"

    def _beat(self, rank: int) -> str:
        key = f"beat/{rank}"
        return str(self._store.get(key)) if self._store.check([key]) else ""

    def _who(self, rank: int) -> str:
        key = f"who/{rank}"
        return self._store.get(key).decode() if self._store.check([key]) else "never seen"


def _check_gpus(device: str, gpus: int) -> None:
    """Refuse processes that would share a GPU: NCCL would wait for ever."""
    here = int(os.environ.get("LOCAL_WORLD_SIZE") or int(os.environ.get("LOCAL_RANK", "0")) + 1)
    if 0 < gpus < here:
        raise InvalidInput(
            f"--device {device}: {here} processes for {amount(gpus, 'GPU')} of this "
            "machine, and each needs one of its own; start "
            f"torchrun --nproc-per-node={gpus}, or take --device cpu"
        )


def _loss(numbers: list[float]) -> Loss:
    kind, shape = int(numbers[0]), numbers[1]
    name = next(name for name, about in LOSSES.items() if about[0] == kind)
    return Loss(name, None if LOSSES[name][1] is None else shape)


class _Shared(Passes):
    """Passes of process 0 in which every process has a share, on processors or on GPUs."""

    def __init__(self, processes: Processes, handle: int, mine: Any, count: int) -> None:
        self._processes, self._handle, self._mine = processes, handle, mine
        self.n_objects, self.total, self.on_gpu = mine.n_objects, float(count), mine.on_gpu

    def __len__(self) -> int:
        return int(self.total)

    def fit(self, loss: Loss, X: Floats, **how: Any) -> Any:
        """Minimise a loss from one start, by the optimiser of the device."""
        return type(self._mine).fit(self, loss, X, **how)

    def sums(self, loss: Loss, X: Any) -> tuple[float, Any]:
        """One pass: the sum of the losses, and its gradient."""
        value, gradient = self._ask(_SUMS, X, loss.kind, loss.number)
        return value, gradient if self.on_gpu else gradient.numpy()

    def share_disobeyed(self, X: Floats) -> float:
        """How much of the answers the positions contradict."""
        return self._ask(_WRONG, X)[0] / self.total

    def information(self, X: Floats, lapse: float, tail: float) -> Floats:
        """Fisher information of each object's position, one ``(d, d)`` block an object."""
        return np.asarray(self._ask(_TOLD, X, lapse, tail)[1].numpy())

    def few(self, size: int, rng: np.random.Generator) -> Any:
        """Some of the answers of every share, drawn at random."""
        all_ = self._processes
        seed, each, handle = int(rng.integers(2**31)), -(-size // all_.size), all_.new_handle()
        all_.order(_FEW, self._handle, 0, seed, each, handle)
        mine = all_.part(self._mine, each, seed)
        return _Shared(all_, handle, mine, all_.total(len(mine)))

    def _ask(self, what: int, X: Any, *numbers: float) -> tuple[float, Any]:
        tensor = X if is_tensor(X) else self._processes.tensor(X)
        self._processes.order(what, self._handle, tensor.shape[1], *numbers)
        self._processes.spread(tensor)
        return self._processes.answer(self._mine, what, tensor, list(numbers))
