"""Reports for papers: one HTML file, or Markdown with its pictures beside it.

The sentences are in ``templates/report.jinja`` and ``methods.jinja``; ``html.jinja`` and
``markdown.jinja`` lay them out and escape every text, so that names may contain ``<`` or ``|``.
"""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from nearer import __version__, checks
from nearer.checks import amount
from nearer.embedding import Embedding
from nearer.errors import InvalidInput, visible
from nearer.files import content_suffix, data_url, templates, write_bytes
from nearer.plotting.canvas import MANY, as_picture
from nearer.plotting.maps import plot_positions
from nearer.plotting.other_plots import plot_dimension, plot_people
from nearer.trials import examine


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
    checks.one("title", title, str, "a text")
    checks.one("command", command, str | None, "a text, or None")
    origin = {} if source is None else checks.one("source", source, Mapping, "name → value")
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
        facts=[(str(k), str(v)) for k, v in (origin | versions).items()],
        figures=figures,
        **_facts(embedding),
        **_values(embedding),
    )
    if suffix == ".md":
        for name, content in figures.values():
            write_bytes(Path(path).parent / name, content)
    write_bytes(path, (re.sub(r"\n{3,}", "\n\n", visible(text)).strip() + "\n").encode())


def methods_text(embedding: Embedding) -> str:
    """A paragraph for a methods section."""
    return " ".join(_rendered("methods.jinja", version=__version__, **_facts(embedding)).split())


def references(embedding: Embedding) -> list[str]:
    """The works that the methods text cites, in order of their authors."""
    works = json.loads((files("nearer.plotting") / "templates/references.json").read_text("utf-8"))
    text = methods_text(embedding)
    own = f"The nearer developers. nearer, version {__version__} [computer software]."
    cited = (work for short, work in works.items() if short in text)
    return sorted([own, *cited], key=str.casefold)


def _rendered(template: str, *, autoescape: bool = False, **values: Any) -> str:
    environment = templates("nearer.plotting", "templates", autoescape=autoescape)
    for text_of in (amount, _percent, _cell, _plain, _fenced, _data_url):
        environment.filters[text_of.__name__.removeprefix("_")] = text_of
    return str(environment.get_template(template).render(values))


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    line = escape(" ".join(text.split()), quote=False)
    return re.sub(r"([\\`*_\[\]|#$])", r"\\\1", line)


def _fenced(text: str) -> str:
    """Code between more backticks than it has in a row."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text) or [""]))
    return f"{fence}\n{text}\n{fence}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if np.isfinite(share) else "not known"


def _cell(value: Any) -> str:
    """A cell of a table: numbers with commas, shares and intervals in per cent, texts."""
    if isinstance(value, tuple):
        low, high = value
        return f"{100 * low:.1f} – {100 * high:.1f} %"
    if isinstance(value, float):
        return _percent(value)
    return f"{value:,}" if isinstance(value, int) else value or ""


def _data_url(figure: tuple[str, bytes]) -> str:
    name, content = figure
    return data_url(content, "image/svg+xml" if name.endswith("svg") else "image/png")


def _figures(
    e: Embedding, pictures: Sequence[Any] | None, stem: str
) -> dict[str, tuple[str, bytes]]:
    """The names of files and their content."""
    names = list(map(str, e.object_names))
    look: dict[str, Any] = {"covariances": e.covariances, "pictures": pictures}
    drawn: dict[str, Any] = {"map": plot_positions(e.positions, labels=names, **look)}
    if e.weights is not None and e.people is not None:
        drawn["people"] = plot_people(e.weights, e.people["id"])
    estimate = e.details.get("estimate")
    if estimate is not None and len(estimate.dimensions) > 1:
        drawn["dimension"] = plot_dimension(estimate)
    figures = {}
    for name, ax in drawn.items():
        kind = "png" if name == "map" and pictures is not None else "svg"
        figures[name] = (f"{stem}{name}.{kind}", as_picture(ax, kind))
    return figures


def _facts(e: Embedding) -> dict[str, Any]:
    """The facts in both the report and the methods paragraph."""
    posterior, phases = e.details.get("posterior"), {phase.name for phase in e.history}
    method = str(e.details.get("method", ""))
    for name, is_it in (  # for runs, which do not record the method
        ("noisy", posterior is not None),
        ("ckl", "crowd kernel" in phases),
        ("soe", "loss" in e.details),
        ("basis", "basis" in phases),
    ):
        method = method or name * is_it
    default = "the posterior" if method == "noisy" else ""
    return {
        "e": e,
        "n": len(e.positions),
        "held": e.held_out,
        "method": method,
        "task": str(e.details.get("task", "1 of 2")),
        "is_choice": e.details.get("trials") is not None,
        "tail": 0.0 if posterior is None else float(posterior.noise.tail),
        "has_probabilities": any(
            "probability" in known for known in e.evidence.values() if isinstance(known, dict)
        ),
        "uncertainty_by": str(e.details.get("covariances_by", default)),
    }


def _values(e: Embedding) -> dict[str, Any]:
    calibration, bins = e.details.get("calibration"), None
    if calibration is not None:
        columns = (calibration.predicted, calibration.observed, calibration.counts)
        bins = list(zip(*(column.tolist() for column in columns), strict=True))
    return {
        "data_lines": _data_lines(e),
        "phases": [[p.name, p.n_comparisons, p.n_rounds, p.note] for p in e.history],
        "evidence": _evidence(e),
        "estimate": e.details.get("estimate"),
        "agreement": _agreement(e),
        "calibration": calibration,
        "checks": [[what, f"{p:.3f}"] for what, p in (e.details.get("checks") or {}).items()],
        "bins": bins,
        "people": None if e.people is None else _people(e, e.people),
        **_objects(e),
        "methods": methods_text(e),
        "references": references(e),
    }


def _data_lines(e: Embedding) -> list[str]:
    """Sentences about the answers, and about those that were left out."""
    read, n = e.details.get("read"), len(e.positions)
    is_complete = "read" in e.details or e.chosen  # else this is unknown
    if read is None and len(e.triplets):
        read = examine(e.triplets, [str(i) for i in range(n)])
    if read is None:
        return []
    lines = [line[0].upper() + line[1:] for line in str(read).splitlines()[1:]]
    if is_complete and not (read.degenerate or read.undecided or read.bad):
        lines.append("No answer was left out")
    return [line if line.endswith("?") else f"{line}." for line in lines]


def _evidence(e: Embedding) -> dict[str, Any] | None:
    """The table of the evidence for each number of dimensions."""
    known = {d: x for d, x in sorted(e.evidence.items()) if isinstance(x, dict)}
    most = max((d for d, x in known.items() if "probability" in x), default=0)
    pooled = most if most < len(e.positions) - 1 else 0
    rows, rest = list[list[Any]](), 0.0
    for d, x in known.items():
        chance, score = x.get("probability"), x.get("log_likelihood")
        if score is None and (chance is None or chance < 0.005):
            rest += chance or 0.0
            pooled = 0 if d == pooled else pooled
            continue
        loss = "not tried" if score is None else f"{-score:.4f}"
        rows.append([f"{d} or more" if d == pooled else str(d), chance, loss, x.get("accuracy")])
    if not rows:
        return None
    rows += [["others", rest, "not tried", ""]] if rest > 0 else []
    return {"rows": rows, "pooled": pooled}


def _agreement(e: Embedding) -> list[list[Any]]:
    """How often answers are predicted by the map and by other answers, as far as known."""
    measured, held, rows = e.details.get("agreement") or {}, e.held_out, list[list[Any]]()
    if held is not None:
        rows.append(["this map, held-out answers", held.accuracy, (held.low, held.high), None])
        rows.append(["guessing", held.chance, None, None])
        if (new := held.new_people) is not None:
            of_new = "this map, answers of people it has not seen"
            rows.append([of_new, new.accuracy, (new.low, new.high), None])
    by = {"same": "the same person, asked again", "others": "two different people"}
    for kind, x in measured.items():
        who = by.get(kind, "any two answers")
        rows.append([who, x.share, (x.low, x.high), x.n_questions])
        if x.ceiling is not None and x.ceiling_interval is not None and kind != "same":
            rows.append(["any map, at most", x.ceiling, tuple(x.ceiling_interval), None])
    return rows if measured else []


def _people(e: Embedding, table: Any) -> dict[str, Any]:
    """The table of people, and the people with flags."""
    weights = np.empty((len(table), 0)) if e.weights is None else e.weights
    rows = []
    for i in np.argsort(np.nan_to_num(table["agreement"], nan=2.0), kind="stable").tolist():
        one = table.iloc[i].to_dict()
        interval = (one["low"], one["high"]) if np.isfinite(one["agreement"]) else None
        numbers = [one["sensitivity"], one["lapse"], one["bias"], *weights[i].tolist()]
        texts = [f"{x:.2f}" if np.isfinite(x) else "" for x in numbers]
        row = [str(one["id"]), one["n_trials"], one["agreement"], interval, *texts, one["flag"]]
        rows.append(row)
    heads = ["person", "answers", "agreement", "95 % interval", "sensitivity", "lapse", "bias"]
    gains = e.details.get("people_differ") or {}
    best = max(gains, key=lambda spread: gains[spread][0], default=None)
    flags = np.unique(table["flag"][table["flag"] != ""]).tolist()
    return {
        "rated": bool(np.isfinite(table["sensitivity"]).any()),
        "differ": None if best is None else gains[best],
        "flagged": {flag: table["id"][table["flag"] == flag].tolist() for flag in flags},
        "heads": [*heads, *(f"weight {k + 1}" for k in range(weights.shape[1])), "flag"],
        **_first_and_last(rows, "people", "those who agree least and most"),
    }


def _objects(e: Embedding) -> dict[str, Any]:
    """The table of objects, and the median uncertainty of their positions."""
    n, order, which = len(e.positions), np.arange(len(e.positions)), "the first and the last"
    columns: dict[str, Sequence[Any]] = {"object": list(map(str, e.object_names))}
    uncertainty = None
    if len(e.triplets):  # they may not be stored
        asked = np.bincount(e.triplets.ravel(), minlength=n)
        columns["comparisons"] = asked.tolist()
        order, which = np.argsort(asked), "those in the fewest and in the most answers"
    if e.covariances is not None:
        spread = float(np.sqrt(np.nanvar(e.positions, axis=0).sum())) or 1.0
        sd = np.sqrt(np.trace(e.covariances, axis1=1, axis2=2)) / spread
        columns["uncertainty"] = sd.tolist()
        order, which = np.argsort(-sd, kind="stable"), "the least and the most certain"
        uncertainty = float(np.nanmedian(sd))
    for j, axis in enumerate(e.positions.T[:5].tolist()):
        columns[f"x{j + 1}"] = [f"{x:.3g}" for x in axis]
    rows = [[column[i] for column in columns.values()] for i in order.tolist()]
    table = {"heads": list(columns), **_first_and_last(rows, "objects", which)}
    return {"objects": table, "uncertainty": uncertainty}


def _first_and_last(rows: list[list[Any]], what: str, which: str) -> dict[str, Any]:
    """The rows that a table has room for, and a caption that names them."""
    if len(rows) <= MANY:
        return {"rows": rows, "caption": f"All {len(rows):,} {what}"}
    half = MANY // 2
    caption = f"{MANY} of {len(rows):,} {what}: {which}"
    return {"rows": rows[:half] + rows[-half:], "caption": caption}
