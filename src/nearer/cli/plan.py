"""`nearer plan`: how many answers a study needs."""

from __future__ import annotations

import json

import click

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
def command(
    n_objects: int,
    n_components: int,
    noise: float,
    most: int | None,
    n_repeats: int,
    seed: int | None,
    as_json: bool,
) -> None:
    """Say how many answers a study needs for which accuracy, from simulation."""
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
    from rich.console import Console
    from rich.table import Table

    title = f"{n_objects} objects, {n_components} dimensions, {noise:.0%} wrong answers"
    table = Table(title=title, title_justify="left")
    for name in ("answers", "of the truth", "of people's answers", "τ"):
        table.add_column(name, justify="right")
    for m, truth, people, tau in zip(
        plan.n_answers, plan.accuracy, plan.agreement, plan.tau, strict=True
    ):
        table.add_row(f"{m:,}", f"{truth:.3f}", f"{people:.3f}", f"{tau:.3f}")
    console = Console()
    console.print(table)
    console.print(f"perfect knowledge predicts {plan.ceiling:.3f} of people's answers")
    for target, size in needed.items():
        answers = "more than that" if size is None else f"about {size:,} answers"
        console.print(f"{target:.0%} of the truth: {answers}")
