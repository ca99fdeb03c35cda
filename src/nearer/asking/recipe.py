"""How a strategy was made, so that it can be made again.

A generator cannot be copied, rewound or asked for its seed. A function marked `repeatable` returns
strategies that can: they know the function, its arguments and the seed. That is what lets a journal
keep the seed that was drawn where none was given, and refuse the answers of another run.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Generator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from nearer.questions import Answers, Questions
from nearer.tasks import Task

__all__ = ["Repeatable", "describe", "repeatable"]

T = TypeVar("T")
P = ParamSpec("P")

_SEED = "random_state"


class Repeatable(Generator[Questions, Answers, T]):
    """A strategy that knows how it was made."""

    def __init__(
        self,
        make: Callable[..., Generator[Questions, Answers, T]],
        args: tuple[Any, ...],
        options: dict[str, Any],
    ) -> None:
        self._make, self._args, self._options = make, args, options
        self._strategy = make(*args, **options)

    def send(self, answers: Any) -> Questions:
        """Go on with answers."""
        return self._strategy.send(answers)

    def throw(self, *error: Any) -> Questions:
        """Go on without them."""
        return self._strategy.throw(*error)

    @property
    def takes_uncertain(self) -> bool:
        """Whether the strategy inside can use answers with doubt."""
        return bool(getattr(self._strategy, "takes_uncertain", False))

    @property
    def method(self) -> str:
        """The name of the function."""
        return self._make.__name__

    @property
    def random_state(self) -> Any:
        """The seed it was made from; None where none was given or none is used."""
        return self._given().get(_SEED)

    @property
    def options(self) -> dict[str, Any]:
        """Every other argument, in words that can be written down and compared."""
        return {name: describe(value) for name, value in self._given().items() if name != _SEED}

    def seeded(self, seed: int) -> Repeatable[T]:
        """The same strategy made anew from a seed; itself where it uses none."""
        if _SEED not in inspect.signature(self._make).parameters:
            return self
        return Repeatable(self._make, self._args, {**self._options, _SEED: seed})

    def _given(self) -> dict[str, Any]:
        bound = inspect.signature(self._make).bind(*self._args, **self._options)
        bound.apply_defaults()
        return dict(bound.arguments)


def repeatable(
    make: Callable[P, Generator[Questions, Answers, T]],
) -> Callable[P, Generator[Questions, Answers, T]]:
    """Mark a function whose strategies know how they were made.

    Examples
    --------
    >>> import nearer
    >>> strategy = nearer.algorithms.rand_soe(40, budget=300, random_state=7)
    >>> strategy.method, strategy.options["budget"], strategy.random_state
    ('rand_soe', 300, 7)
    """

    @wraps(make)
    def marked(*args: P.args, **options: P.kwargs) -> Generator[Questions, Answers, T]:
        return Repeatable(make, args, options)

    return marked


def describe(value: Any) -> Any:
    """A value in words of JSON: equal values give equal words, in every process.

    Examples
    --------
    >>> describe(3), describe(None), describe(len)
    (3, None, 'function len')
    """
    value = value.item() if isinstance(value, np.generic) else value
    value = str(value) if isinstance(value, Task) else value
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return [describe(x) for x in value]
    if isinstance(value, np.ndarray):
        digest = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
        return f"array of shape {value.shape}, {digest[:16]}"
    if hasattr(value, "positions"):
        return f"{type(value).__name__}, {describe(np.asarray(value.positions))}"
    if callable(value):
        return f"function {getattr(value, '__qualname__', type(value).__qualname__)}"
    return type(value).__qualname__
