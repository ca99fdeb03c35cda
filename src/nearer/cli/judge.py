"""`nearer judge`: a person at the terminal, and batch endpoints of language models."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer.algorithms.adaptive import adaptive
from nearer.asking.run import Names, Session, open_journal, run
from nearer.checks import amount
from nearer.cli.output import GivenPath, check_files, option, say, stopped_by_ctrl_c
from nearer.errors import InvalidInput
from nearer.files import decoded, positions_text, read_bytes, write_bytes

_FILE = GivenPath(dir_okay=False)


@click.group("judge")
def command() -> None:
    """Have a person at this terminal, or a language model a batch at a time, compare things."""


class _Run:
    """The arguments of a run, the same for every sub-command."""

    def __init__(
        self,
        out: Path | None,
        *reads: Path,
        objects: Path,
        journal: Path | None,
        budget: int | None,
        seed: int,
        question: str,
    ) -> None:
        self.seed, self.question = seed, question
        self.file = journal or objects.with_suffix(".answers.db")
        check_files([objects, self.file, *reads], out=out)  # before anything is read
        lines = decoded(read_bytes(objects), objects).splitlines()
        self.names = [line.strip() for line in lines if line.strip()]
        if (n := len(self.names)) < 3:
            raise InvalidInput(f"{objects}: has {n} objects; at least 3 are needed, one a line")
        if twice := [name for name, k in Counter(self.names).items() if k > 1]:
            raise InvalidInput(f"{objects}: {twice[0]!r} is on several lines; each must be on one")
        self.strategy = adaptive(n, budget=budget or 8 * n, random_state=seed)

    @contextmanager
    def session(self, **about: Any) -> Iterator[Any]:
        """The run so far, from the journal."""
        about |= {"judge": "batches", "question": self.question}
        with open_journal(self.strategy, self.file, Names(self.names), about) as (made, book):
            yield Session(made, journal=book)

    def finish(self, embedding: Any, out: Path | None) -> None:
        """Print the result, and write the positions."""
        say(
            f"{amount(embedding.n_comparisons, 'answer places', 'answers place')} "
            f"{len(self.names):,} objects in {amount(embedding.dimension, 'dimension')}; the "
            f"answers are in {self.file}"
        )
        if out is not None:
            write_bytes(out, positions_text(embedding.positions, self.names).encode())
            say(f"their positions are in {out}")


def _common(function: Callable[..., Any]) -> Callable[..., Any]:
    """The arguments of a `_Run`."""
    words = "File of the answers; by default OBJECTS with the ending .answers.db."
    for each in (
        option("--question", default="Which is more like {head}?"),
        option("--seed", type=click.IntRange(min=0), default=0),
        click.option("--budget", type=click.IntRange(min=1), help="Questions; 8 an object."),
        click.option("--journal", type=_FILE, help=words),
        click.argument("objects", type=_FILE),
    ):
        function = each(function)
    return function


@command.command("ask")
@_common
@click.option("--out", type=_FILE, help="Write the positions to this .csv file.")
def ask(out: Path | None, **common: Any) -> None:
    """Ask the person at this terminal about OBJECTS, a text file with one object a line.

    Answer with the arrow keys. To continue after a break, repeat the command.
    """
    from nearer.judges.outside import TerminalJudge

    asked = _Run(out, **common)
    judge = TerminalJudge(asked.question, show=say, random_state=asked.seed)
    left = f"the answers are in {asked.file}; repeat the command to continue"
    with stopped_by_ctrl_c(lambda: left):
        embedding = run(asked.strategy, judge, objects=asked.names, journal=asked.file)
    asked.finish(embedding, out)


@command.command("export")
@_common
@click.option("--model", required=True, help="The model's name at the endpoint.")
@click.option("--out", type=_FILE, required=True, help="File of requests to submit, JSON lines.")
def export(model: str, out: Path, **common: Any) -> None:
    """Write the open questions about OBJECTS as requests for a batch endpoint."""
    from nearer.judges.chat import ChatJudge

    asked = _Run(out, **common)
    judge = ChatJudge(model, question=asked.question, key=None, random_state=asked.seed)
    with asked.session(model=model) as session:  # begun only after the arguments were checked
        if session.done:
            asked.finish(session.result, None)
            return
        number, lines = {name: i for i, name in enumerate(asked.names)}, []
        for row in session.open.tolist():
            shown = judge.option_order.show([asked.names[i] for i in row])
            places = (number[name] for name in (shown.head, shown.first, shown.second))
            request = {"custom_id": "-".join(map(str, places)), "body": judge.request([shown])}
            request |= {"method": "POST", "url": "/v1/chat/completions"}
            lines.append(json.dumps(request, ensure_ascii=False) + "\n")
        write_bytes(out, "".join(lines).encode())
        say(f"{amount(len(lines), 'question')} of round {session.n_rounds} in {out}")


@command.command("import")
@_common
@click.argument("replies", type=_FILE)
@click.option("--out", type=_FILE, help="Write the positions to this .csv file at the end.")
def import_(replies: Path, out: Path | None, **common: Any) -> None:
    """Store REPLIES, the file that a batch endpoint returned for OBJECTS."""
    asked = _Run(out, replies, **common)
    with asked.session() as session:
        answers = _replies(replies, session.open)
        if answers:
            session.tell(np.array(list(answers)), list(answers.values()))
        if session.done:
            asked.finish(session.result, out)
        else:
            say(f"{amount(len(session.open), 'question is', 'questions are')} open: export")


def _replies(path: Path, questions: Any) -> dict[tuple[int, ...], Any]:
    """Answers by question; unreadable ones are don't know, those not open are left out."""
    from nearer.judges.chat import first_options

    answers: dict[tuple[int, ...], Any] = {}
    are_open = {(head, *sorted(pair)) for head, *pair in questions.tolist()}
    for line_number, line in enumerate(decoded(read_bytes(path), path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            reply = json.loads(line)
            body = (reply["response"] or {}).get("body")  # a request has no response
            head, *pair = map(int, reply["custom_id"].split("-"))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            rule = "is no reply to an exported question; give the file that the endpoint wrote"
            raise InvalidInput(f"{path}, line {line_number}: {rule}") from None
        if (head, *sorted(pair)) in are_open:
            (first,) = first_options(body, 1)
            answers[head, *pair] = None if first is None else float(first)
    return answers
