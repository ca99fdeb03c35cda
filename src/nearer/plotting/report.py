"""Reports for papers: one HTML file, or Markdown with its pictures beside it.

The sentences are in ``templates/report.jinja`` and ``templates/methods.jinja``; the templates
``html.jinja`` and ``markdown.jinja`` lay out their paragraphs, tables and pictures. This module
computes the values and draws the pictures. Every text is escaped when it is laid out, so that names
with ``<`` or ``|`` in them stay names.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
import scipy

from nearer import __version__
from nearer.checks import amount
from nearer.embedding import Embedding
from nearer.errors import InvalidInput
from nearer.files import content_suffix, write_bytes
from nearer.fitting.heldout import Calibration
from nearer.metrics import Agreement
from nearer.plotting.canvas import as_picture, data_url
from nearer.plotting.map_inputs import MANY
from nearer.plotting.other_plots import plot_dimension, plot_people
from nearer.plotting.printed_map import plot_positions
from nearer.trials import examine

__all__ = ["methods_text", "references", "write_report"]

_PREDICTORS = {
    "same": "the same person, asked again",
    "others": "two different people",
    "unknown": "any two answers",
}
_FLAGS = {
    "contrary": ("contradicts all others", "contradict all others"),
    "guessing": ("seems to guess", "seem to guess"),
    "one side": ("keeps to one side", "keep to one side"),
    "too fast": ("answers faster than one can look", "answer faster than one can look"),
}


def write_report(
    embedding: Embedding,
    path: str | os.PathLike[str],
    *,
    title: str,
    command: str | None,
    source: Mapping[str, str] | None,
    pictures: Sequence[Any] | None,
) -> None:
    """Write a report to ``.html`` or ``.md``; `Embedding.report` describes the parameters."""
    suffix = content_suffix(path)
    if suffix not in (".html", ".md"):
        raise InvalidInput(f"{path}: a report is written to .html or .md; end the name so")
    versions = {"nearer": __version__, "Python": platform.python_version()}
    versions |= {"NumPy": np.__version__, "SciPy": scipy.__version__}
    figures = _figures(embedding, pictures, stem=Path(path).stem + "-")
    text = _rendered(
        "report.jinja",
        autoescape=suffix == ".html",
        layout="html.jinja" if suffix == ".html" else "markdown.jinja",
        title=title,
        command=command,
        call=command or embedding.details.get("call"),
        facts=[*(source or {}).items(), *versions.items()],
        **figures,
        **_values(embedding),
    )
    if suffix == ".md":
        for figure in figures.values():
            if figure is not None:
                write_bytes(Path(path).parent / figure.name, figure.content)
    write_bytes(path, (re.sub(r"\n{3,}", "\n\n", text).strip() + "\n").encode())


def methods_text(embedding: Embedding) -> str:
    """A paragraph for a methods section."""
    text = _rendered(
        "methods.jinja",
        e=embedding,
        n=len(embedding.positions),
        version=__version__,
        method=_method(embedding),
        task=_task(embedding),
        is_choice=embedding.details.get("choices") is not None,
        tail=_tail(embedding),
        at_random=all(phase.name == "random" for phase in embedding.history),
        has_probabilities=_has_probabilities(embedding),
        uncertainty_by=None if embedding.covariances is None else _uncertainty_by(embedding),
    )
    return " ".join(text.split())


def references(embedding: Embedding) -> list[str]:
    """The works that the methods text cites, in order of their authors."""
    works = json.loads((files("nearer.plotting") / "templates/references.json").read_text("utf-8"))
    text = methods_text(embedding)
    own = f"The nearer developers. nearer, version {__version__} [computer software]."
    cited = (work for short, work in works.items() if short in text)
    return sorted([own, *cited], key=str.casefold)


@dataclass(frozen=True)
class _Figure:
    """A picture as a file of its own, or as text inside a page."""

    name: str
    content: bytes

    @property
    def data_url(self) -> str:
        return data_url(
            self.content, "image/" + ("svg+xml" if self.name.endswith("svg") else "png")
        )


def _rendered(template: str, *, autoescape: bool = False, **values: Any) -> str:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("nearer.plotting"),
        autoescape=autoescape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "amount": amount,
        "percent": _percent,
        "interval": _interval,
        "plain": _plain,
        "fenced": _fenced,
    }
    return environment.get_template(template).render(values)


def _plain(text: str) -> str:
    r"""Text that Markdown shows as it is, on one line.

    Examples
    --------
    >>> print(_plain("<a|b> costs $1"))
    &lt;a\|b&gt; costs \$1
    """
    line = escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_\[\]|#$])", r"\\\1", line)


def _fenced(text: str) -> str:
    """Code between more backticks than it has in a row."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return f"{fence}\n{text}\n{fence}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if np.isfinite(share) else "not known"


def _interval(limits: tuple[float, float]) -> str:
    return f"{100 * limits[0]:.1f} – {100 * limits[1]:.1f} %"


def _figures(
    embedding: Embedding, pictures: Sequence[Any] | None, stem: str
) -> dict[str, _Figure | None]:
    ax = plot_positions(
        embedding.positions,
        labels=list(map(str, embedding.object_names)),
        covariances=embedding.covariances,
        pictures=pictures,
    )
    kind = "svg" if pictures is None else "png"
    figures: dict[str, _Figure | None] = {
        "map": _Figure(f"{stem}map.{kind}", as_picture(ax, kind)),
        "dimension_curve": None,
        "people_weights": None,
    }
    if embedding.weights is not None and embedding.people is not None:
        drawn = plot_people(embedding.weights, embedding.people["id"])
        figures["people_weights"] = _Figure(f"{stem}people.svg", as_picture(drawn, "svg"))
    estimate = embedding.details.get("estimate")
    if estimate is not None and len(estimate.dimensions) > 1:
        curve = as_picture(plot_dimension(estimate), "svg")
        figures["dimension_curve"] = _Figure(f"{stem}dimension.svg", curve)
    return figures


def _values(e: Embedding) -> dict[str, Any]:
    """The values of the template."""
    estimate = e.details.get("estimate")
    calibration: Calibration | None = e.details.get("calibration")
    return {
        "e": e,
        "n": len(e.positions),
        "is_choice": e.details.get("choices") is not None,
        "given_others": ", given the others" if _uncertainty_by(e) == "the posterior" else "",
        "data_lines": _data_lines(e),
        "phases": [
            [phase.name, f"{phase.n_comparisons:,}", f"{phase.n_rounds:,}", phase.note]
            for phase in e.history
        ],
        "has_probabilities": _has_probabilities(e),
        "evidence": _evidence(e),
        "estimate": estimate,
        "scores": "" if estimate is None else _scores(estimate),
        "agreement": _agreement(e),
        "calibration": calibration,
        "calibration_rows": [] if calibration is None else _calibration_rows(calibration),
        "people": None if e.people is None else _people(e, e.people),
        **_objects(e),
        "methods": methods_text(e),
        "references": references(e),
    }


def _method(e: Embedding) -> str:
    """How positions were found; "" where that was not recorded."""
    phases = {phase.name for phase in e.history}
    if "method" in e.details:
        return str(e.details["method"])
    for name, is_it in (
        ("noisy", "posterior" in e.details),
        ("ckl", "crowd kernel" in phases),
        ("soe", "loss" in e.details),
        ("basis", "basis" in phases),
    ):
        if is_it:
            return name
    return ""


def _uncertainty_by(e: Embedding) -> str:
    default = "the posterior" if _method(e) == "noisy" else ""
    return str(e.details.get("covariances_by", default))


def _task(e: Embedding) -> str:
    """What each answer said."""
    kind, _, number = str(e.details.get("task", "1 of 2")).partition(" of ")
    if kind == "odd-one-out":
        return f"each of which named the odd one out of {number or 'three'} objects"
    if kind == "most-central":
        return f"each of which named the one of {number or 'three'} objects most like the others"
    if kind == "pairs":
        return f"each of which named the most similar of {number or 'three'} pairs"
    if kind == "1" and number == "2":
        return "each of which said which of two objects is more like a third"
    if number:
        how = ", in order," if kind.startswith("rank ") else ""
        chosen = kind.removeprefix("rank ")
        return f"each of which chose{how} the {chosen} of {number} objects most like another"
    return "of several kinds"


def _tail(e: Embedding) -> float:
    """Degrees of freedom of Student's t; 0 where distances count as they are."""
    posterior: Any = e.details.get("posterior")
    return 0.0 if posterior is None else float(posterior.noise.tail)


def _has_probabilities(e: Embedding) -> bool:
    return any("probability" in x for x in e.evidence.values() if isinstance(x, dict))


def _data_lines(e: Embedding) -> list[str]:
    """What is known of the answers, and what was left out, as sentences."""
    read, n = e.details.get("read"), len(e.positions)
    is_complete = "read" in e.details or e.chosen  # otherwise nothing is known of what was left out
    if read is None and len(e.triplets):
        read = examine(e.triplets, [str(i) for i in range(n)])
    if read is None:
        return []
    lines = [line[0].upper() + line[1:] for line in str(read).splitlines()[1:]]
    if is_complete and not (read.degenerate or read.undecided or read.bad):
        lines.append("No answer was left out")
    return [line if line.endswith("?") else f"{line}." for line in lines]


def _evidence(e: Embedding) -> dict[str, Any] | None:
    """The table of what is known of each number of dimensions."""
    known = {d: x for d, x in sorted(e.evidence.items()) if isinstance(x, dict)}
    most = max((d for d, x in known.items() if "probability" in x), default=0)
    pooled = most if most < len(e.positions) - 1 else 0
    rows, rest = [], 0.0
    for d, x in known.items():
        chance, score = x.get("probability"), x.get("log_likelihood")
        if score is None and (chance is None or chance < 0.005):
            rest += chance or 0.0
            pooled = 0 if d == pooled else pooled
            continue
        rows.append(
            [
                f"{d} or more" if d == pooled else str(d),
                "" if chance is None else _percent(chance),
                "not tried" if score is None else f"{-score:.4f}",
                _percent(x["accuracy"]) if x.get("accuracy") is not None else "",
            ]
        )
    if not rows:
        return None
    rows += [["others", _percent(rest), "not tried", ""]] if rest > 0 else []
    return {
        "heads": ["dimensions", "probability", "log-loss", "accuracy"],
        "rows": rows,
        "pooled": pooled,
    }


def _scores(estimate: Any) -> str:
    pairs = zip(estimate.dimensions.tolist(), estimate.scores.tolist(), strict=True)
    return ", ".join(f"{d}: {score:.4f}" for d, score in pairs)


def _agreement(e: Embedding) -> list[list[str]]:
    """How often answers are predicted by the map and by other answers; none where not known."""
    measured: dict[str, Agreement] = e.details.get("agreement") or {}
    rows = []
    if (held := e.held_out) is not None:
        interval = _interval((held.low, held.high))
        rows.append(["this map, held-out answers", _percent(held.accuracy), interval, ""])
        rows.append(["guessing", _percent(held.chance), "", ""])
        if (new := held.new_people) is not None:
            interval = _interval((new.low, new.high))
            rows.append(["this map, answers of people it has not seen", _percent(new.accuracy)])
            rows[-1] += [interval, ""]
    for kind, x in measured.items():
        interval = _interval((x.low, x.high))
        rows.append([_PREDICTORS[kind], _percent(x.share), interval, f"{x.n_questions:,}"])
        if x.ceiling is not None and x.ceiling_interval is not None and kind != "same":
            rows.append(
                ["any map, at most", _percent(x.ceiling), _interval(x.ceiling_interval), ""]
            )
    return rows if measured else []


def _calibration_rows(calibration: Calibration) -> list[list[str]]:
    columns = (calibration.predicted, calibration.observed, calibration.counts)
    return [[_percent(p), _percent(s), f"{k:,}"] for p, s, k in zip(*columns, strict=True)]


def _people(e: Embedding, table: Any) -> dict[str, Any]:
    flagged = []
    for kind, (one, several) in _FLAGS.items():
        ids = [str(x) for x in table["id"][table["flag"] == kind]]
        if ids:
            verb = one if len(ids) == 1 else several
            flagged.append(f"{len(ids)} of {len(table)} {verb}: {', '.join(ids)}.")
    order = np.argsort(np.nan_to_num(table["agreement"], nan=2.0), kind="stable")
    rows = [_person(e, i) for i in order.tolist()]
    rows, caption = _first_and_last(rows, "people", "those who agree least and most")
    heads = ["person", "answers", "agreement", "95 % interval", "sensitivity", "lapse", "bias"]
    n_weights = 0 if e.weights is None else e.weights.shape[1]
    gains = e.details.get("people_differ") or {}
    best = max(gains, key=lambda spread: gains[spread][0], default=None)
    return {
        "rated": bool(np.isfinite(table["sensitivity"]).any()),
        "differ": None if best is None else gains[best],
        "flagged": flagged,
        "checks": [[what, f"{p:.3f}"] for what, p in (e.details.get("checks") or {}).items()],
        "heads": [*heads, *(f"weight {k + 1}" for k in range(n_weights)), "flag"],
        "rows": rows,
        "caption": caption,
    }


def _person(e: Embedding, i: int) -> list[str]:
    assert e.people is not None
    row = e.people[i]
    is_known = np.isfinite(row["agreement"])
    figures = [row["sensitivity"], row["lapse"], row["bias"]]
    figures += [] if e.weights is None else list(e.weights[i])
    return [
        str(row["id"]),
        f"{row['n_trials']:,}",
        _percent(float(row["agreement"])),
        _interval((float(row["low"]), float(row["high"]))) if is_known else "",
        *(f"{x:.2f}" if np.isfinite(x) else "" for x in figures),
        str(row["flag"]),
    ]


def _objects(e: Embedding) -> dict[str, Any]:
    """The table of objects, and the median uncertainty of their positions."""
    n, order, which = len(e.positions), np.arange(len(e.positions)), "the first and the last"
    columns: dict[str, Sequence[str]] = {"object": list(map(str, e.object_names))}
    uncertainty = None
    if len(e.triplets):  # they need not have been kept
        asked = np.bincount(e.triplets.ravel(), minlength=n)
        columns["comparisons"] = [f"{times:,}" for times in asked.tolist()]
        order, which = np.argsort(asked), "those in the fewest and in the most answers"
    if e.covariances is not None:
        spread = float(np.sqrt(np.nanvar(e.positions, axis=0).sum())) or 1.0
        sd = np.sqrt(np.trace(e.covariances, axis1=1, axis2=2)) / spread
        columns["uncertainty"] = [_percent(share) for share in sd.tolist()]
        order, which = np.argsort(-sd, kind="stable"), "the least and the most certain"
        uncertainty = float(np.nanmedian(sd))
    for j, axis in enumerate(e.positions.T[:5].tolist()):
        columns[f"x{j + 1}"] = [f"{x:.3g}" for x in axis]
    rows = [[column[i] for column in columns.values()] for i in order.tolist()]
    shown, caption = _first_and_last(rows, "objects", which)
    table = {"caption": caption, "heads": list(columns), "rows": shown}
    return {"objects": table, "uncertainty": uncertainty}


def _first_and_last(rows: list[list[str]], what: str, which: str) -> tuple[list[list[str]], str]:
    if len(rows) <= MANY:
        return rows, f"All {len(rows):,} {what}"
    half = MANY // 2
    return rows[:half] + rows[-half:], f"{MANY} of {len(rows):,} {what}: {which}"
