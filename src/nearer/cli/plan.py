"""`nearer plan`: how many answers a map needs, and which task is best for so many hours."""

from __future__ import annotations

import json
from functools import partial
from itertools import product
from typing import Any

import click

from nearer.checks import amount
from nearer.cli.output import json_option, option, print_table, say, scheduler_option, seed_option

__all__ = ["command"]

_several = partial(option, multiple=True)
_above_0 = click.FloatRange(0, min_open=True)
_below_half = click.FloatRange(0, 0.5, max_open=True)
_share = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("plan")
@click.option("--objects", "n_objects", type=click.IntRange(4), help="Objects.")
@click.option("--pilot", type=click.Path(exists=True), help="Answers of a pilot to plan from.")
@_several("--people", "people", type=click.IntRange(1), help="Numbers of people, with --pilot.")
@_several("--dim", "dimensions", type=click.IntRange(1), default=(1, 2, 3, 5, 8))
@_several("--noise", "noises", type=_below_half, default=(0, 0.1, 0.2), help="Wrong answers.")
@click.option("--cost", type=click.FloatRange(0), help="Price of an answer.")
@click.option("--hours", type=_above_0, help="Compare tasks in so many hours of people's time.")
@click.option("--tasks", help="Tasks to compare: 1 of 2, odd-one-out, 2 of 8. Default: six.")
@click.option("--answers", "most", type=click.IntRange(10), help="The largest study to try.")
@_several("--target", "targets", type=_share, default=(0.8, 0.85, 0.9, 0.95), help="Accuracy.")
@option("--repeats", "n_repeats", type=click.IntRange(1), default=3, help="Simulated studies.")
@seed_option
@json_option
@scheduler_option
def command(
    n_objects: int | None,
    pilot: str | None,
    people: tuple[int, ...],
    dimensions: tuple[int, ...],
    noises: tuple[float, ...],
    cost: float | None,
    hours: float | None,
    tasks: str | None,
    most: int | None,
    targets: tuple[float, ...],
    as_json: bool,
    scheduler: str | None,
    **how: Any,
) -> None:
    """Say how many answers a map needs.

    With one --dim and one --noise, studies of at most 1,000 objects are simulated. Otherwise it
    says how many comparisons and rounds `nearer embed` is expected to take, and with --cost how
    much money.

    With --pilot, forecast accuracy and τ against people and answers, with 80 % intervals, from
    answers of a pilot study, by people like those.

    With --hours, say which task is best in that time: comparisons, odd one out, or screens of which
    some are chosen.
    """
    from nearer.algorithms.adaptive import TOGETHER
    from nearer.scale.cluster import scheduler as sent_to

    how["n_repeats"], how["random_state"] = how.pop("n_repeats"), how.pop("seed")
    if hours is not None and most is not None:
        raise click.UsageError("--answers and --hours both say how large the study is")
    if hours is None and tasks is not None:
        raise click.UsageError("--tasks compares tasks in a given time: add --hours")
    if (pilot is None) == (n_objects is None):
        raise click.UsageError("plan from --objects or from a --pilot: give one of them")
    if pilot is not None or n_objects is None:
        report, title, columns, lines = _from_pilot(str(pilot), people, most, targets, how)
        _show(report, title, columns, lines, as_json=as_json)
        return
    expected = [(d, wrong) for wrong, d in product(noises, dimensions) if d < n_objects]
    wanted = hours is not None or most is not None
    if wanted and len(expected) != 1:
        raise click.UsageError("studies are simulated with one --dim and one --noise: add them")
    if len(expected) != 1 or (n_objects > TOGETHER and not wanted):
        report, title, columns, lines = _forecast(n_objects, expected, cost)
    else:
        study = (n_objects, *expected[0])
        with sent_to(scheduler):
            if hours is not None:
                report, title, columns, lines = _compare(study, hours, tasks, how)
            else:
                report, title, columns, lines = _count(study, most, targets, how)
        named = dict(zip(("n_objects", "n_components", "noise"), study, strict=True))
        report = named | report
        d, wrong = expected[0]
        title = f"{n_objects:,} objects, {amount(d, 'dimension')}, {wrong:.0%} wrong answers{title}"
    _show(report, title, columns, lines, as_json=as_json)


def _show(
    report: dict[str, Any],
    title: str,
    columns: dict[str, list[Any]],
    lines: list[str],
    *,
    as_json: bool,
) -> None:
    """Print a plan."""
    if as_json:
        click.echo(json.dumps(report))
        return
    print_table(title, columns, left=("task",))
    for line in lines:
        say(line)


# what is printed as JSON; title, columns and lines below the table
Shown = tuple[dict[str, Any], str, dict[str, list[Any]], list[str]]


def _forecast(n: int, expected: list[tuple[int, float]], cost: float | None) -> Shown:
    from nearer.algorithms.plan import forecast

    rows: list[dict[str, Any]] = []
    for d, wrong in expected:
        run = forecast(n, d, noise=wrong)
        paid = None if cost is None else round(cost * run.n_comparisons, 2)
        rows.append({"n_components": d, "noise": wrong, **vars(run), "cost": paid})
    heads = {"dimensions": "n_components", "wrong answers": "noise"}
    heads |= {"comparisons": "n_comparisons", "rounds": "n_rounds"}
    heads |= {} if cost is None else {"cost": "cost"}
    columns = {head: [row[key] for row in rows] for head, key in heads.items()}
    lines = ["a rough estimate for nearer embed without a budget: a run may take half as many more"]
    return {"n_objects": n, "forecast": rows}, f"{n:,} objects", columns, lines


def _from_pilot(
    pilot: str,
    people: tuple[int, ...],
    most: int | None,
    targets: tuple[float, ...],
    how: dict[str, Any],
) -> Shown:
    from nearer import fit
    from nearer.algorithms.plan import plan_pilot

    seed = how["random_state"]
    found = fit(pilot, random_state=seed)
    plan = plan_pilot(found, n_people=people or None, most=most, random_state=seed)
    rows = [(i, j) for i in range(len(plan.n_people)) for j in range(len(plan.n_answers))]
    columns: dict[str, list[Any]] = {
        "people": [int(plan.n_people[i]) for i, _ in rows],
        "answers": [int(plan.n_answers[j]) for _, j in rows],
    }
    for head, values in (("of further people's answers", plan.accuracy), ("τ", plan.tau)):
        limits = [values[i, j].round(3).tolist() for i, j in rows]
        columns[head] = [f"{middle:.3f} ({low:.3f} to {high:.3f})" for low, middle, high in limits]
    report = {"n_people": plan.n_people.tolist(), "n_answers": plan.n_answers.tolist()}
    report |= {"accuracy": plan.accuracy.round(4).tolist(), "tau": plan.tau.round(4).tolist()}
    needed = {n: {str(t): plan.needed(t, n) for t in targets} for n in report["n_people"]}
    lines = ["in brackets: intervals that hold 80 times in 100"]
    for n, sizes in needed.items():
        said = [f"τ {t} " + (f"about {m:,}" if m else "more than that") for t, m in sizes.items()]
        lines.append(f"answers needed of {amount(n, 'person', 'people')}: {', '.join(said)}")
    return report | {"needed": needed}, f"studies like {pilot}", columns, lines


def _count(
    study: tuple[int, int, float], most: int | None, targets: tuple[float, ...], how: dict[str, Any]
) -> Shown:
    from nearer.algorithms.plan import plan_study

    plan = plan_study(*study, most=most, **how)
    needed = {target: plan.needed(target) for target in targets}
    report: dict[str, Any] = {
        "n_answers": plan.n_answers.tolist(),
        "accuracy": plan.accuracy.round(4).tolist(),
        "agreement": plan.agreement.round(4).tolist(),
        "tau": plan.tau.round(4).tolist(),
        "ceiling": round(plan.ceiling, 4),
        "needed": {str(target): size for target, size in needed.items()},
    }
    heads = {"answers": "n_answers", "of the truth": "accuracy", "τ": "tau"}
    columns = {head: report[key] for head, key in {**heads, "of people's": "agreement"}.items()}
    lines = [f"perfect knowledge predicts {plan.ceiling:.3f} of people's answers"]
    for target, size in needed.items():
        answers = "more than that" if size is None else f"about {size:,} answers"
        lines.append(f"{target:.0%} of the truth: {answers}")
    return report, "", columns, lines


def _compare(
    study: tuple[int, int, float], hours: float, tasks: str | None, how: dict[str, Any]
) -> Shown:
    from nearer.algorithms.plan import TASKS_TRIED, plan_tasks

    named = [name.strip() for name in tasks.split(",")] if tasks else TASKS_TRIED
    plan = plan_tasks(*study, hours, tasks=named, **how)
    accuracy, tau = plan.accuracy.mean(axis=0), plan.tau.mean(axis=0)
    best = plan.tasks[plan.best]
    report: dict[str, Any] = {
        "hours": hours,
        "tasks": list(plan.tasks),
        "n_screens": plan.n_screens.tolist(),
        "accuracy": accuracy.round(4).tolist(),
        "tau": tau.round(4).tolist(),
        "best": best,
        "level_with_it": list(plan.level),
    }
    heads = {"task": "tasks", "screens": "n_screens", "of the truth": "accuracy", "τ": "tau"}
    columns = {head: report[key] for head, key in heads.items()}
    simulations = amount(how["n_repeats"], "simulation")
    certainty = f"better than all others at a level of 95 % in {simulations}"
    if plan.level:
        certainty = f"not distinguished from it by {simulations}: {', '.join(plan.level)}"
    times = "screens last as long as recorded for dishes of food, see nearer.Pace"
    return report, f", {hours:g} hours", columns, [f"best: {best}", certainty, times]
