"""What is said of people who are the sample, and how well each person is predicted.

Crowds: 24 objects in the plane, logistic errors. *ownmap*: each of ten people answers from an own
copy of the map, every object moved by half a standard deviation; *five*: five such people;
*unequal*: the logarithms of their numbers of answers have a standard deviation of 1.2; *same*: all
ten from one map, so that answers are independent. Each is fitted without people and with them: how
often ellipses of draws hold the true place, how often the interval of held-out accuracy holds the
accuracy for 1,000 further people, how far the expected τ is from the true one, mean confidence less
the share that came true, of further people and of these, and how much wider draws are with people.

*groups*: `nearer.compare` of two groups; three of 20 objects moved by one standard deviation, or
none of 24. *stops*: people with own maps answer, a quarter more each time, until the expected τ is
.85, or there are 6,000 answers. *pilots*: what `nearer.algorithms.plan.plan_pilot` predicts from
answers of six to thirty people, who differ in maps, sensitivities, weights of axes, lapses and
numbers of answers as `PILOTS` says, beside what 3,000 answers of 10 or 30 further people then gave
(of *alone*: of no particular person). *checks*: files of 4,800 answers, an
eighth wrong: how often the model check of reports says that no Euclidean map fits. *sets*: recorded
people, a fifth of the answers left out: accuracy, log loss and calibration of one map, of people
with sensitivities alone, and with weights as held-out answers ask for, triplet by triplet.

Short: 8 seeds. Full: 100.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform
from scipy.special import expit
from scipy.stats import f

import nearer
from benchmarks.coverage import _share
from benchmarks.harness import Cell, Rows, counted, distinct, grid, pick, table
from nearer.algorithms.plan import plan_pilot, scale_of
from nearer.metrics import mean_kendall_tau
from nearer.questions import answered, random_questions

DATA = Path(os.environ["NEARER_DATA"])  # benchmarks/__init__.py says where it is
SETS = {  # name → dimension
    "people_shapecolor16": 5,
    "people_reptile_tool": 5,
    "human_alieneggs30": 2,
    "human_alieneggs300": 2,
    "human_food100_grids": 3,
    "human_things_oddoneout": 5,
}
SPREAD, JITTER, DRAWS = 4.0, 0.5, 100


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    runs = range(seeds or (100 if full else 8))
    yield from grid("crowd", crowd, kind=("ownmap", "same"), m=(800, 3000), seed=runs)
    yield from grid("crowd", crowd, kind=("five", "unequal"), m=(3000,), seed=runs)
    yield from grid("groups", groups, people=(20,), m=(1200, 2400), moved=(3,), seed=runs)
    yield from grid("groups", groups, people=(10,), m=(800, 2400), moved=(0,), seed=runs)
    yield from grid("stops", stops, people=(10, 30), seed=runs)
    yield from grid("pilots", pilots, kind=tuple(PILOTS), seed=runs)
    yield from grid("checks", checks, kind=tuple(KINDS), seed=runs)
    yield from grid("sets", recorded, name=tuple(SETS), seed=range(min(len(runs), 3)))
    weighted = ("people_shapecolor16",)  # where weights matter: single splits differ by ± .01
    yield from grid("sets", recorded, name=weighted, seed=range(3, min(len(runs), 16)))


def said(maps: Any, who: Any, rng: np.random.Generator, lapse: float = 0.0) -> Any:
    """Answers of people to random questions, each from an own map."""
    questions = random_questions(maps.shape[1], len(who), rng)
    head, a, b = (maps[who, column] for column in questions.T)
    margins = np.linalg.norm(head - b, axis=1) - np.linalg.norm(head - a, axis=1)
    return answered(questions, rng.random(len(who)) < lapse + (1 - 2 * lapse) * expit(margins))


def crowd(kind: str, m: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    n, d, people = 24, 2, 5 if kind == "five" else 10
    X, maps = own_maps(n, people + 1000, rng, jitter=JITTER * (kind != "same"))
    who = np.arange(m) % people
    if kind == "unequal":
        share = np.exp(1.2 * rng.normal(size=people))
        who = rng.choice(people, m, p=share / share.sum())
    rows = said(maps, who, rng)
    further = said(maps, people + np.arange(40_000) % 1000, rng)
    figures: dict[str, Any] = {}
    further_than = d * (DRAWS**2 - 1) / (DRAWS * (DRAWS - d)) * f.ppf(0.95, d, DRAWS - d)
    for name, known in (("alone", None), ("people", who)):
        start = time.process_time()
        e = nearer.fit(rows, people=known, n_components=d, n_objects=n, random_state=seed)
        figures[f"{name}_seconds"] = time.process_time() - start
        draws = e.draws(DRAWS, seed)
        away = draws - draws.mean(axis=0)
        covariances = np.einsum("kni,knj->nij", away, away) / (DRAWS - 1)
        figures[f"{name}_draws"] = _share(X, draws.mean(axis=0), covariances, further_than)
        figures[f"{name}_width"] = float(np.sqrt(np.square(away).mean()) / e.positions.std())
        held = e.held_out.new_people or e.held_out
        figures[f"{name}_held"] = bool(held.low <= e.predict(further).mean() <= held.high)
        figures[f"{name}_tau"] = e.details["expected_tau"] - mean_kendall_tau(X, e.positions)
        figures[f"{name}_calibration"] = more_sure(e.predict_proba(further)[:, 1])
    whose = np.arange(8000) % people
    again, p = said(maps, whose, rng), np.empty(8000)
    for person in np.unique(who):
        p[whose == person] = e.predict_proba(again[whose == person], person=person)[:, 1]
    figures["people_again"] = more_sure(p[np.isin(whose, who)])
    return figures


def own_maps(n: int, people: int, rng: np.random.Generator, jitter: float = JITTER) -> Any:
    """A map of n objects, and what each person makes of it."""
    X = SPREAD * rng.normal(size=(n, 2))
    return X, X + SPREAD * jitter * rng.normal(size=(people, n, 2))


def more_sure(p: Any) -> float:
    """Mean confidence less the share of answers that came true, from their probabilities."""
    return float(np.maximum(p, 1 - p).mean() - (p > 0.5).mean())


def stops(people: int, seed: int) -> dict[str, Any]:
    rng, n, m = np.random.default_rng(seed), 24, 400
    X, maps = own_maps(n, people, rng)
    who = np.arange(6000) % people
    rows = said(maps, who, rng)
    known: dict[str, Any] = {"n_components": 2, "n_objects": n, "random_state": seed}
    while True:
        e = nearer.fit(rows[:m], people=who[:m], **known)
        expected = e.details["expected_tau"]
        if expected >= 0.85 or m == len(who):
            break
        m = min(m + m // 4, len(who))
    true = mean_kendall_tau(X, e.positions)
    return {"stopped": expected >= 0.85, "expected": expected, "true": true, "answers": m}


# objects, people, answers; standard deviations of an object in the unit of the map's, and of the
# logarithms of sensitivities, of axes and of numbers of answers; lapse rate
PILOTS: dict[str, Any] = {
    "own maps": (24, 10, 800, 0.5, 0.0, 0.0, 0.0, 0.0),
    "one map": (24, 10, 800, 0.0, 0.0, 0.0, 0.0, 0.0),
    "more answers": (24, 10, 2400, 0.5, 0.0, 0.0, 0.0, 0.0),
    "few people": (16, 6, 400, 0.5, 0.3, 0.0, 0.0, 0.0),
    "many people": (30, 30, 3000, 0.6, 0.4, 0.0, 0.5, 0.03),
    "sensitivities": (24, 12, 900, 0.35, 0.5, 0.0, 0.0, 0.04),
    "weights": (20, 15, 1500, 0.2, 0.2, 0.5, 0.0, 0.02),
    "unequal": (24, 10, 1200, 0.4, 0.3, 0.0, 1.0, 0.02),
    "alone": (24, 1, 800, 0.0, 0.0, 0.0, 0.0, 0.05),
}


def pilots(kind: str, seed: int) -> dict[str, Any]:
    n, people, m, jitter, sensitive, weigh, unequal, lapse = PILOTS[kind]
    rng, total = np.random.default_rng(seed), people + 1030
    X, maps = own_maps(n, total, rng, jitter)
    maps *= np.exp(sensitive * rng.normal(size=(total, 1, 1)))
    maps *= np.exp(weigh * rng.normal(size=(total, 1, 2)))
    share = np.exp(unequal * rng.normal(size=people))
    who = rng.choice(people, m, p=share / share.sum()) if unequal else np.arange(m) % people
    alone = people == 1
    known: dict[str, Any] = {"n_components": 2, "n_objects": n, "random_state": seed}
    pilot = nearer.fit(said(maps, who, rng, lapse), people=None if alone else who, **known)
    sizes = [1] if alone else [10, 30]
    plan = plan_pilot(pilot, n_people=sizes, most=3000, random_state=rng)
    tests = said(maps, people + 30 + np.arange(20_000) % 1000, rng, lapse)
    figures: dict[str, Any] = {}
    for count, accuracy, tau in zip(sizes, plan.accuracy[:, -1], plan.tau[:, -1], strict=True):
        who = np.arange(3000) % count
        e = nearer.fit(said(maps, people + who, rng, lapse), people=None if alone else who, **known)
        right, true = e.predict(tests).mean(), mean_kendall_tau(X, e.positions)
        for name, limits, value in (("accuracy", accuracy, right), ("tau", tau, true)):
            figures[f"{count} {name} held"] = bool(limits[0] <= value <= limits[2])
            figures[f"{count} {name} bias"] = float(limits[1] - value)
            figures[f"{count} {name} width"] = float(limits[2] - limits[0])
    return figures


def _additive(rng: np.random.Generator) -> Any:
    """Objects at the nodes of a random tree: a column for each branch, of length 1 on average."""
    X = np.eye(24)
    for i in range(1, 24):
        X[i] += X[rng.integers(i)]
    return X * rng.exponential(size=24)


def _ultrametric(rng: np.random.Generator) -> Any:
    """Leaves of a random tree that are all equally far from its root."""
    sides, columns, grown = list(np.eye(24)), [], np.zeros(24)
    while len(sides) > 1:
        i, j = sorted(rng.choice(len(sides), 2, replace=False))
        grown += rng.exponential() / len(sides) ** 2
        columns += [side * (grown - sum(columns, np.zeros(24))) for side in (sides[i], sides[j])]
        sides[i] = sides[i] + sides.pop(j)
    return np.array(columns).T


def _clusters(rng: np.random.Generator) -> Any:
    """Three tight clusters in the plane."""
    return 4 * rng.normal(size=(3, 2))[rng.integers(3, size=24)] + 0.3 * rng.normal(size=(24, 2))


KINDS: dict[str, Any] = {  # what has which points, compared by which metric
    "plane": (lambda rng: rng.normal(size=(24, 2)), "euclidean"),
    "space": (lambda rng: rng.normal(size=(24, 3)), "euclidean"),
    "clusters": (_clusters, "euclidean"),
    "weak axis": (lambda rng: rng.normal(size=(24, 3)) * [1, 1, 1 / 3], "euclidean"),
    "city block, 2": (lambda rng: rng.normal(size=(24, 2)), "cityblock"),
    "city block, 3": (lambda rng: rng.normal(size=(24, 3)), "cityblock"),
    "additive tree": (_additive, "cityblock"),
    "ultrametric tree": (_ultrametric, "cityblock"),
}


def checks(kind: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    make, metric = KINDS[kind]
    D = squareform(pdist(make(rng), metric))
    questions = random_questions(24, 4800, rng)
    head, a, b = questions.T
    margins = D[head, b] - D[head, a]
    near = rng.random(4800) < expit(margins / scale_of(margins, 1 / 8))
    e = nearer.fit(answered(questions, near), n_objects=24, random_state=seed)
    checked = e.details["checks"] or {}
    return {"flagged": bool(checked.get("other distances", 1.0) <= 0.05), "dimension": e.dimension}


def groups(people: int, m: int, moved: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    n = 20 if moved else 24
    X = SPREAD * rng.normal(size=(n, 2))
    angle, Y = rng.uniform(0, 2 * np.pi, moved), X.copy()
    Y[:moved] += SPREAD * np.column_stack([np.cos(angle), np.sin(angle)])
    maps = np.concatenate([np.tile(X, (people, 1, 1)), np.tile(Y, (people, 1, 1))])
    maps += SPREAD * JITTER * rng.normal(size=maps.shape)
    who = np.arange(2 * m) % (2 * people)
    rows = said(maps, who, rng)
    known: dict[str, Any] = {"n_components": 2, "n_objects": n, "random_state": seed}
    sides = [who < people, who >= people]
    two = [nearer.fit(rows[side], people=who[side], **known) for side in sides]
    comparison = nearer.compare(*two, n_permutations=199, random_state=seed)
    named = np.flatnonzero(comparison.moved <= 0.05)
    return {
        "differ": comparison.p_differ <= 0.05,
        "named": int((named < moved).sum()),
        "wrong": bool((named >= moved).any()),
    }


def recorded(name: str, seed: int) -> dict[str, Any]:
    trials = nearer.read_trials(next(DATA.glob(f"{name}.*")))
    out = np.random.default_rng(seed).random(len(trials)) < 0.2
    tested = trials[out]
    rows, trial = tested.triplets()
    whose = np.asarray(tested.people)[trial]
    known: dict[str, Any] = {"n_components": SETS[name], "n_objects": trials.n_objects}
    figures: dict[str, Any] = {}
    for kind, options in (("one map", {}), ("no", {"differ": "no"}), ("auto", {"differ": "auto"})):
        seen = trials[~out] if options else trials[~out].with_fields(people=None)
        e = nearer.fit(seen, random_state=seed, **options, **known)
        p = e.predict_proba(rows)[:, 1]
        if e.people is not None:
            for person in np.intersect1d(whose, e.people["id"]):
                its = whose == person
                p[its] = e.predict_proba(rows[its], person=person)[:, 1]
        figures[f"{kind} accuracy"] = float((p > 0.5).mean())
        figures[f"{kind} log loss"] = float(-np.log(p).mean())
        figures[f"{kind} calibration"] = more_sure(p)
    return figures


def _mean(rows: Rows, key: str) -> str:
    values = [float(row[key]) for row in rows]
    return f"{np.mean(values):.3f} ± {np.std(values) / np.sqrt(len(values)):.3f}"


def _of_pilots(rows: Rows, key: str) -> str:
    """The mean over pilots of what both numbers of people give, which depends."""
    both = [[v for k, v in row.items() if str(k).endswith(key)] for row in rows]
    return _mean([{key: np.mean(values)} for values in both], key)


def _pictures(folder: Path) -> None:
    """What shape and colour count for each of 20 people, and two groups that differ."""
    trials = nearer.read_trials(DATA / "people_shapecolor16.csv")
    e = nearer.fit(trials, n_components=2, differ="weights", random_state=0)
    nearer.plotting.save(e.plot(people=True), folder / "people-weights.png")
    rng = np.random.default_rng(0)
    X = SPREAD * rng.normal(size=(20, 2))
    Y = X + 2 * SPREAD * (np.arange(20) < 3)[:, None] * [1.0, 0.0]
    maps = np.concatenate([np.tile(X, (20, 1, 1)), np.tile(Y, (20, 1, 1))])
    maps += SPREAD * JITTER * rng.normal(size=maps.shape)
    who = np.arange(4800) % 40
    comparison = nearer.compare(said(maps, who, rng), people=who, groups=who >= 20, random_state=0)
    nearer.plotting.save(comparison.plot(), folder / "people-groups.png")


def page(rows: Rows, folder: Path) -> str:
    if pick(rows, "sets"):
        _pictures(folder)
    lines = []
    for kind, m in distinct(pick(rows, "crowd"), "kind", "m"):
        some = pick(rows, "crowd", kind=kind, m=m)
        wider = np.mean([row["people_width"] / row["alone_width"] for row in some])
        for name in ("alone", "people"):
            keys = ("draws", "held", "tau", "calibration", "seconds")
            shown = [_mean(some, f"{name}_{key}") for key in keys]
            shown.insert(4, _mean(some, "people_again") if name == "people" else "")
            width = f"{wider:.2f}" if name == "people" else ""
            lines.append([kind, f"{m:,}", name, *shown, width, len(some)])
    head = ["crowd", "answers", "fitted", "draws hold", "held-out holds", "τ expected − true"]
    head += ["confidence − right, further people", "these people", "seconds", "wider by", "runs"]
    text = table(head, lines)
    lines = []
    for people, m, moved in distinct(pick(rows, "groups"), "people", "m", "moved"):
        some = pick(rows, "groups", people=people, m=m, moved=moved)
        shown = [_mean(some, key) for key in ("differ", "named", "wrong")]
        lines.append([people, f"{m:,}", moved, *shown, len(some)])
    head = ["people a group", "answers a group", "moved", "p ≤ .05", "named", "any wrongly", "runs"]
    text += "\n\n" + table(head, lines)
    lines = []
    for people in distinct(pick(rows, "stops"), "people"):
        some = pick(rows, "stops", people=people)
        ends = [[row for row in some if row["stopped"] == stopped] for stopped in (True, False)]
        for stopped, these in zip(("at .85", "at 6,000 answers"), ends, strict=True):
            if these:
                shown = [_mean(these, key) for key in ("answers", "expected", "true")]
                bias = _mean([{"bias": row["expected"] - row["true"]} for row in these], "bias")
                lines.append([people, stopped, *shown, bias, len(these)])
    head = ["people", "stopped", "answers", "expected τ", "true τ", "expected − true", "runs"]
    text += "\n\n" + table(head, lines)
    lines = []
    for kind in (*distinct(pick(rows, "pilots"), "kind"), None):
        some = pick(rows, "pilots", **({} if kind is None else {"kind": kind}))
        for name in ("accuracy", "tau") if some else ():
            shown = [_of_pilots(some, f"{name} {key}") for key in ("held", "bias", "width")]
            lines.append([kind or "all", name, *shown, len(some)])
    head = ["pilot", "prediction", "80 % interval holds", "prediction − true", "width", "pilots"]
    text += "\n\n" + table(head, lines)
    lines = []
    for kind in distinct(pick(rows, "checks"), "kind"):
        some = pick(rows, "checks", kind=kind)
        lines.append([kind, _mean(some, "flagged"), counted(some, "dimension"), len(some)])
    text += "\n\n" + table(["distances of", "flagged", "dimensions: files", "files"], lines)
    lines = []
    for name in distinct(pick(rows, "sets"), "name"):
        some = pick(rows, "sets", name=name)
        for kind in ("one map", "no", "auto"):
            keys = ("accuracy", "log loss", "calibration")
            lines.append([name, kind, *(_mean(some, f"{kind} {key}") for key in keys), len(some)])
    head = ["answers", "differ", "accuracy", "log loss", "confidence − right", "splits"]
    return "# People are the sample\n\n" + text + "\n\n" + table(head, lines)
