"""Kinds of answers by hours of people's time: screens, odd one out, most central.

(a) *food*: recorded screens of each task, as many as fit into a time; a fit of the choices
beside one of the triplets they can be split into, judged on the screens of other people. (b)
*alone*: odd one out (things) and most central (cars), the same two fits. (c) *hour*: simulated
people with the recorded pace: chosen and random screens and comparisons. (d) *rules*: our choice of
screens beside InfoTuple's rule (Canal et al. 2020), the same fit behind both. (e) *speed* of the
kernels, *pace* and *sharpness* of each task.

Short: two seeds (three where people are simulated, four of odd one out and most central, twelve of
each rule), five tasks. Full: five seeds, all tasks.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax, xlogy

import nearer
from benchmarks._simulated import NOISE, believe, people_who_choose, random_screens
from benchmarks.harness import Cell, Rows, ahead, cell, distinct, grid, median, pick, table
from nearer.algorithms.choose_questions import ScreenSource
from nearer.datasets.loaders import folders
from nearer.errors import MissingData
from nearer.fitting.belief import Belief
from nearer.fitting.heldout import fit_curve
from nearer.fitting.likelihood import Noise, as_answers
from nearer.fitting.posterior import Posterior
from nearer.questions import random_questions
from nearer.trials import Task, Trials

FOOD = ("1 of 2", "1 of 4", "2 of 8", "4 of 12", "4 of 16")
ALL_FOOD = ("1 of 2", "1 of 4", "1 of 8", "1 of 12", "1 of 16", "2 of 4", "2 of 8", "2 of 12",
            "2 of 16", "4 of 8", "4 of 12", "4 of 16")  # fmt: skip
CANDIDATES = 100  # bodies that InfoTuple's rule scores for each head
SAMPLES = 100  # of the distances, for its expectation


def cells(full: bool, seeds: int | None) -> Iterator[Cell]:
    drawn = range(seeds or (5 if full else 2))
    simulated = range(seeds or (5 if full else 3))
    ruled = range(seeds or 12)  # rules differ by less than the runs of one
    judged = range(seeds or (5 if full else 4))
    yield cell("pace", pace, data="food")
    yield cell("speed", speed, n=100, m=20_000)
    times = (600, 1200, 1800, 2400) if full else (600, 1200, 2400)
    tasks = ALL_FOOD if full else FOOD
    yield from grid("food", food, task=tasks, seconds=times, split=(False, True), seed=drawn)
    sizes = (495, 1485, 6000) if full else (495, 1485)
    yield from grid("mixed", mixed, size=sizes, split=(False, True), seed=drawn)
    for data, counts in {"cars": (1000, 4000), "things": (10_000,)}.items():
        yield from grid("alone", alone, data=[data], size=counts, split=(False, True), seed=judged)
    ways = ("random", "chosen")
    minutes = (10, 20, 40, 60) if full else (20, 60)
    tried = ("1 of 2", "2 of 8", "4 of 16") + (("1 of 4", "4 of 12", "odd-one-out") if full else ())
    yield from grid(
        "hour", hour, n=(60, 100), task=tried, way=ways, minutes=minutes, seed=simulated
    )
    yield from grid(
        "rules", rules, task=("1 of 2", "1 of 4"), rule=("ours", "InfoTuple", "random"),
        answers=(200, 400) if full else (400,), seed=ruled,
    )  # fmt: skip


# --- recorded ------------------------------------------------------------------------------------


def _file(name: str) -> Path:
    for folder in folders():
        if (folder / name).exists():
            return folder / name
    raise MissingData(f"{name}: put it into the folder that NEARER_DATA names")


def _food() -> Trials:
    return nearer.read_trials(_file("human_food100_grids.jsonl.gz"))


def _of_task(trials: Trials, task: str) -> Trials:
    wanted = Task.parse(task)
    return trials[(trials.wanted == wanted.choose) & (trials.n_shown == wanted.shown)]


def pace(data: str) -> dict[str, Any]:
    trials = _food()
    table = np.column_stack([np.ones(len(trials)), trials.wanted, trials.n_shown])
    seconds = np.minimum(trials.seconds, 30)  # beyond that people were looking away
    result, out = nearer.Pace(*np.linalg.lstsq(table, seconds, rcond=None)[0].tolist()), {}
    sharp = _sharpness(trials)
    for task in ALL_FOOD:
        part = _of_task(trials, task)
        out[f"recorded {task}"] = float(np.minimum(part.seconds, 30).mean())
        out[f"model {task}"] = result.seconds(task)
        out[f"sharpness {task}"] = sharp[task]
    return out | {"start": result.start, "choice": result.choice, "look": result.look}


def _sharpness(trials: Trials) -> dict[str, float]:
    """Of each task's own curve, relative to the one for all, on screens held out."""
    belief = believe(trials, 100, 3, split=False)
    held = belief.held_out
    assert held is not None
    choices, lapse = held.predictions.choices, held.curve.lapse
    grid = held.curve.sharpness * np.geomspace(0.5, 2, 29)
    logs = np.array([held.predictions.along(sharpness, lapse)[0] for sharpness in grid])
    figures = {}
    for task in map(Task.parse, ALL_FOOD):
        own = (choices.wanted == task.choose) & (np.diff(choices.starts) == task.shown)
        figures[str(task)] = float(grid[logs[:, own].sum(axis=1).argmax()] / held.curve.sharpness)
    return figures


def _people_apart(trials: Trials, seed: int) -> tuple[Trials, Trials]:
    """Trials of four fifths of the people in random order, and those of the others."""
    rng = np.random.default_rng(seed)
    people = rng.permutation(np.unique(trials.people))
    held = np.isin(trials.people, people[: len(people) // 5])
    train = trials[~held]
    return train[rng.permutation(len(train))], trials[held]


def _judged(belief: Belief, test: Trials, n: int) -> dict[str, float]:
    """Accuracy and log-likelihood: with the fit's own curve, and with the one best for the test."""
    choices = as_answers(test, n)
    predictions, curve = choices.predictions(belief.fit), belief.fit.curve
    weights = choices.weights / choices.weights.sum()
    logs = curve.log_likelihood(predictions)
    best = fit_curve(predictions, choices.weights).log_likelihood(predictions)
    known = np.isfinite(predictions.right)
    return {
        "accuracy": float(np.average(predictions.right[known], weights=weights[known])),
        "log_likelihood": float(weights @ logs),
        "best_curve": float(weights @ best),
    }


def food(task: str, seconds: int, split: bool, seed: int) -> dict[str, Any]:
    train, test = _people_apart(_food(), seed)
    train = _of_task(train, task)
    spent = np.cumsum(np.minimum(train.seconds, 30))
    if spent[-1] < seconds:
        return {"accuracy": None, "log_likelihood": None, "best_curve": None, "screens": None}
    train = train[spent <= seconds]
    return _judged(believe(train, 100, 3, split=split), test, 100) | {"screens": len(train)}


def mixed(size: int, split: bool, seed: int) -> dict[str, Any]:
    train, test = _people_apart(_food(), seed)
    return _judged(believe(train[:size], 100, 3, split=split), test, 100)


def alone(data: str, size: int, split: bool, seed: int) -> dict[str, Any]:
    human = nearer.datasets.load_human(data)
    rows = human.triplets[::2]  # two triplets a trial
    shown = np.sort(rows, axis=1)
    if data == "cars":
        trials, d = Trials.most_central(shown, rows[:, 1]), 2
    else:
        trials, d = Trials.odd_one_out(shown, rows[:, 2]), 4
    rng = np.random.default_rng(seed)
    order, n = rng.permutation(len(trials)), len(human.labels)
    train, test = trials[order[:size]], trials[order[-min(3000, len(trials) // 4) :]]
    belief = believe(train, n, d, split=split)
    return _judged(belief, test, n) | {"calibration": _calibration(belief.fit, test, n)}


def _calibration(fit: Posterior, test: Trials, n: int) -> float:
    """Mean difference of predicted and observed probabilities of alternatives, in ten bins."""
    choices = as_answers(test, n)
    u = choices.predictions(fit).utilities.reshape(-1, 3)
    lapse = fit.curve.lapse
    p = (2 * lapse / 3 + (1 - 2 * lapse) * softmax(fit.curve.sharpness * u, axis=1)).ravel()
    bins = np.minimum((10 * p).astype(int), 9)
    weights = np.repeat(choices.weights, 3)
    count = np.bincount(bins, weights, 10)
    gap = np.bincount(bins, weights * (p - choices.credit), 10)
    return float(np.abs(gap).sum() / count.sum())


# --- simulated -----------------------------------------------------------------------------------


def hour(n: int, task: str, way: str, minutes: int, seed: int) -> dict[str, Any]:
    X, people, rng = people_who_choose(n, 3, task, seed)
    wanted = Task.parse(task)
    budget = int(60 * minutes / nearer.Pace().seconds(wanted))
    if way == "chosen":
        strategy = nearer.adaptive(
            n, budget=budget, n_components=3, quality=1, task=task, random_state=seed
        )
        positions = nearer.run(strategy, people).positions
    else:
        screens = random_screens(n, wanted, budget, rng)
        trials = Trials.from_screens(screens, people(screens))
        positions = believe(trials, n, 3, split=wanted.is_comparison).fit.positions
    return {"tau": float(nearer.metrics.mean_kendall_tau(X, positions)), "screens": budget}


def info_tuple(fit: Posterior, task: Task, count: int, rng: np.random.Generator) -> Any:
    """Heads in turn; of some bodies the one of greatest mutual information with the distances.

    As its authors do it, distances are independent Gaussians around those of the map, with the
    variance of all of them, and folded where negative; the information is the entropy of the mean
    answer less the mean entropy of the answer. There, people rank the whole body by a model of
    their own; here they choose one, as our tasks ask, by the curve of the fit that both rules
    share.
    """
    X, n = fit.positions, len(fit.positions)
    pairs = np.triu_indices(n, 1)
    spread = np.linalg.norm(X[pairs[0]] - X[pairs[1]], axis=1).std()
    rows = []
    for head in itertools.islice(itertools.cycle(rng.permutation(n).tolist()), count):
        others = np.delete(np.arange(n), head)
        bodies = np.array([rng.permutation(others)[: task.shown] for _ in range(CANDIDATES)])
        distance = np.linalg.norm(X[bodies] - X[head], axis=2)
        drawn = distance + spread * rng.normal(size=(SAMPLES, *distance.shape))
        p = softmax(-fit.curve.sharpness * np.abs(drawn), axis=2)
        mean = p.mean(axis=0)
        information = xlogy(p, p).sum(axis=2).mean(axis=0) - xlogy(mean, mean).sum(axis=1)
        rows.append(np.concatenate([[head], bodies[information.argmax()]]))
    return np.array(rows)


def rules(task: str, rule: str, answers: int, seed: int) -> dict[str, Any]:
    n = 60
    X, people, rng = people_who_choose(n, 3, task, seed)
    wanted = Task.parse(task)
    source = ScreenSource(n, wanted)
    belief = Belief(n, 3, seed)
    screens = random_screens(n, wanted, 3 * n // (wanted.shown + 1), rng)
    said, spent = people(screens), 0.0
    while True:
        trials = Trials.from_screens(screens, said)
        belief.learn(trials)
        if len(screens) >= answers:
            break
        if rule == "ours" and not spent:  # load what is compiled before the clock starts
            ScreenSource(n, wanted).draw(belief, 1, np.random.default_rng(seed))
        count, start = min(20, answers - len(screens)), time.process_time()
        if rule == "ours":
            new, _ = source.draw(belief, count, rng)
        elif rule == "InfoTuple":
            new = info_tuple(belief.fit, wanted, count, rng)
        else:
            new = random_screens(n, wanted, count, rng)
        spent += time.process_time() - start
        screens, said = np.concatenate([screens, new]), np.concatenate([said, people(new)])
    belief.conclude()
    tau = nearer.metrics.mean_kendall_tau(X, belief.fit.positions)
    return {"tau": float(tau), "choosing_ms": 1e3 * spent / len(screens)}


def speed(n: int, m: int) -> dict[str, Any]:
    """Milliseconds for one look at m comparisons, as triplets and as choices."""
    rng = np.random.default_rng(0)
    X, rows = rng.normal(size=(n, 3)), random_questions(n, m, rng)
    evidence, choices = as_answers(rows, n), as_answers(Trials.from_triplets(rows), n)
    noise, out = Noise(1.0, 0.02), {}
    for name, answers in {"triplets": evidence, "choices": choices}.items():
        answers.sums(X, noise)
        start = time.perf_counter()
        for _ in range(20):
            answers.sums(X, noise)
        out[name] = 1e3 * (time.perf_counter() - start) / 20
    return out


# --- the page ------------------------------------------------------------------------------------


def page(rows: Rows, folder: Path) -> str:
    parts = [_pace_page(rows), _food_page(rows), _alone_page(rows), _hour_page(rows, folder)]
    return "\n".join([*parts, _rules_page(rows)])


def _pace_page(rows: Rows) -> str:
    text = ""
    for row in pick(rows, "pace"):
        text += (
            f"Seconds a screen: {row['start']:.2f} + {row['choice']:.2f} k + {row['look']:.2f} m. "
            "Sharpness of each task's own curve, relative to the one for all:\n\n"
        )
        lines = [
            (task, f"{row['recorded ' + task]:.1f}", f"{row['model ' + task]:.1f}",
             f"{row['sharpness ' + task]:.2f}")
            for task in ALL_FOOD
        ]  # fmt: skip
        text += table(("task", "recorded s", "model s", "sharpness"), lines) + "\n"
    for row in pick(rows, "speed"):
        text += (
            f"{row['m']:,} comparisons: {row['triplets']:.2f} ms as triplets, "
            f"{row['choices']:.2f} ms as choices.\n"
        )
    return text


def _pair(rows: Rows, figure: str) -> str:
    """Choices beside split triplets."""
    values = []
    for split in (False, True):
        some = [r for r in rows if r["split"] == split and r[figure] is not None]
        values.append(f"{median(some, figure):.3f}" if some else "–")
    return " / ".join(values)


def _food_page(rows: Rows) -> str:
    text = "Recorded screens, judged on other people: choices / split triplets\n\n"
    lines = []
    for part, keys in (("food", ("task", "seconds")), ("mixed", ("size",))):
        for key in distinct(pick(rows, part), *keys):
            values = key if isinstance(key, tuple) else (key,)
            some = pick(rows, part, **dict(zip(keys, values, strict=True)))
            what = f"{values[0]}, {values[1]:,} s" if part == "food" else f"{key:,} of all tasks"
            lines.append((what, *(_pair(some, f) for f in
                                  ("accuracy", "log_likelihood", "best_curve"))))  # fmt: skip
    return text + table(("screens", "accuracy", "log-likelihood", "best curve"), lines)


def _alone_page(rows: Rows) -> str:
    lines = [
        (data, f"{size:,}", *(_pair(pick(rows, "alone", data=data, size=size), f)
                              for f in ("accuracy", "log_likelihood", "best_curve",
                                        "calibration")))
        for data, size in distinct(pick(rows, "alone"), "data", "size")
    ]  # fmt: skip
    head = ("data", "trials", "accuracy", "log-likelihood", "best curve", "calibration error")
    return "Odd one out and most central: choices / split triplets\n\n" + table(head, lines)


def _hour_page(rows: Rows, folder: Path) -> str:
    some = pick(rows, "hour")
    if not some:
        return ""
    minutes = sorted(distinct(some, "minutes"))
    lines = []
    for n, task, way in distinct(some, "n", "task", "way"):
        own = [pick(some, "hour", n=n, task=task, way=way, minutes=t) for t in minutes]
        lines.append((n, task, way, *(f"{median(r, 'tau'):.3f}" if r else "–" for r in own)))
    _draw(some, minutes, folder / "choices.png")
    head = ("objects", "task", "screens", *(f"τ in {t} min" for t in minutes))
    return f"Simulated people, {NOISE:.0%} of random comparisons wrong\n\n" + table(head, lines)


def _draw(rows: Rows, minutes: list[int], path: Path) -> None:
    import matplotlib.pyplot as plt

    sizes = distinct(rows, "n")
    figure, axes = plt.subplots(1, len(sizes), figsize=(5 * len(sizes), 3.6), squeeze=False)
    for ax, n in zip(axes[0], sizes, strict=True):
        for i, task in enumerate(distinct(rows, "task")):
            for way, style in (("random", "--"), ("chosen", "-")):
                own = [pick(rows, "hour", n=n, task=task, way=way, minutes=t) for t in minutes]
                tau = [median(r, "tau") if r else np.nan for r in own]
                ax.plot(minutes, tau, style, color=f"C{i}", marker="o", label=f"{task}, {way}")
        ax.set(xlabel="minutes of people's time", ylabel="τ", title=f"{n} objects, d = 3")
    axes[0][-1].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _rules_page(rows: Rows) -> str:
    lines = []
    for task, answers in distinct(pick(rows, "rules"), "task", "answers"):
        some = pick(rows, "rules", task=task, answers=answers)
        random = pick(some, "rules", rule="random")
        for rule in distinct(some, "rule"):
            own = pick(some, "rules", rule=rule)
            gain = ahead(own, random, "tau") if rule != "random" else ""
            lines.append((task, answers, rule, f"{median(own, 'tau'):.3f}", gain,
                          f"{median(own, 'choosing_ms'):.2f}", len(own)))  # fmt: skip
    head = ("task", "answers", "rule", "τ", "ahead of random", "ms of choosing an answer", "runs")
    return "Rules of choosing, 60 objects, the same fit\n\n" + table(head, lines)
