"""What a report says, section by section: each function says what a result tells of one thing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nearer.embedding import Embedding
from nearer.plotting.canvas import as_picture
from nearer.plotting.dimension_curve import plot_dimension
from nearer.plotting.printed_map import plot_positions
from nearer.reports.document import Block, Code, Grid, Paragraph, Plate, Section
from nearer.reports.methods_text import (
    by_reliability,
    held_fixed,
    methods_text,
    rates_people,
    references,
)
from nearer.triplets.report import Report, examine
from nearer.trust import Agreement, Calibration
from nearer.wording import amount

__all__ = [
    "about_accuracy",
    "about_data",
    "about_dimension",
    "about_map",
    "about_methods",
    "about_objects",
    "about_people",
    "about_repeating",
]

_LISTED = 100  # rows of a table, beyond which the outermost are shown
_DRAWN = 300  # objects up to which a map is held as lines and letters, which print sharp
_AGREEING = {
    "same": "the same person, asked again",
    "others": "two different people",
    "unknown": "any two answers",
}


def percent(share: float) -> str:
    """A share for a table.

    Examples
    --------
    >>> percent(0.8012), percent(float("nan"))
    ('80.1 %', 'not known')
    """
    return f"{100 * share:.1f} %" if np.isfinite(share) else "not known"


def _names(found: Embedding) -> list[str]:
    return [str(x) for x in (range(len(found.positions)) if found.names is None else found.names)]


def _between(low: float, high: float) -> str:
    return f"{100 * low:.1f} – {100 * high:.1f} %"


def about_data(found: Embedding) -> Section:
    """What was answered, and what was left out."""
    n = len(found.positions)
    read: Report | None = found.details.get("read")
    whole = read is not None or "read" in found.details or found.chosen  # else it was not kept
    if read is None and len(found.triplets):
        read = examine(found.triplets, [str(i) for i in range(n)])
    chosen = "chosen round by round" if found.chosen else "given"
    people = "" if found.people is None else f", by {amount(len(found.people), 'person', 'people')}"
    told = [
        f"{amount(found.n_comparisons, 'answer')} about {amount(n, 'object')}{people}; the "
        f"questions were {chosen}"
    ]
    if read is not None:
        told += [line[0].upper() + line[1:] for line in str(read).splitlines()[1:]]
        if whole and not (read.degenerate or read.undecided or read.bad):
            told.append("No answer was left out")
    ended = (line if line.endswith("?") else f"{line}." for line in told)
    blocks: list[Block] = [Paragraph(" ".join(ended))]
    if found.chosen:
        rows = [
            [phase.name, f"{phase.n_comparisons:,}", f"{phase.n_rounds:,}", phase.note]
            for phase in found.history
        ]
        blocks.append(Grid("What was asked", ["phase", "answers", "rounds", "why it ended"], rows))
    return Section("Data", blocks)


def about_dimension(found: Embedding) -> Section:
    """How many dimensions, and what that rests on."""
    d, low, high = found.dimension, found.dimension_low, found.dimension_high
    estimate, space = found.details.get("estimate"), amount(d, "dimension")
    known = [x for x in found.evidence.values() if isinstance(x, dict)]
    at = " at 95 %" if any("probability" in x for x in known) else ""
    if found.determined is None and found.chosen:
        said = f"The positions have {space}; how sure that number is was not estimated."
    elif found.determined is None:
        said = f"The positions have {space}: the number was given, not estimated."
    elif found.determined:
        said = f"The answers need {space}; no other number is left possible{at}."
    else:
        said = (
            f"The number of dimensions is not determined: {low} to {high} cannot be told apart by "
            f"these answers{at}. The map has {space}"
            + (", from which on more do not clearly predict better." if at else ".")
        )
    blocks: list[Block] = [Paragraph(said), *_evidence(found)]
    if estimate is not None and len(estimate.dimensions) > 1:
        alt = ", ".join(
            f"{e}: {score:.4f}"
            for e, score in zip(estimate.dimensions.tolist(), estimate.scores, strict=True)
        )
        blocks.append(
            Plate(
                "dimension.svg",
                as_picture(plot_dimension(estimate), "svg"),
                f"Log-loss of answers held out by number of dimensions: {alt}",
                "The lower, the better predicted. Bars are two standard errors of the difference "
                "from the estimate; the shaded numbers cannot be told apart.",
            )
        )
    if estimate is not None:
        blocks.append(
            Paragraph(
                "The probabilities were calibrated by simulation, with 1 to 8 dimensions equally "
                "likely, and tested on other families of objects; the command python -m benchmarks "
                "dimension repeats the test."
            )
        )
    return Section("Dimension", blocks)


def _evidence(found: Embedding) -> Iterator[Grid]:
    """What is known of each number of dimensions."""
    known = {e: x for e, x in found.evidence.items() if isinstance(x, dict)}
    most = max((e for e, x in known.items() if "probability" in x), default=0)
    pooled = most if most < len(found.positions) - 1 else 0
    told = {e: _evidence_row(e, x, e == pooled) for e, x in sorted(known.items())}
    if rows := [row for row in told.values() if row is not None]:
        left = sum(known[e].get("probability") or 0.0 for e, row in told.items() if row is None)
        rows += [["others", percent(left), "not tried", ""]] if left > 0 else []
        heads = ["dimensions", "probability", "log-loss", "accuracy"]
        caption = (
            "Each number of dimensions: how probable it is, and how answers held out were "
            f"predicted{by_reliability(found)}."
        )
        if found.details.get("choices") is None:
            caption += " Guessing has a log-loss of 0.693."
        if any(row[0] == f"{pooled} or more" for row in rows):
            caption += (
                f" The probability of “{pooled} or more” is that of {pooled} dimensions and all "
                "beyond, which were not tried."
            )
        yield Grid(caption, heads, rows)
    elif found.chosen and (
        disobeyed := {e: x["disobeyed"] for e, x in known.items() if "disobeyed" in x}
    ):
        caption = "Answers that positions in so many dimensions disobey"
        shares = [[str(e), percent(x)] for e, x in sorted(disobeyed.items())]
        yield Grid(caption, ["dimensions", "disobeyed"], shares)


def _evidence_row(e: int, known: dict[str, Any], pooled: bool) -> list[str] | None:
    chance, score = known.get("probability"), known.get("log_likelihood")
    if score is None and (chance is None or chance < 0.005):
        return None
    accuracy = known.get("accuracy")
    return [
        f"{e} or more" if pooled else str(e),
        "" if chance is None else percent(chance),
        "not tried" if score is None else f"{-score:.4f}",
        "" if accuracy is None else percent(accuracy),
    ]


def about_accuracy(found: Embedding) -> Section:
    """How well answers that no fit had seen were predicted, and how well they could be."""
    held = found.held_out
    agreement: dict[str, Agreement] = found.details.get("agreement") or {}
    if held is None:
        why = "the questions were chosen" if found.chosen else "there were too few"
        blocks: list[Block] = [Paragraph(f"No answers were held out: {why}.")]
    else:
        blocks = [
            Paragraph(
                f"{percent(held.accuracy)} of {held.n_trials:,} answers were predicted by fits "
                f"that had not seen them (95 % interval {_between(held.low, held.high)}, taking "
                f"answers as independent){_PARTLY if found.details.get('choices') else ''}."
            )
        ]
        if held.is_guessing:
            said = (
                "These answers are predicted no better than by guessing, which is right half the "
                "time: the map may show nothing but chance."
            )
            blocks.append(Paragraph(said))
    rows = []
    if held is not None:
        interval = _between(held.low, held.high)
        rows.append(["this map, answers held out", percent(held.accuracy), interval, ""])
    for kind, x in agreement.items():
        interval = _between(x.low, x.high)
        rows.append([_AGREEING[kind], percent(x.share), interval, f"{x.n_questions:,}"])
        if x.ceiling is not None and x.ceiling_interval is not None and kind != "same":
            interval = _between(*x.ceiling_interval)
            rows.append(["any map, at most", percent(x.ceiling), interval, ""])
    if agreement:
        blocks.append(
            Grid(
                "How often an answer is predicted: by this map, and by another answer to the same "
                f"question{_WHOLE if found.details.get('choices') else ''}",
                ["predicted by", "share", "95 % interval", "questions"],
                rows,
            )
        )
    elif "agreement" in found.details:
        said = (
            "No question was asked twice, or weights are no counts: what is possible is not known."
        )
        blocks.append(Paragraph(said))
    calibration: Calibration | None = found.details.get("calibration")
    if calibration is not None:
        blocks.append(_calibrated(calibration, by_reliability(found)))
    if found.error_rate is not None:
        blocks.append(
            Paragraph(
                f"{percent(found.error_rate)} of the answers depart from the "
                f"positions{by_reliability(found)}."
            )
        )
    return Section("Accuracy", blocks)


_WHOLE = ", which must be the same as a whole"
_PARTLY = (
    "; of a choice among several, the share of pairs of a chosen object and another that were "
    "predicted counts"
)


def _calibrated(found: Calibration, counted: str) -> Grid:
    rows = [
        [percent(p), percent(share), f"{count:,}"]
        for p, share, count in zip(found.predicted, found.observed, found.counts, strict=True)
    ]
    caption = (
        "Calibration: probabilities of the likelier answer, for answers held out, and how often "
        f"that answer was given; they are {100 * found.error:.1f} points apart on average (two "
        f"numbers, sharpness and lapse, were fitted to the same answers){counted}"
    )
    return Grid(caption, ["predicted", "came true", "answers"], rows)


_SAID_OF = {
    "contrary": ("contradicts all others", "contradict all others"),
    "guessing": ("seems to guess", "seem to guess"),
}


def about_people(found: Embedding) -> Section | None:
    """How far each person agrees with the others; None where nobody says who answered."""
    people = found.people
    if people is None:
        return None
    rated = found.details.get("reliability") is not None
    counts = rated and rates_people(found)
    held = "" if found.held_out is None else f", {found.held_out.n_trials:,} of all people together"
    flagged = {kind: [str(x) for x in people["id"][people["flag"] == kind]] for kind in _SAID_OF}
    blocks: list[Block] = [
        Paragraph(
            "Agreement is the share of a person's answers that were predicted from other answers, "
            f"of those that were held out{held}."
        )
    ]
    if rated:
        said = (
            "Reliability is 1 for the average person, 0 for one who guesses, negative for one who "
            f"contradicts the others{'; answers count by it' if counts else ''}."
        )
        blocks.append(Paragraph(said))
    for kind, ids in flagged.items():
        if ids:
            one, more = _SAID_OF[kind]
            said = one if len(ids) == 1 else more
            blocks.append(Paragraph(f"{len(ids)} of {len(people)} {said}: {', '.join(ids)}."))
    guessing = found.held_out is not None and found.held_out.is_guessing
    if guessing:
        said = "All answers together look like guesses, so that nobody can be told from the others."
        blocks.append(Paragraph(said))
    elif rated and not any(flagged.values()):
        blocks.append(Paragraph("Nobody contradicts the others or seems to guess."))
    if counts:
        said = "Nobody was left out by hand; somebody's answers weigh less the less they agree."
    else:
        few = rates_people(found) and not rated
        said = (
            f"{'There were too few answers to rate people; all' if few else 'All'} count the same."
        )
    blocks.append(Paragraph(said))
    order = np.argsort(np.nan_to_num(people["agreement"], nan=2.0), kind="stable")
    rows = [_person(people[i]) for i in order]
    shown, caption = _outermost(rows, "people", "those who agree least and most")
    heads = ["person", "answers", "agreement", "95 % interval", "reliability", "flag"]
    blocks.append(Grid(caption, heads, shown))
    return Section("People", blocks)


def _person(row: np.void) -> list[str]:
    known = np.isfinite(row["agreement"])
    return [
        str(row["id"]),
        f"{row['n_trials']:,}",
        percent(float(row["agreement"])),
        _between(float(row["low"]), float(row["high"])) if known else "",
        f"{row['reliability']:.2f}" if np.isfinite(row["reliability"]) else "",
        str(row["flag"]),
    ]


def _outermost(rows: list[list[str]], what: str, which: str) -> tuple[list[list[str]], str]:
    """All rows, or where there are many the first and the last."""
    if len(rows) <= _LISTED:
        return rows, f"All {len(rows):,} {what}"
    half = _LISTED // 2
    return rows[:half] + rows[-half:], f"{_LISTED} of {len(rows):,} {what}: {which}"


def about_map(found: Embedding, pictures: Sequence[Any] | None) -> Section:
    """The map."""
    n = len(found.positions)
    ax = plot_positions(
        found.positions,
        labels=_names(found),
        covariances=found.covariances,
        pictures=pictures,
    )
    kind = "svg" if n <= _DRAWN and pictures is None else "png"
    regions = f" Shaded regions hold 95 % of each position{held_fixed(found)}."
    regions = "" if found.covariances is None else regions
    grid = " Each pair of directions of greatest spread." if found.dimension > 2 else ""
    plate = Plate(
        f"map.{kind}",
        as_picture(ax, kind),
        f"Map of {n:,} objects in {amount(found.dimension, 'dimension')}; the table below lists "
        "them",
        f"Objects that are near each other were said to be alike.{grid}{regions} Only distances "
        "between objects mean something, not the axes or their unit.",
    )
    return Section("Map", [plate])


def about_objects(found: Embedding) -> Section:
    """How sure the position of each object is."""
    n, order = len(found.positions), np.arange(len(found.positions))
    columns: dict[str, Sequence[str]] = {"object": _names(found)}
    said, which = "How sure these positions are was not computed.", "the first and the last"
    if len(found.triplets):  # they need not be kept
        asked = np.bincount(found.triplets.ravel(), minlength=n)
        columns["comparisons"] = [f"{times:,}" for times in asked.tolist()]
        order, which = np.argsort(asked), "those in the fewest and in the most answers"
    if found.covariances is not None:
        spread = float(np.sqrt(found.positions.var(axis=0).sum())) or 1.0
        sd = np.sqrt(np.trace(found.covariances, axis1=1, axis2=2)) / spread
        columns["uncertainty"] = [percent(share) for share in sd.tolist()]
        order, which = np.argsort(-sd, kind="stable"), "the least and the most sure"
        said = (
            f"The uncertainty is the typical error of a position{held_fixed(found)}, as a share of "
            f"the spread of all objects; its median is {percent(float(np.median(sd)))}."
        )
    for j, axis in enumerate(found.positions.T[:5].tolist()):
        columns[f"x{j + 1}"] = [f"{x:.3g}" for x in axis]
    rows = [[column[i] for column in columns.values()] for i in order.tolist()]
    shown, caption = _outermost(rows, "objects", which)
    return Section("Objects", [Paragraph(said), Grid(caption, list(columns), shown)])


def about_methods(found: Embedding) -> Section:
    """Text for a methods section, with what it cites."""
    cited = [Paragraph(work) for work in references(found)]
    return Section("Methods", [Paragraph(methods_text(found)), *cited])


def about_repeating(found: Embedding, facts: dict[str, str], command: str | None) -> Section:
    """How to get the same again."""
    call = command or found.details.get("call")
    blocks: list[Block] = []
    if call:
        blocks.append(Code(call))
    if call and command is None and "random_state=" not in call:
        said = "No random_state was given: another run may differ in what the answers leave open."
        blocks.append(Paragraph(said))
    rows = [[name, value] for name, value in facts.items()]
    blocks.append(Grid("What it was computed with", ["what", "value"], rows))
    return Section("The same again", blocks)
