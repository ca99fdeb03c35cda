"""`nearer judge`: a person at the terminal, and batch endpoints of language models."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer.checks import amount
from nearer.cli.output import check_file, say, stopped_by_ctrl_c

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

    names, file = _prepare(objects, journal, out)
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
    from nearer.files import write_bytes
    from nearer.judges.chat import ChatJudge

    names, file = _prepare(objects, journal, out)
    about = {"judge": "batches", "model": model, "question": question}
    with _session(names, file, budget, seed, about) as session:
        if session.done:
            _finish(session.result, names, file, None)
            return
        judge = ChatJudge(model, question=question, key=None, random_state=seed)
        number = {name: i for i, name in enumerate(names)}
        shown = [judge.option_order.show([names[i] for i in row]) for row in session.open.tolist()]
        lines = [
            {
                "custom_id": "-".join(str(number[x]) for x in (one.head, one.first, one.second)),
                "method": "POST",
                "url": "/v1/chat/completions",
                "body": judge.request([one]),
            }
            for one in shown
        ]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        write_bytes(out, text.encode())
        say(f"{amount(len(lines), 'question')} of round {session.n_rounds} in {out}")


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
    names, file = _prepare(objects, journal, out, replies)
    with _session(names, file, budget, seed, {"judge": "batches", "question": question}) as session:
        answers = _replies(replies, session.open)
        if answers:
            session.tell(np.array(list(answers)), list(answers.values()))
        if session.done:
            _finish(session.result, names, file, out)
        else:
            say(f"{amount(len(session.open), 'question is', 'questions are')} open: export")


@contextmanager
def _session(
    names: list[str], file: Path, budget: int | None, seed: int, about: dict[str, Any]
) -> Iterator[Any]:
    """The run as far as the journal knows it."""
    from nearer.asking.run import Names, Session, open_journal

    strategy = _strategy(names, budget, seed)
    with open_journal(strategy, file, Names(names), about) as (made, book):
        yield Session(made, journal=book)


def _replies(path: str, questions: Any) -> dict[tuple[int, ...], Any]:
    """Answers by question; what cannot be read is don't know, what is not open is left out."""
    from nearer.errors import InvalidInput
    from nearer.files import read_bytes
    from nearer.judges.chat import first_options

    answers: dict[tuple[int, ...], Any] = {}
    are_open = {(head, *sorted(pair)) for head, *pair in questions.tolist()}
    for line_number, line in enumerate(read_bytes(path).decode("utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            reply = json.loads(line)
            head, *pair = map(int, reply["custom_id"].split("-"))
            is_open = (head, *sorted(pair)) in are_open
        except (ValueError, KeyError, TypeError, AttributeError):
            raise InvalidInput(
                f"{path}, line {line_number}: is no reply to an exported question; give the file "
                "that the endpoint wrote, JSON lines with custom_id"
            ) from None
        if is_open:
            (first,) = first_options((reply.get("response") or {}).get("body"), 1)
            answers[head, *pair] = None if first is None else float(first)
    return answers


def _prepare(
    objects: str, journal: str | None, out: str | None, *reads: str
) -> tuple[list[str], Path]:
    """The objects and the file of their journal; `out` must not be a file that is read."""
    from nearer.errors import InvalidInput
    from nearer.files import read_bytes

    lines = read_bytes(objects).decode("utf-8-sig").splitlines()
    names = [line.strip() for line in lines if line.strip()]
    if len(names) < 3:
        raise InvalidInput(
            f"{objects}: has {len(names)} objects; at least 3 are needed, one a line"
        )
    file = Path(journal) if journal else Path(objects).with_suffix(".answers.db")
    if out is not None:
        check_file("--out", Path(out), [Path(objects), file, *map(Path, reads)])
    return names, file


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
