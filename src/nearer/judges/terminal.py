"""A person at the terminal: one question a line, an arrow key for an answer.

← or 1 takes the left object, → or 2 the right one, ↑, space or ? is "don't know", and q or Ctrl-C
leaves; all answers are in the journal by then. Without a terminal, lines are read instead of keys.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import click

from nearer.asking.protocol import OptionOrder
from nearer.judges.chat import check_question

__all__ = ["TerminalJudge"]

_LEFT = {"1", "a", "l", "\x1b[D", "\x1bOD", "\xe0K"}
_RIGHT = {"2", "b", "r", "\x1b[C", "\x1bOC", "\xe0M"}
_PASS = {"?", " ", "0", "\x1b[A", "\x1bOA", "\xe0H"}
_LEAVE = {"q", "\x03", "\x04"}


def _key() -> str:
    """One key, arrow keys as the few characters they send; a line where there is no terminal."""
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
        asked = self._question.format(head=shown.head)
        self._show(f"{asked}   ← {shown.first}   {shown.second} →")
        while True:
            key = self._read()
            if key in _LEAVE:
                raise KeyboardInterrupt
            if key in _PASS:
                return None
            if key in _LEFT | _RIGHT:
                return bool(shown.answer(key in _LEFT))
