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
@click.option("--objects", "n_objects", type=click.IntRange(4), required=True, help="Objects.")
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
    n_objects: int,
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
