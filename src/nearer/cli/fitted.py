"""What `nearer fit` computes with the library, writes and prints."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer import __version__
from nearer._fit import fit
from nearer.asking.progress import step_progress
from nearer.checks import amount
from nearer.cli.embed import undetermined
from nearer.cli.output import (
    check_files,
    check_folder,
    make_folder,
    print_lines,
    print_table,
)
from nearer.dimension import DimensionEstimate
from nearer.embedding import Embedding
from nearer.errors import AnswersWarning, InvalidInput
from nearer.files import json_text, parquet_files, positions_text, sha256, table_text, written_whole
from nearer.fitting.device import using
from nearer.fitting.posterior import MarginForecast
from nearer.fitting.solver import margins
from nearer.triplets import Triplets
from nearer.triplets.report import Report

__all__ = [
    "Fitted",
    "check_destinations",
    "check_options",
    "fit_file",
    "report_fit",
    "wanted_dimension",
]

_MOST_DRAWN = 1000  # objects with ellipses, pictures and printed names; more hide each other

_FILES = ("dimension.png", "embedding.csv", "fit.json", "map.png", "people.csv")

_MOST_NAMED = 10  # people in a line; the others are in people.csv


@dataclass
class Fitted:
    """A finished fit, ready to be reported."""

    source: Path
    folder: Path
    embedding: Embedding
    seconds: float
    seed: int
    n_answers: int
    labels: Sequence[str]
    contradictions: int | None = None  # not counted for very many answers
    command: str = ""

    @property
    def estimate(self) -> DimensionEstimate | None:
        """How the dimension was found; None where it was given."""
        found: DimensionEstimate | None = self.embedding.details["estimate"]
        return found

    @property
    def names(self) -> list[str]:
        """What the objects on the map are called."""
        return [str(name) for name in self.embedding.names or self.labels]

    @property
    def origin(self) -> dict[str, str]:
        """Which file it was made from, such that it can be told from another."""
        files = parquet_files(self.source) or [self.source]
        sums = [sha256(file) for file in files]
        whole = sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()
        return {"file": str(self.source), "sha256": whole}

    @property
    def pictures(self) -> list[Path] | None:
        """The files that the objects are named after, where they are pictures beside the source."""
        from nearer.plotting.map_inputs import PICTURES

        folder = self.source.parent.resolve()
        files = [self.source.parent / name for name in self.names]
        drawn = all(
            file.suffix.lower() in PICTURES
            and os.path.isfile(file)
            and file.resolve().is_relative_to(folder)  # a name must not lead to other folders
            for file in files
        )
        return files if drawn else None

    def summary(self) -> dict[str, Any]:
        """The figures of the fit, as ``--json`` prints them."""
        e, held, found = self.embedding, self.embedding.held_out, self.estimate
        return {
            "n_objects": len(e.positions),
            "n_answers": e.n_comparisons,
            "n_triplets": self.n_answers,
            "contradictions": self.contradictions,
            "method": e.details["method"],
            "dimension": e.dimension,
            "dimension_low": e.dimension_low,
            "dimension_high": e.dimension_high,
            "determined": e.determined,
            "dimension_curve": None
            if found is None
            else {
                "method": found.method,
                "determined": found.determined,
                "dimensions": found.dimensions.tolist(),
                "scores": found.scores.tolist(),
                "errors": found.errors.tolist(),
                "probabilities": [_chance(found, d) for d in found.dimensions.tolist()],
            },
            "held_out_accuracy": None if held is None else held.accuracy,
            "held_out_low": None if held is None else held.low,
            "held_out_high": None if held is None else held.high,
            "held_out_answers": 0 if held is None else held.n_trials,
            "accuracy": float(MarginForecast(margins(e.positions, e.triplets)).right.mean())
            if len(e.triplets)
            else 1 - (e.error_rate or 0.0),
            "noise": e.error_rate,
            "contrary_people": self._flagged("contrary"),
            "guessing_people": self._flagged("guessing"),
            "loss": float(e.details["loss"]),
            "agreement": {kind: asdict(x) for kind, x in e.details["agreement"].items()},
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "version": __version__,
            "source": self.origin,
            "command": self.command,
            "out": str(self.folder),
            "files": self.files,
        }

    @property
    def files(self) -> list[str]:
        """The files that are written to the folder."""
        left_out = {
            "dimension.png": self.estimate is None,
            "people.csv": self.embedding.people is None,
        }
        return [name for name in _FILES if not left_out.get(name, False)]

    def _flagged(self, which: str) -> list[str] | None:
        people = self.embedding.people
        if people is None or self.embedding.details["reliability"] is None:
            return None
        return [str(name) for name in people["id"][people["flag"] == which]]


def _chance(found: DimensionEstimate, d: int) -> float | None:
    chance: float | None = found.evidence.get(d, {}).get("probability")
    return chance


def fit_file(
    answers: Triplets,
    source: Path,
    out: str,
    *,
    method: Any,
    dim: str,
    bootstrap: int | None,
    max_iter: int,
    tol: float,
    device: Any,
    seed: int | None,
) -> Fitted:
    """Fit the answers of a file."""
    if not len(answers):
        raise InvalidInput(f"{source}: no answer is left, {_why_none(answers.report)}")
    wanted = wanted_dimension(dim, len(np.unique(answers.triplets)))
    folder = make_folder(out)
    seed = secrets.randbits(31) if seed is None else seed
    start = time.perf_counter()
    with step_progress() as step, warnings.catch_warnings():
        warnings.simplefilter("ignore", AnswersWarning)  # the table says it
        step(f"fitting {amount(len(answers), 'answer')}")
        embedding = fit(
            answers,
            n_components=wanted,
            method=method,
            bootstrap=bootstrap,
            max_iter=max_iter,
            tol=tol,
            device=device,
            random_state=seed,
        )
    return Fitted(
        source,
        folder,
        embedding,
        time.perf_counter() - start,
        seed,
        len(answers),
        answers.labels,
        answers.report.contradictions,
    )


def _why_none(report: Report) -> str:
    """The reasons why no answer can be used."""
    found = {
        "names an object twice": report.degenerate,
        "is undecided": (*report.undecided, *report.ties),
        "could not be read": report.bad,
        "is another page": report.others,
    }
    reasons = [why for why, lines in found.items() if lines]
    return f"since every one {' or '.join(reasons)}; a fit needs at least one answer"


def wanted_dimension(dim: str, n: int) -> Any:
    """What ``--dim`` says: auto, or how many of n objects."""
    if dim == "auto":
        return dim
    d = _whole_number(dim)
    if d >= n:
        raise InvalidInput(
            f"--dim {dim}: must be auto or a whole number from 1 to {n - 1}, one fewer than there "
            "are objects"
        )
    return d


def _whole_number(dim: str) -> int:
    if not (dim.isascii() and dim.isdigit() and int(dim)):
        raise InvalidInput(f"--dim {dim}: must be auto or a whole number from 1")
    return int(dim)


def check_options(dim: str, device: str, bootstrap: int | None) -> None:
    """Refuse options that are wrong for every file, before a long file is read."""
    if dim != "auto":
        _whole_number(dim)
    if bootstrap == 1:
        raise InvalidInput("--bootstrap 1: a spread needs at least 2 draws; 0 leaves it out")
    with using(device):
        pass


def check_destinations(
    source: Path, out: str, map_file: Path | None, report_file: Path | None
) -> None:
    """Refuse files that cannot be written, or would overwrite another, before any work."""
    reads = [source, *parquet_files(source)]
    check_folder(out, _FILES, reads)
    check_files(map_file, report_file, reads)


def report_fit(
    fitted: Fitted,
    *,
    as_json: bool,
    map_file: Path | None = None,
    report_file: Path | None = None,
) -> None:
    """Write the files, then print the figures."""
    summary = fitted.summary()
    stale = _earlier(fitted.folder) - set(summary["files"])
    with written_whole(fitted.folder) as part:
        e = fitted.embedding
        text = positions_text(e.positions, labels=fitted.names, covariances=e.covariances)
        (part / "embedding.csv").write_text(text, encoding="utf-8")
        if "people.csv" in summary["files"]:
            (part / "people.csv").write_text(_people_text(e), encoding="utf-8")
        (part / "fit.json").write_text(json_text(summary, indent=1) + "\n", encoding="utf-8")
        _draw(part, fitted)
    for name in stale:
        (fitted.folder / name).unlink(missing_ok=True)
    if map_file is not None:
        _draw_map(fitted, map_file)
    if report_file is not None:
        fitted.embedding.report(
            report_file,
            title=f"Report on {fitted.source.name}",
            command=fitted.command,
            source=fitted.origin,
            pictures=fitted.pictures,
        )
    if as_json:
        click.echo(json_text(summary))
    else:
        _print(fitted, summary, [file for file in (map_file, report_file) if file is not None])


def _earlier(folder: Path) -> set[str]:
    """The files that an earlier fit wrote there, by its fit.json; other files stay."""
    try:
        told = json.loads((folder / "fit.json").read_text(encoding="utf-8"))["files"]
        return {name for name in _FILES if name in told}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()


def _print(fitted: Fitted, summary: dict[str, Any], also: list[Path]) -> None:
    """One table of 80 columns, and what it does not say."""
    known = {True: "", False: "\nnot determined", None: "\ngiven"}[summary["determined"]]
    low, high = summary["held_out_low"], summary["held_out_high"]
    cells = {
        "objects": f"{summary['n_objects']:,}",
        "answers": f"{summary['n_answers']:,}",
        "dimension": f"{summary['dimension']}{known}",
        "held-out": _number(summary["held_out_accuracy"]),
        "95 %": "–" if low is None else f"{low:.3f}–{high:.3f}",
        "noise": _number(summary["noise"]),
        "seconds": f"{summary['seconds']:.3g}",
    }
    # seven columns fit a terminal of 80 characters without borders
    columns = {name: [cell] for name, cell in cells.items()}
    print_table(f"{fitted.source}, {summary['method']}", columns, boxed=False)
    files = f"in {fitted.folder}: {', '.join(summary['files'])}"
    print_lines([*_remarks(fitted, summary), files, *(f"written: {file}" for file in also)])


def _remarks(fitted: Fitted, summary: dict[str, Any]) -> Iterator[str]:
    """Remarks below the table."""
    held = fitted.embedding.held_out
    if held is not None and held.is_guessing:
        yield "these answers are predicted no better than by guessing: the map may be chance alone"
    yield from undetermined(fitted.embedding)
    others = fitted.embedding.details["agreement"].get("others")
    if others is not None:
        yield f"two people agree on {others.share:.3f} of the questions that both answered"
    said = {"contrary": "contradict all others", "guessing": "seem to guess"}
    for which, words in said.items():
        if flagged := summary[f"{which}_people"]:
            more = f" and {len(flagged) - _MOST_NAMED} more, see people.csv"
            listed = ", ".join(flagged[:_MOST_NAMED]) + (more if len(flagged) > _MOST_NAMED else "")
            yield f"{words} ({which}): {listed}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _people_text(embedding: Embedding) -> str:
    people, rated = embedding.people, embedding.details["reliability"]
    assert people is not None
    header = ["person", "reliability", "error", "answers", "agreement", "low", "high", "flag"]
    errors = np.full(len(people), np.nan) if rated is None else rated.errors
    columns = [people["id"], people["reliability"], errors, people["n_trials"]]
    columns += [people[name] for name in header[4:]]
    return table_text(header, zip(*columns, strict=True))


def _draw(part: Path, fitted: Fitted) -> None:
    from nearer.plotting import plot_dimension, save

    _draw_map(fitted, part / "map.png")
    if fitted.estimate is not None:
        save(plot_dimension(fitted.estimate), part / "dimension.png")


def _draw_map(fitted: Fitted, file: Path) -> None:
    from nearer.plotting import save

    options: dict[str, Any] = {"labels": fitted.names, "pictures": fitted.pictures}
    if file.suffix.lower() == ".html":
        options |= {"interactive": True, "title": f"Map of {fitted.source.name}"}
    elif len(fitted.names) > _MOST_DRAWN:
        options["labels"] = None
    if len(fitted.names) > _MOST_DRAWN:
        options |= {"covariances": None, "pictures": None}
    save(fitted.embedding.plot(**options), file)
