"""`nearer plan`: how many answers a map needs, and which task is best for so many hours."""

from __future__ import annotations

import json
from typing import Any

import click

from nearer.checks import amount
from nearer.cli.output import print_table, say, scheduler_option

__all__ = ["command"]

_TARGETS = (0.8, 0.85, 0.9, 0.95)
_DIMENSIONS = (1, 2, 3, 5, 8)
_NOISE = (0.0, 0.1, 0.2)


@click.command("plan")
@click.option("--objects", "n_objects", type=click.IntRange(min=4), required=True, help="Objects.")
@click.option("--dim", "n_components", type=click.IntRange(min=1), help="Dimensions expected.")
@click.option(
    "--noise",
    type=click.FloatRange(0, 0.5, max_open=True),
    help="Share of people's answers to random questions that are wrong.",
)
@click.option("--cost", type=click.FloatRange(min=0), help="Price of an answer.")
@click.option(
    "--hours",
    type=click.FloatRange(min=0, min_open=True),
    help="Compare tasks in so many hours of people's time, instead of comparisons by number.",
)
@click.option(
    "--tasks",
    help="Tasks to compare, commas between: 1 of 2, odd-one-out, 2 of 8. Default: six of them.",
)
@click.option("--answers", "most", type=click.IntRange(min=10), help="The largest study to try.")
@click.option(
    "--repeats",
    "n_repeats",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    help="Simulated studies; medians are printed.",
)
@click.option("--seed", type=click.IntRange(min=0), help="Makes the simulation repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
@scheduler_option
def command(
    n_objects: int,
    n_components: int | None,
    noise: float | None,
    cost: float | None,
    hours: float | None,
    tasks: str | None,
    most: int | None,
    n_repeats: int,
    seed: int | None,
    as_json: bool,
    scheduler: str | None,
) -> None:
    """Say how many answers a map needs.

    With --dim and --noise, studies of at most 1,000 objects are simulated. Otherwise it says how
    many comparisons and rounds `nearer embed` is expected to take, and with --cost how much money.

    With --hours, say which task is best in that time: comparisons, odd one out, or screens of which
    some are chosen.
    """
    from nearer.algorithms.adaptive import TOGETHER
    from nearer.scale.cluster import scheduler as sent_to

    if hours is not None and most is not None:
        raise click.UsageError("--answers and --hours both say how large the study is")
    if hours is None and tasks is not None:
        raise click.UsageError("--tasks compares tasks in a given time: add --hours")
    simulated = hours is not None or most is not None
    if simulated and None in (n_components, noise):
        raise click.UsageError("studies are simulated with --dim and --noise: add them")
    if n_components is None or noise is None or (n_objects > TOGETHER and not simulated):
        report, (title, columns, lines) = _forecast(n_objects, n_components, noise, cost)
    else:
        study = (n_objects, n_components, noise)
        with sent_to(scheduler):
            if hours is not None:
                named = [name.strip() for name in tasks.split(",")] if tasks else None
                report, (title, columns, lines) = _compare(study, hours, named, n_repeats, seed)
            else:
                report, (title, columns, lines) = _count(study, most, n_repeats, seed)
    if as_json:
        click.echo(json.dumps(report))
        return
    print_table(title, columns, left="task")
    for line in lines:
        say(line)


Shown = tuple[str, dict[str, list[str]], list[str]]  # title, columns and lines below the table


def _forecast(
    n: int, d: int | None, noise: float | None, cost: float | None
) -> tuple[dict[str, Any], Shown]:
    from nearer.algorithms.plan import forecast

    rows = []
    for wrong in _NOISE if noise is None else (noise,):
        for dimension in [e for e in _DIMENSIONS if e < n] if d is None else (d,):
            expected = forecast(n, dimension, noise=wrong)
            rows.append(
                {
                    "n_components": dimension,
                    "noise": wrong,
                    "n_comparisons": expected.n_comparisons,
                    "n_rounds": expected.n_rounds,
                    "cost": None if cost is None else round(cost * expected.n_comparisons, 2),
                }
            )
    columns = {
        "dimensions": [str(row["n_components"]) for row in rows],
        "wrong answers": [f"{row['noise']:.0%}" for row in rows],
        "comparisons": [f"{row['n_comparisons']:,}" for row in rows],
        "rounds": [f"{row['n_rounds']:,}" for row in rows],
    }
    if cost is not None:
        columns["cost"] = [f"{row['cost']:,.2f}" for row in rows]
    lines = ["a rough estimate for nearer embed without a budget: a run may take half as many more"]
    return {"n_objects": n, "forecast": rows}, (f"{n:,} objects", columns, lines)


def _count(
    study: tuple[int, int, float], most: int | None, n_repeats: int, seed: int | None
) -> tuple[dict[str, Any], Shown]:
    from nearer.algorithms.plan import plan_study

    plan = plan_study(*study, most=most, n_repeats=n_repeats, random_state=seed)
    needed = {target: plan.needed(target) for target in _TARGETS}
    report = _named(study) | {
        "n_answers": plan.n_answers.tolist(),
        "accuracy": plan.accuracy.round(4).tolist(),
        "agreement": plan.agreement.round(4).tolist(),
        "tau": plan.tau.round(4).tolist(),
        "ceiling": round(plan.ceiling, 4),
        "needed": {str(target): size for target, size in needed.items()},
    }
    columns = {
        "answers": [f"{m:,}" for m in plan.n_answers],
        "of the truth": [f"{x:.3f}" for x in plan.accuracy],
        "of people's answers": [f"{x:.3f}" for x in plan.agreement],
        "τ": [f"{x:.3f}" for x in plan.tau],
    }
    lines = [f"perfect knowledge predicts {plan.ceiling:.3f} of people's answers"]
    for target, size in needed.items():
        answers = "more than that" if size is None else f"about {size:,} answers"
        lines.append(f"{target:.0%} of the truth: {answers}")
    return report, (_title(study), columns, lines)


def _compare(
    study: tuple[int, int, float],
    hours: float,
    tasks: list[str] | None,
    n_repeats: int,
    seed: int | None,
) -> tuple[dict[str, Any], Shown]:
    from nearer.algorithms.plan import TASKS_TRIED, plan_tasks

    plan = plan_tasks(
        *study, hours, tasks=tasks or TASKS_TRIED, n_repeats=n_repeats, random_state=seed
    )
    accuracy, tau = plan.accuracy.mean(axis=0), plan.tau.mean(axis=0)
    best = plan.tasks[plan.best]
    report = _named(study) | {
        "hours": hours,
        "tasks": list(plan.tasks),
        "n_screens": plan.n_screens.tolist(),
        "accuracy": accuracy.round(4).tolist(),
        "tau": tau.round(4).tolist(),
        "best": best,
        "level_with_it": list(plan.level),
    }
    columns = {
        "task": list(plan.tasks),
        "screens": [f"{m:,}" for m in plan.n_screens],
        "of the truth": [f"{x:.3f}" for x in accuracy],
        "τ": [f"{x:.3f}" for x in tau],
    }
    if plan.level:
        certainty = f"not distinguished from it by {n_repeats} simulations: {', '.join(plan.level)}"
    else:
        certainty = f"better than all others by two standard errors in {n_repeats} simulations"
    times = "screens last as long as recorded for dishes of food, see nearer.Pace"
    title = f"{_title(study)}, {hours:g} hours"
    return report, (title, columns, [f"best: {best}", certainty, times])


def _named(study: tuple[int, int, float]) -> dict[str, Any]:
    return dict(zip(("n_objects", "n_components", "noise"), study, strict=True))


def _title(study: tuple[int, int, float]) -> str:
    n_objects, n_components, noise = study
    return f"{n_objects:,} objects, {amount(n_components, 'dimension')}, {noise:.0%} wrong answers"
