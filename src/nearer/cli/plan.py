"""`nearer plan`: how many answers a map needs, and which task is best for a number of hours."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import click

from nearer.checks import amount
from nearer.cli.output import Number, json_option, option, scheduler_option, seed_option, show

# the figures for JSON; the columns of a table by their heads; the lines below it
Plan = tuple[dict[str, Any], dict[str, list[Any]], list[str]]

_several = partial(option, multiple=True)
_above_0 = Number(0, min_open=True)
_below_half = Number(0, 0.5, max_open=True)
_share = Number(0, 1, min_open=True, max_open=True)


@click.command("plan")
@click.option("--objects", "n_objects", type=click.IntRange(4), help="Objects.")
@click.option("--pilot", type=click.Path(exists=True), help="Answers of a pilot to plan from.")
@_several("--people", "people", type=click.IntRange(1), help="Numbers of people, with --pilot.")
@_several("--dim", "dimensions", type=click.IntRange(1), default=(1, 2, 3, 5, 8))
@_several("--noise", "noises", type=_below_half, default=(0, 0.1, 0.2), help="Wrong answers.")
@click.option("--cost", type=Number(0), help="Price of an answer.")
@click.option("--hours", type=_above_0, help="Compare tasks by hours of people's time.")
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
    dimensions: tuple[int, ...],
    noises: tuple[float, ...],
    hours: float | None,
    tasks: str | None,
    most: int | None,
    seed: int | None,
    as_json: bool,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Say how many answers a map needs.

    With one --dim and one --noise, studies of at most 1,000 objects are simulated. Otherwise, and
    with --cost, it prints the comparisons, rounds and money that `nearer embed` is expected to
    need.

    With --pilot, it predicts accuracy and τ for numbers of people like those of the pilot study and
    of answers, with 80 % intervals.

    With --hours, it prints which task is best in that time: comparisons, odd one out, or screens
    (choose some of many).
    """
    from nearer.algorithms.adaptive import TOGETHER
    from nearer.parallel import scheduler as sent_to

    if hours is not None and most is not None:
        raise click.UsageError("--answers and --hours both say how large the study is")
    if hours is None and tasks is not None:
        raise click.UsageError("--tasks compares tasks in a given time: add --hours")
    if (pilot is None) == (n_objects is None):
        raise click.UsageError("plan from --objects or from a --pilot: give one of them")
    if pilot is None and options["people"]:
        raise click.UsageError("--people plans from a --pilot: add it")
    if pilot is not None and (hours is not None or options["cost"] is not None):
        raise click.UsageError("--hours and --cost plan from --objects: leave out --pilot")
    if pilot is not None or n_objects is None:
        plan = _from_pilot(str(pilot), options["people"], most, options["targets"], seed)
        show(*plan, as_json=as_json, title=f"studies like {pilot}")
        return
    expected = [(d, wrong) for wrong, d in product(noises, dimensions) if d < n_objects]
    if not expected:
        raise click.UsageError(f"--dim must be below --objects {n_objects}")
    is_sized, title = hours is not None or most is not None, f"{n_objects:,} objects"
    is_estimate = n_objects > TOGETHER or options["cost"] is not None
    if is_sized and len(expected) != 1:
        raise click.UsageError("studies are simulated with one --dim and one --noise: add them")
    if len(expected) != 1 or (is_estimate and not is_sized):
        show(*_expected_cost(n_objects, expected, options["cost"]), as_json=as_json, title=title)
        return
    d, wrong = expected[0]
    title += f", {amount(d, 'dimension')}, {wrong:.0%} wrong answers"
    how = {"n_repeats": options["n_repeats"], "random_state": seed}
    with sent_to(scheduler):
        if hours is None:
            figures, columns, lines = _count(n_objects, d, wrong, most, options["targets"], how)
        else:
            figures, columns, lines = _compare(n_objects, d, wrong, hours, tasks, how)
            title += f", {hours:g} hours"
    study = {"n_objects": n_objects, "n_components": d, "noise": wrong}
    show(study | figures, columns, lines, as_json=as_json, title=title, left=("task",))


def _expected_cost(n: int, expected: list[tuple[int, float]], cost: float | None) -> Plan:
    from nearer.algorithms.plan import expected_cost

    rows: list[dict[str, Any]] = []
    for d, wrong in expected:
        comparisons, rounds = expected_cost(n, d, noise=wrong)
        paid = None if cost is None else round(cost * comparisons, 2)
        row = {"n_components": d, "noise": wrong, "n_comparisons": comparisons, "n_rounds": rounds}
        rows.append({**row, "cost": paid})
    heads = {"dimensions": "n_components", "wrong answers": "noise"}
    heads |= {"comparisons": "n_comparisons", "rounds": "n_rounds"}
    heads |= {} if cost is None else {"cost": "cost"}
    columns = {head: [row[key] for row in rows] for head, key in heads.items()}
    lines = ["a rough estimate for nearer embed without a budget: runs may take up to half more"]
    return {"n_objects": n, "forecast": rows}, columns, lines


def _from_pilot(
    pilot: str,
    people: tuple[int, ...],
    most: int | None,
    targets: tuple[float, ...],
    seed: int | None,
) -> Plan:
    from nearer import fit
    from nearer.algorithms.plan import needed, plan_pilot

    embedding = fit(pilot, random_state=seed)
    plan = plan_pilot(embedding, n_people=people or None, most=most, random_state=seed)
    figures = {"n_people": plan.n_people.tolist(), "n_answers": plan.n_answers.tolist()}
    sizes = list(product(figures["n_people"], figures["n_answers"]))
    columns: dict[str, list[Any]] = {"people": [n for n, _ in sizes]}
    columns["answers"] = [m for _, m in sizes]
    for head, name in {"of further people's answers": "accuracy", "τ": "tau"}.items():
        values = getattr(plan, name)
        figures[name] = values.round(4).tolist()
        limits = values.reshape(-1, 3).tolist()
        columns[head] = [f"{middle:.3f} ({low:.3f} to {high:.3f})" for low, middle, high in limits]
    lines = ["in brackets: 80 % intervals, which held in about 80 % of simulated pilots"]
    reached = {
        n: {str(t): needed(t, plan.n_answers, plan.tau[i, :, 1]) for t in targets}
        for i, n in enumerate(figures["n_people"])
    }
    for n, answers in reached.items():
        said = [f"τ {t} " + (f"about {m:,}" if m else "more than that") for t, m in answers.items()]
        lines.append(f"answers needed of {amount(n, 'person', 'people')}: {', '.join(said)}")
    return figures | {"needed": reached}, columns, lines


def _count(
    n: int, d: int, wrong: float, most: int | None, targets: tuple[float, ...], how: dict[str, Any]
) -> Plan:
    from nearer.algorithms.plan import needed, plan_study

    plan = plan_study(n, d, wrong, most=most, **how)
    figures = {"n_answers": plan.n_answers.tolist()}
    for name in ("accuracy", "agreement", "tau"):
        figures[name] = getattr(plan, name).round(4).tolist()
    heads = {"answers": "n_answers", "of the truth": "accuracy", "τ": "tau"}
    columns = {head: figures[key] for head, key in {**heads, "of people's": "agreement"}.items()}
    lines = [f"perfect knowledge predicts {plan.ceiling:.3f} of people's answers"]
    reached = {str(t): needed(t, plan.n_answers, plan.accuracy) for t in targets}
    for target, size in reached.items():
        answers = "more than that" if size is None else f"about {size:,} answers"
        lines.append(f"{float(target):.0%} of the truth: {answers}")
    return {**figures, "ceiling": round(plan.ceiling, 4), "needed": reached}, columns, lines


def _compare(
    n: int, d: int, wrong: float, hours: float, tasks: str | None, how: dict[str, Any]
) -> Plan:
    from nearer.algorithms.plan import TASKS_TRIED, plan_tasks

    named = [name.strip() for name in tasks.split(",")] if tasks else TASKS_TRIED
    plan = plan_tasks(n, d, wrong, hours, tasks=named, **how)
    figures = {"tasks": list(plan.tasks), "n_screens": plan.n_screens.tolist()}
    for name in ("accuracy", "tau"):
        figures[name] = getattr(plan, name).mean(axis=0).round(4).tolist()
    heads = {"task": "tasks", "screens": "n_screens", "of the truth": "accuracy", "τ": "tau"}
    columns = {head: figures[key] for head, key in heads.items()}
    best, simulations = plan.tasks[plan.best], amount(how["n_repeats"], "simulation")
    certainty = f"better than all others at a level of 95 % in {simulations}"
    if plan.level:
        certainty = f"not distinguished from it by {simulations}: {', '.join(plan.level)}"
    times = "screens last as long as recorded for dishes of food, see nearer.Pace"
    figures |= {"hours": hours, "best": best, "level_with_it": list(plan.level)}
    return figures, columns, [f"best: {best}", certainty, times]
