"""Every way to put an answer, turned into triplets ``(head, near, far)``.

``triplets``
    Head, near and far as they are.
``answers``
    A question (head, a, b) and either the one of the two that was chosen, or whether a is nearer:
    true or false, 1 or 0, 1 or −1 (cblearn's counts: k or −k for k equal answers), ``<`` or ``>``
    between the distances head–a and head–b (the paper authors' files; ``=``, ``nab``, ``nac``
    and ``nabc`` are undecided, and so are ``equal``, ``tie`` and ``same``).
``odd-one-out``
    Of three objects i, j, k the odd one is k: j is nearer to i than k is, and i nearer to j.
    The odd one is named, or its place among the three is, from 0 or from 1.
``most-central``
    Of three objects the most central is c: for each of the other two, c is nearer than the third
    (Kleindessner and von Luxburg, JMLR 18(58), 2017).

Objects come in as codes, one array a column, so that everything here is array arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearer.errors import InvalidInput
from nearer.triplets.objects import EMPTY

__all__ = ["UNDERSTOOD", "Answered", "Verdicts", "decided", "named", "read_answers", "to_triplets"]

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]

_TRUE = frozenset({"<", "true", "t", "yes", "left", "arrowleft", "a", "first"})
_FALSE = frozenset({">", "false", "f", "no", "right", "arrowright", "b", "second"})
_EQUAL = ("=", "equal", "tie", "same")
_UNDECIDED = frozenset({"", *_EQUAL, "nab", "nac", "nabc", "na", "nan", "none", "null"})

# what messages about an answer that cannot be read end with
UNDERSTOOD = (
    f"where nobody decided: nothing, or {', '.join(_EQUAL)}; mend it, leave such rows out with "
    "drop_bad_rows=True (--drop-bad-rows), or name the right columns with columns="
)


@dataclass(frozen=True)
class Answered:
    """Triplets, the row of the source that each comes from, weights, and the undecided rows."""

    triplets: Codes
    row: Codes
    weights: NDArray[np.float64] | None
    undecided: Codes


@dataclass(frozen=True)
class Verdicts:
    """For each row: whether a is nearer, how many times, and whether anybody decided."""

    nearer: Mask
    times: NDArray[np.float64]
    decided: Mask


def read_answers(values: Sequence[str], fault: Callable[[int, str], InvalidInput]) -> Verdicts:
    """Whether a is nearer, from the words and numbers that people write for it.

    Examples
    --------
    >>> read_answers(["<", ">", "="], lambda row, what: InvalidInput(what)).nearer
    array([ True, False, False])
    """
    words = [value.lower() for value in values]
    numbers: dict[str, float] = {}
    for word in dict.fromkeys(words):
        if word in _TRUE or word in _FALSE or word in _UNDECIDED:
            continue
        try:
            numbers[word] = float(word)
        except ValueError:
            numbers[word] = np.nan
        if numbers[word] != np.trunc(numbers[word]):  # also where it is no number
            raise fault(
                words.index(word),
                f"answer {word!r}: must be the object chosen, true or false, 1 or 0, 1 or -1, "
                f"< or >, left or right; {UNDERSTOOD}",
            )
    signed = any(number < 0 for number in numbers.values())
    if not signed and 0 in numbers.values() and max(numbers.values()) > 1:
        word = max(numbers, key=numbers.__getitem__)
        raise fault(
            words.index(word),
            f"answer {word!r} among zeros: 0 is 'no' beside 1 and 'undecided' beside negative "
            "counts; use one of the two",
        )
    worth = dict.fromkeys(_TRUE, 1.0) | dict.fromkeys(_FALSE, -1.0)
    worth |= dict.fromkeys(_UNDECIDED, 0.0)
    worth |= {w: -1.0 if number == 0 and not signed else number for w, number in numbers.items()}
    signs = np.array([worth[word] for word in words])
    return Verdicts(signs > 0, np.abs(signs), signs != 0)


def decided(said: Iterable[str], shown: Iterable[Container[str]]) -> list[str]:
    """What was said, "" where it is a word for "nobody decided" and none of the objects.

    Examples
    --------
    >>> decided(["Equal", "bee", "tie"], [["ape", "bee"], ["ape", "bee"], ["tie", "hat"]])
    ['', 'bee', 'tie']
    """
    return [
        "" if word.lower() in _UNDECIDED and word not in objects else word
        for word, objects in zip(said, shown, strict=False)  # one set may stand for all rows
    ]


def named(
    shown: Sequence[Sequence[str]],
    said: Sequence[str],
    first: int | None,
    fault: Callable[[int, str], InvalidInput],
) -> list[str]:
    """What was chosen of the shown objects, "" where nothing was: said by itself or by its place.

    `first` is where places begin, 0 or 1; None: that is found out, where it can only be one.

    Examples
    --------
    >>> named([["ape", "bee", "cat"]], ["3"], None, lambda row, what: InvalidInput(what))
    ['cat']
    """
    # whole numbers beside gaps end in .0, as pandas writes them
    said = [word.removesuffix(".0") for word in decided(said, shown)]
    given = [row for row, word in enumerate(said) if word not in EMPTY]
    by_name = all(said[row] in shown[row] for row in given)
    places = {said[row] for row in given} if all(said[r].isdecimal() for r in given) else set()
    if first is None and given and (by_name or not places):
        row = next((r for r in given if said[r] not in shown[r]), 0)
        if not by_name:
            raise fault(
                row,
                f"the answer {said[row]!r} is none of {', '.join(shown[row])}, nor a place; "
                f"{UNDERSTOOD}",
            )
        if places and all(int(said[row]) <= len(shown[row]) for row in given):
            raise fault(
                given[0],
                f"the answer {said[given[0]]!r} may be an object or a place; pass first=0 or "
                "first=1 (--first) where it is a place, else give the objects names",
            )
        return [word if word not in EMPTY else "" for word in said]
    if first is None and given:
        ends = {len(shown[row]) for row in given if int(said[row]) == len(shown[row])}
        if ("0" in places) == bool(ends):
            raise fault(
                given[0],
                f"places {', '.join(sorted(places))} may be counted from 0 or from 1; pass first=0 "
                "or first=1 (--first)",
            )
        first = 0 if "0" in places else 1
    chosen = [""] * len(said)
    for row in given:
        place = int(said[row]) - (first or 0) if said[row].isdecimal() else -1
        if not 0 <= place < len(shown[row]):
            last = len(shown[row]) - 1 + (first or 0)
            raise fault(row, f"the answer {said[row]!r}: must be a place from {first} to {last}")
        chosen[row] = shown[row][place]
    return chosen


def to_triplets(
    kind: str,
    parts: Mapping[str, Codes],
    verdicts: Verdicts | None,
    fault: Callable[[int, str], InvalidInput],
) -> Answered:
    """Triplets from one array of object codes a part; a code below 0 is an empty field."""
    if kind == "triplets":
        head, near, far = parts["head"], parts["near"], parts["far"]
        return _keep(np.stack([head, near, far], axis=1), (near >= 0) & (far >= 0))
    if kind == "answers":
        head, a, b = parts["head"], parts["a"], parts["b"]
        if verdicts is None:
            verdicts = _chosen(a, b, parts["chosen"], fault)
        near, far = np.where(verdicts.nearer, (a, b), (b, a))
        answered = _keep(np.stack([head, near, far], axis=1), verdicts.decided)
        if (verdicts.times[verdicts.decided] == 1).all():
            return answered
        times = verdicts.times[answered.row]
        return Answered(answered.triplets, answered.row, times, answered.undecided)
    which = "odd" if kind == "odd-one-out" else "central"
    named = parts[which]
    one, other = _other_two(parts, named, which, fault)
    if which == "odd":
        twice = [[one, other, named], [other, one, named]]
    else:
        twice = [[one, named, other], [other, named, one]]
    decided = np.flatnonzero(named >= 0)
    both = np.array(twice).transpose(2, 0, 1)[decided].reshape(-1, 3)
    return Answered(both, np.repeat(decided, 2), None, np.flatnonzero(named < 0))


def _keep(triplets: Codes, decided: Mask) -> Answered:
    rows = np.flatnonzero(decided)
    return Answered(triplets[rows], rows, None, np.flatnonzero(~decided))


def _chosen(
    a: Codes, b: Codes, chosen: Codes, fault: Callable[[int, str], InvalidInput]
) -> Verdicts:
    strange = (chosen >= 0) & (chosen != a) & (chosen != b)
    if strange.any():
        raise fault(
            int(np.argmax(strange)),
            f"the object chosen is neither of the two that were compared; {UNDERSTOOD}",
        )
    return Verdicts(chosen == a, np.ones(len(a)), chosen >= 0)


def _other_two(
    parts: Mapping[str, Codes],
    named: Codes,
    which: str,
    fault: Callable[[int, str], InvalidInput],
) -> tuple[Codes, Codes]:
    """The two objects of each row beside the one that was named."""
    one, other = parts["item1"], parts["item2"]
    if "item3" not in parts:
        return one, other
    third = parts["item3"]
    strange = (named >= 0) & (named != one) & (named != other) & (named != third)
    if strange.any():
        raise fault(
            int(np.argmax(strange)),
            f"the {which} object is none of the three that were shown; {UNDERSTOOD}",
        )
    return np.where(named == one, third, one), np.where(named == other, third, other)
