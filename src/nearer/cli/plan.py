"""`nearer plan`: how many answers a study needs, and which task is best for so many hours."""

from __future__ import annotations

import json

import click

from nearer.cli.options import scheduler_option
from nearer.wording import amount

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
    from rich.table import Table

    from nearer.cli.console import PlainConsole

    title = f"{n_objects:,} objects, {amount(n_components, 'dimension')}, {noise:.0%} wrong answers"
    table = Table(title=title, title_justify="left")
    for name in ("answers", "of the truth", "of people's answers", "τ"):
        table.add_column(name, justify="right")
    for m, truth, people, tau in zip(
        plan.n_answers, plan.accuracy, plan.agreement, plan.tau, strict=True
    ):
        table.add_row(f"{m:,}", f"{truth:.3f}", f"{people:.3f}", f"{tau:.3f}")
    console = PlainConsole()
    console.print(table)
    console.print(f"perfect knowledge predicts {plan.ceiling:.3f} of people's answers")
    for target, size in needed.items():
        answers = "more than that" if size is None else f"about {size:,} answers"
        console.print(f"{target:.0%} of the truth: {answers}")


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
    from rich.table import Table

    from nearer.cli.console import PlainConsole

    space = f"{n_objects:,} objects, {amount(n_components, 'dimension')}"
    title = f"{space}, {noise:.0%} wrong, {hours:g} hours"
    table = Table(title=title, title_justify="left")
    for name in ("task", "screens", "of the truth", "τ"):
        table.add_column(name, justify="left" if name == "task" else "right")
    for task, m, truth, t in zip(plan.tasks, plan.n_screens, accuracy, tau, strict=True):
        table.add_row(task, f"{m:,}", f"{truth:.3f}", f"{t:.3f}")
    console = PlainConsole()
    console.print(table)
    console.print(f"best: {best}")
    if plan.level:
        console.print(f"not told apart from it in {n_repeats} simulations: {', '.join(plan.level)}")
    else:
        console.print(f"better than each other by two standard errors in {n_repeats} simulations")
    console.print("screens last as long as recorded for dishes of food, see nearer.Pace")
