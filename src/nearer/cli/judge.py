"""`nearer judge`: a person at the terminal, and batch endpoints of language models."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from nearer.cli.output import check_file, say, stopped_by_ctrl_c
from nearer.text import amount

__all__ = ["command"]


@click.group("judge")
def command() -> None:
    """Have a person at this terminal, or a language model a batch at a time, compare things."""


def _common(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every sub-command needs to make the same run again."""
    for option in (
        click.option("--question", default="Which is more like {head}?", show_default=True),
        click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
        click.option("--budget", type=click.IntRange(min=1), help="Questions; 8 an object."),
        click.option(
            "--journal",
            type=click.Path(dir_okay=False),
            help="Where answers are kept; OBJECTS with the ending .answers.db by default.",
        ),
        click.argument("objects", type=click.Path(dir_okay=False)),
    ):
        function = option(function)
    return function


@command.command("ask")
@_common
@click.option("--out", help="Write the positions to this .csv file.")
def ask(
    objects: str, journal: str | None, budget: int | None, seed: int, question: str, out: str | None
) -> None:
    """Ask the person at this terminal about OBJECTS, a text file with one object a line.

    A question a line; the arrow keys answer. The same command goes on where it was left.
    """
    from nearer.asking.run import run
    from nearer.judges.terminal import TerminalJudge

    names = _objects(objects)
    file = _journal(objects, journal)
    _check_out(out, objects, file)
    judge = TerminalJudge(question, show=say, random_state=seed)
    with stopped_by_ctrl_c(
        lambda: f"the answers are in {file}; the same command goes on from there"
    ):
        found = run(_strategy(names, budget, seed), judge, objects=names, journal=file)
    _finish(found, names, file, out)


@command.command("export")
@_common
@click.option("--model", required=True, help="The model's name, as the endpoint knows it.")
@click.option("--out", required=True, help="The file of requests to submit, JSON lines.")
def export(
    objects: str,
    journal: str | None,
    budget: int | None,
    seed: int,
    question: str,
    model: str,
    out: str,
) -> None:
    """Write the open questions about OBJECTS as requests for a batch endpoint."""
    from nearer.asking.session import open_batch
    from nearer.files import write_bytes
    from nearer.judges.chat import ChatJudge

    names = _objects(objects)
    file = _journal(objects, journal)
    _check_out(out, objects, file)
    about = {"judge": "batches", "model": model, "question": question}
    batch = open_batch(_strategy(names, budget, seed), file, names, about)
    if batch.result is not None:
        _finish(batch.result, names, file, None)
        return
    judge = ChatJudge(model, question=question, key=None, random_state=seed)
    lines = []
    for row, (head, a, b) in zip(batch.rows.tolist(), batch.questions.tolist(), strict=True):
        shown = judge.option_order.show((names[head], names[a], names[b]))
        lines.append(
            {
                "custom_id": f"{batch.number}-{row}-{'ba' if shown.swapped else 'ab'}",
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": judge.request([shown]),
            }
        )
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write_bytes(out, text.encode())
    say(f"{amount(len(lines), 'question')} of round {batch.number + 1} in {out}")


@command.command("import")
@_common
@click.argument("replies", type=click.Path(dir_okay=False))
@click.option("--out", help="Write the positions to this .csv file when the run is complete.")
def import_(
    objects: str,
    replies: str,
    journal: str | None,
    budget: int | None,
    seed: int,
    question: str,
    out: str | None,
) -> None:
    """Take in REPLIES, the file that a batch endpoint gave back for OBJECTS."""
    from nearer.asking.session import add_answers, open_batch

    names = _objects(objects)
    file = _journal(objects, journal)
    _check_out(out, objects, file, replies)
    about = {"judge": "batches", "question": question}
    batch = open_batch(_strategy(names, budget, seed), file, names, about)
    answers = _replies(replies, batch.number, set(batch.rows.tolist()))
    add_answers(file, batch, answers)
    unsure = sum(answer is None for answer in answers.values())
    say(f"{amount(len(answers), 'answer')} taken in, {unsure:,} of them don't know")
    batch = open_batch(_strategy(names, budget, seed), file, names, about)
    if batch.result is not None:
        _finish(batch.result, names, file, out)
    else:
        say(f"{amount(len(batch.rows), 'question is', 'questions are')} open: export")


def _replies(path: str, number: int, open_rows: set[int]) -> dict[int, Any]:
    """Answers by row; what cannot be read is don't know, what is not open is left out."""
    from nearer.asking.answers import Shown
    from nearer.errors import InvalidInput
    from nearer.files import read_bytes
    from nearer.judges.chat import first_options

    answers: dict[int, Any] = {}
    for line_number, line in enumerate(read_bytes(path).decode("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            reply = json.loads(line)
            round_number, row, order = reply["custom_id"].split("-")
            place = int(round_number), int(row)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInput(
                f"{path}, line {line_number}: is no reply to an exported question; give the file "
                "that the endpoint wrote, JSON lines with custom_id"
            ) from None
        if place[0] != number or place[1] not in open_rows:
            continue
        body = (reply.get("response") or {}).get("body")
        (first,) = first_options(body, 1)
        if first is None or math.isnan(first):
            answers[place[1]] = None
        else:
            shown = Shown(None, None, None, swapped=order == "ba")
            answers[place[1]] = shown.answer(first)
    return answers


def _objects(path: str) -> list[str]:
    from nearer.errors import InvalidInput
    from nearer.files import read_bytes

    names = [line.strip() for line in read_bytes(path).decode("utf-8-sig").splitlines()]
    names = [name for name in names if name]
    if len(names) < 3:
        raise InvalidInput(f"{path}: has {len(names)} objects; at least 3 are needed, one a line")
    return names


def _journal(objects: str, journal: str | None) -> Path:
    return Path(journal) if journal else Path(objects).with_suffix(".answers.db")


def _check_out(out: str | None, *reads: str | Path) -> None:
    """Refuse, before a question is asked, to overwrite a file that is read."""
    if out is not None:
        check_file("--out", Path(out), map(Path, reads))


def _strategy(names: list[str], budget: int | None, seed: int) -> Any:
    from nearer.algorithms.adaptive import adaptive

    return adaptive(len(names), budget=budget or 8 * len(names), random_state=seed)


def _finish(found: Any, names: list[str], file: Path, out: str | None) -> None:
    from nearer.files import positions_text, write_bytes

    say(
        f"{amount(found.n_comparisons, 'answer places', 'answers place')} "
        f"{len(found.positions):,} objects in {amount(found.dimension, 'dimension')}; the "
        f"answers are in {file}"
    )
    if out is not None:
        write_bytes(out, positions_text(found.positions, names).encode())
        say(f"their positions are in {out}")
