"""Oracles by two files, by the person at the terminal, and by similarities."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from nearer import checks
from nearer.asking.protocol import OptionOrder
from nearer.errors import InvalidInput, JudgeError, OracleError
from nearer.files import as_path, read_bytes
from nearer.judges.chat import check_question, one_line


class Inbox:
    r"""An async oracle that writes questions to one file and waits for answers in another.

    Questions are appended as JSON lines, ``{"id": 7, "head": …, "a": …, "b": …}``; answers are
    awaited as ``{"id": 7, "answer": true}``, in any order and from any program. The answer is true
    if a is nearer, false if b is, null for don't know, or a number from 0.0 to 1.0.

    Parameters
    ----------
    questions, answers
        The two files. Questions that they hold already are not written again, so that a run that
        is repeated uses the existing answers.
    every
        Seconds between two readings of the answers.

    Examples
    --------
    >>> import json, nearer, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out, back = (pathlib.Path(folder) / name for name in ("out.jsonl", "back.jsonl"))
    ...     _ = back.write_text('{"id": 0, "answer": true}\n{"id": 1, "answer": true}\n'
    ...                         '{"id": 2, "answer": true}\n')
    ...     ranking = nearer.run(nearer.rank_objects(0, 3, random_state=0),
    ...                          nearer.judges.Inbox(out, back), objects=["ox", "gnu", "bee"])
    ...     [sorted(json.loads(line)) for line in out.read_text().splitlines()]
    [['a', 'b', 'head', 'id']]
    """

    expects_noise = True

    def __init__(self, questions: str | Path, answers: str | Path, *, every: float = 0.2) -> None:
        self._out, self._in = as_path(questions), as_path(answers)
        self._every = checks.positive("every", every)
        self._answers: dict[int, Any] = {}
        self._read = 0  # bytes of the answers
        self._ids: dict[str, list[int]] = {}  # written before, not asked again yet
        self._next = 0
        # Both are read once, so that a folder or a file without permission is refused here.
        written, _ = (read_bytes(x) if x.exists() else b"" for x in (self._out, self._in))
        for row in _rows(written, self._out, {"id": 7, "head": "ox", "a": "gnu", "b": "bee"}):
            key = json.dumps([row["head"], row["a"], row["b"]])
            self._ids.setdefault(key, []).append(row["id"])
            self._next = max(self._next, row["id"] + 1)

    async def __call__(self, questions: Sequence[Sequence[Any]]) -> list[Any]:
        """Write questions, then wait until all of them are answered."""
        wanted = [self._write(question) for question in questions]
        while True:
            self._read_answers()
            if all(number in self._answers for number in wanted):
                return [self._answers[number] for number in wanted]
            await asyncio.sleep(self._every)

    def _write(self, question: Sequence[Any]) -> int:
        things = [thing.item() if hasattr(thing, "item") else thing for thing in question]
        head, a, b = (x if isinstance(x, int | float | str) else str(x) for x in things)
        before = self._ids.get(json.dumps([head, a, b]))
        if before:
            return before.pop(0)
        number, self._next = self._next, self._next + 1
        try:
            with self._out.open("a", encoding="utf-8") as file:
                row = {"id": number, "head": head, "a": a, "b": b}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
        except OSError as error:
            rule = f"cannot be written ({error.strerror}); the folder must exist"
            raise JudgeError(f"{self._out}: {rule}") from error
        return number

    def _read_answers(self) -> None:
        """Read the whole lines that were added since the last time."""
        if not self._in.exists():
            return
        with self._in.open("rb") as file:
            file.seek(self._read)
            added = file.read()
        whole = added[: added.rfind(b"\n") + 1]
        for row in _rows(whole, self._in, {"id": 7, "answer": True}):
            answer = row["answer"]
            number = isinstance(answer, int) and not isinstance(answer, bool)
            # As text, since float() of too large a whole number is an error, not inf.
            self._answers.setdefault(row["id"], float(str(answer)) if number else answer)
        self._read += len(whole)


def _rows(data: bytes, path: Path, like: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The JSON object of each line, which must have a number and the other keys of an example."""
    for line in filter(bytes.strip, data.splitlines()):
        try:
            row = json.loads(line)
            whole = like.keys() <= row.keys() and isinstance(row["id"], int)
        except (ValueError, AttributeError, RecursionError):
            whole = False
        if not whole:
            what = f"the line {line.decode(errors='replace')[:80]!r}"
            raise InvalidInput(f"{path}: {what} must be a JSON object such as {json.dumps(like)}")
        yield row


# The meanings of keys: digits, letters and three kinds of codes of arrow keys.
_LEFT = {"1", "a", "l", "\x1b[D", "\x1bOD", "\xe0K"}
_RIGHT = {"2", "b", "r", "\x1b[C", "\x1bOC", "\xe0M"}
_PASS = {"?", " ", "0", "\x1b[A", "\x1bOA", "\xe0H"}
_LEAVE = {"q", "\x03", "\x04"}


def _key() -> str:
    """One key, arrow keys as the characters they send; a line if there is no terminal."""
    if sys.stdin.isatty():
        return str(click.getchar())
    line = sys.stdin.readline()
    return line.strip().lower() or ("q" if not line else " ")


class TerminalJudge:
    """An oracle that asks the person at the terminal; `read` returns a key, `show` takes a line."""

    expects_noise = True
    block_size = 1

    def __init__(
        self,
        question: str = "Which is more like {head}?",
        *,
        read: Callable[[], str] = _key,
        show: Callable[[str], object] = click.echo,
        random_state: int = 0,
    ) -> None:
        self._question, self._order = check_question(question), OptionOrder(random_state)
        self._read, self._show = read, show
        self._explained = False
        self.about = {"judge": "a person at the terminal", "question": question}

    def __call__(self, questions: Sequence[Sequence[Any]]) -> list[bool | None]:
        """Ask one question after the other."""
        if not self._explained:
            self._show("← or 1: the left one; → or 2: the right one; ?: cannot tell; q: leave")
            self._explained = True
        return [self._ask(question) for question in questions]

    def _ask(self, question: Sequence[Any]) -> bool | None:
        shown = self._order.show(question)
        head, first, second = map(one_line, (shown.head, shown.first, shown.second))
        self._show(f"{self._question.format(head=head)}   ← {first}   {second} →")
        while True:
            key = self._read()
            if key in _LEAVE:
                raise KeyboardInterrupt  # the answers so far are in the journal
            if key in _PASS:
                return None
            if key in _LEFT | _RIGHT:
                return bool(shown.answer(key in _LEFT))


def from_similarity(
    f: Callable[[Any, Any], Any], *, tie: float = 0.0
) -> Callable[[Any], list[bool | None]]:
    """Make an oracle of a function that computes the similarity of objects.

    Parameters
    ----------
    f
        From m things and m others, numbers as an array or others as a list, to m numbers, the
        greater the more alike; tensors will do.
    tie
        Similarities that differ by no more than this are a tie, answered by "don't know".

    Examples
    --------
    >>> oracle = from_similarity(lambda one, other: -abs(one - other))
    >>> oracle(np.array([[0, 1, 2], [3, 0, 6]]))
    [True, None]
    """
    rule = "a function of m things and m others; for a matrix nearer.DistanceOracle(distances)"
    checks.one("f", f, Callable, rule)
    checks.not_negative("tie", tie)

    def oracle(questions: Any) -> list[bool | None]:
        columns = zip(*questions, strict=True)
        head, a, b = questions.T if isinstance(questions, np.ndarray) else map(list, columns)
        to_a, to_b = (_similarities(f(head, x), len(questions)) for x in (a, b))
        closer = to_a - to_b
        known = np.abs(closer) > tie  # false for NaN, which is no answer
        return [bool(x > 0) if sure else None for x, sure in zip(closer, known, strict=True)]

    return oracle


def _similarities(said: Any, count: int) -> Any:
    if hasattr(said, "detach"):  # a tensor, perhaps on another device
        said = said.detach().cpu().numpy()
    try:
        values = np.asarray(said, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(())
    if values.shape != (count,):
        rule = "they must be numbers, one for each"
        raise OracleError(f"the similarities of {count} pairs are {said!r:.80}: {rule}")
    return values
