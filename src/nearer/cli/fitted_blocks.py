"""`nearer fit` of very many answers: block by block, with a bar, interruptible, resumable.

Where ``torchrun`` has started several processes, each of them keeps its share of the answers, and
process 0 alone prints and writes.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from nearer import _fit
from nearer._fit import Goal
from nearer.asking.progress import bar_progress
from nearer.checks import amount
from nearer.cli.fitted import Fitted, wanted_dimension
from nearer.cli.output import INTERRUPTED, make_folder, say, stopped_by_ctrl_c, visible
from nearer.errors import InvalidInput
from nearer.fitting.device import using
from nearer.scale.blocks import BlockSource, Stored, as_source, store
from nearer.scale.fit_in_blocks import Checkpoint, fit_many, lay_out
from nearer.scale.torchrun import Processes, is_one_of_many

__all__ = ["fit_blocks", "in_blocks"]

_MOST = 12  # dimensions tried, as in nearer.fit


def in_blocks(path: Path, columns: Mapping[str, str | int] | None) -> BlockSource | None:
    """The file in blocks where it has very many answers, or many processes to fit them."""
    source = as_source(path, columns)
    if is_one_of_many():
        if source is None:
            raise InvalidInput(
                f"{path}: several processes share .parquet and .npy files; write it as one of them"
            )
        return source
    many = source is not None and source.n_rows is not None and source.n_rows > _fit.MANY
    return source if many else None


@contextmanager
def fit_blocks(
    source: BlockSource, path: Path, out: str, *, device: str, **options: Any
) -> Iterator[Fitted | None]:
    """Fit the answers of a large file; None in processes that only help.

    What an interrupted fit would need is removed once the result is reported.
    """
    crew = Processes(device) if is_one_of_many() else None
    with using(device):
        if crew is not None and crew.rank:
            crew.serve(store(source, share=crew.share, sampled=False))
            yield None
            return
        kept, fitted = _fitted(source, path, make_folder(out), crew, **options)
    yield fitted
    kept.remove()


def _fitted(
    source: BlockSource,
    path: Path,
    folder: Path,
    crew: Processes | None,
    *,
    method: str,
    dim: str,
    bootstrap: int | None,
    max_iter: int,
    tol: float,
    seed: int | None,
) -> tuple[Checkpoint, Fitted]:
    if bootstrap:
        raise InvalidInput(
            f"--bootstrap {bootstrap}: answers that are fitted in blocks are not drawn again; "
            "leave it out"
        )
    seed = secrets.randbits(31) if seed is None else seed
    file, start = folder / INTERRUPTED, time.perf_counter()
    with bar_progress() as (step, share), stopped_by_ctrl_c(partial(_where_it_is, file)):
        step(escape(visible(f"reading {path}")))
        shown = replace(source, blocks=_watched(source, share))
        whose = (0, 1) if crew is None else crew.share
        answers = store(shown, share=whose, sampled=dim == "auto")
        say(_read(answers), err=True)
        d, n = wanted_dimension(dim, answers.n_objects), answers.n_objects
        goal = Goal(method, None if d == "auto" else d, min(_MOST, n - 1), max_iter, tol)
        kept = Checkpoint(file, step)
        if kept.take_up(answers, goal):
            say(f"going on from {file}, which an interrupted fit has left", err=True)
        layout = partial(lay_out if crew is None else crew.layout, watch=share)
        embedding = fit_many(answers, goal, np.random.default_rng(seed), layout=layout, kept=kept)
        if crew is not None:
            crew.dismiss()
    seconds = time.perf_counter() - start
    labels = [str(i) for i in range(n)]
    return kept, Fitted(path, folder, embedding, seconds, seed, answers.n_rows, labels)


def _watched(source: BlockSource, share: Callable[[float], object]) -> Iterator[Any]:
    """The blocks, while the bar shows how many of their rows were read."""
    done = 0
    for block in source.blocks:
        yield block
        done += len(block)
        share(done / max(source.n_rows or done, 1))


def _read(answers: Stored) -> str:
    said = (
        f"{amount(answers.n_rows, 'triplet')} over {answers.n_objects:,} objects, fitted in blocks"
    )
    return f"{said}\ncolumns not used: {', '.join(answers.unread)}" if answers.unread else said


def _where_it_is(file: Path) -> str:
    """What is kept after Ctrl-C, and how to go on."""
    if not file.is_file():
        return "interrupted; nothing was reached yet; the same command begins anew"
    return f"interrupted; what was reached is kept in {file}; the same command goes on from there"
