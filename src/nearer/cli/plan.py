"""`nearer plan`: how many answers a study needs, and which task is best for so many hours."""

from __future__ import annotations

import json

import click

from nearer.checks import amount
from nearer.cli.output import print_lines, print_table, scheduler_option

__all__ = ["command"]

_TARGETS = (0.8, 0.85, 0.9, 0.95)


@click.command("plan")
@click.option("--objects", "n_objects", type=click.IntRange(min=4), required=True, help="Objects.")
@click.option(
    "--dim", "n_components", type=click.IntRange(min=1), required=True, help="Dimensions expected."
)
@click.option(
    "--noise",
    type=click.FloatRange(0, 0.5, max_open=True),
    required=True,
    help="Share of people's answers to random questions that are wrong.",
)
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
    n_components: int,
    noise: float,
    hours: float | None,
    tasks: str | None,
    most: int | None,
    n_repeats: int,
    seed: int | None,
    as_json: bool,
    scheduler: str | None,
) -> None:
    """Say how many answers a study needs for which accuracy, from simulation.

    With --hours, say which task is best in that time: comparisons, odd one out, or screens of which
    some are chosen.
    """
    from nearer.scale.cluster import scheduler as sent_to

    if hours is not None and most is not None:
        raise click.UsageError("--answers and --hours both say how large the study is")
    if hours is None and tasks is not None:
        raise click.UsageError("--tasks compares tasks in a given time: add --hours")
    given = [name.strip() for name in tasks.split(",")] if tasks else None
    with sent_to(scheduler):
        if hours is not None:
            _compare(n_objects, n_components, noise, hours, given, n_repeats, seed, as_json)
        else:
            _count(n_objects, n_components, noise, most, n_repeats, seed, as_json)


def _count(
    n_objects: int,
    n_components: int,
    noise: float,
    most: int | None,
    n_repeats: int,
    seed: int | None,
    as_json: bool,
) -> None:
    from nearer.algorithms.planning import plan_study

    plan = plan_study(
        n_objects, n_components, noise, most=most, n_repeats=n_repeats, random_state=seed
    )
    needed = {target: plan.needed(target) for target in _TARGETS}
    if as_json:
        summary = {
            "n_objects": n_objects,
            "n_components": n_components,
            "noise": noise,
            "n_answers": plan.n_answers.tolist(),
            "accuracy": plan.accuracy.round(4).tolist(),
            "agreement": plan.agreement.round(4).tolist(),
            "tau": plan.tau.round(4).tolist(),
            "ceiling": round(plan.ceiling, 4),
            "needed": {str(target): size for target, size in needed.items()},
        }
        click.echo(json.dumps(summary))
        return
    title = f"{n_objects:,} objects, {amount(n_components, 'dimension')}, {noise:.0%} wrong answers"
    columns = {
        "answers": [f"{m:,}" for m in plan.n_answers],
        "of the truth": [f"{x:.3f}" for x in plan.accuracy],
        "of people's answers": [f"{x:.3f}" for x in plan.agreement],
        "τ": [f"{x:.3f}" for x in plan.tau],
    }
    print_table(title, columns)
    lines = [f"perfect knowledge predicts {plan.ceiling:.3f} of people's answers"]
    for target, size in needed.items():
        answers = "more than that" if size is None else f"about {size:,} answers"
        lines.append(f"{target:.0%} of the truth: {answers}")
    print_lines(lines)


def _compare(
    n_objects: int,
    n_components: int,
    noise: float,
    hours: float,
    tasks: list[str] | None,
    n_repeats: int,
    seed: int | None,
    as_json: bool,
) -> None:
    from nearer.algorithms.task_planning import TASKS_TRIED, plan_tasks

    plan = plan_tasks(
        n_objects,
        n_components,
        noise,
        hours,
        tasks=tasks or TASKS_TRIED,
        n_repeats=n_repeats,
        random_state=seed,
    )
    accuracy, tau = plan.accuracy.mean(axis=0), plan.tau.mean(axis=0)
    best = plan.tasks[plan.best]
    if as_json:
        summary = {
            "n_objects": n_objects,
            "n_components": n_components,
            "noise": noise,
            "hours": hours,
            "tasks": list(plan.tasks),
            "n_screens": plan.n_screens.tolist(),
            "accuracy": accuracy.round(4).tolist(),
            "tau": tau.round(4).tolist(),
            "best": best,
            "level_with_it": list(plan.level),
        }
        click.echo(json.dumps(summary))
        return
    space = f"{n_objects:,} objects, {amount(n_components, 'dimension')}"
    columns = {
        "task": list(plan.tasks),
        "screens": [f"{m:,}" for m in plan.n_screens],
        "of the truth": [f"{x:.3f}" for x in accuracy],
        "τ": [f"{x:.3f}" for x in tau],
    }
    print_table(f"{space}, {noise:.0%} wrong, {hours:g} hours", columns, left="task")
    if plan.level:
        certainty = f"not distinguished from it by {n_repeats} simulations: {', '.join(plan.level)}"
    else:
        certainty = f"better than all others by two standard errors in {n_repeats} simulations"
    times = "screens last as long as recorded for dishes of food, see nearer.Pace"
    print_lines([f"best: {best}", certainty, times])
