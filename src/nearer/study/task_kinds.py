"""What people are asked to do, and what an answer says about distances.

==========  ====================================  =====================================
task        shown                                 chosen
==========  ====================================  =====================================
``two``     a query and two things                the one that is more like the query
``choose``  a query and m things                  the k that are most like it
``rank``    a query and m things                  the k most like it, best first
``odd``     three or more things                  the one that is least like the others
==========  ====================================  =====================================

Every answer is worth some triplets ``(head, near, far)``: what was chosen is nearer to the query
than what was not; the odd one is farther from each of the others than they are from each other.
Fits take answers as they were given, as `nearer.Trials`, since such triplets say less apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import combinations, product

from nearer.trials import Trials

__all__ = ["TASKS", "fact", "trials_of", "triplets_of"]

TASKS = ("two", "choose", "rank", "odd")
_BITS = 21


def fact(query: int | None, shown: Sequence[int]) -> Hashable:
    """One key for a question however its things are ordered; a plain number for two of them.

    Examples
    --------
    >>> fact(3, (1, 2)) == fact(3, (2, 1)) != fact(1, (3, 2))
    True
    """
    if query is not None and len(shown) == 2:
        a, b = shown
        low, high = (a, b) if a < b else (b, a)
        return query << 2 * _BITS | low << _BITS | high
    return (query, tuple(sorted(shown)))


def triplets_of(
    task: str, query: int | None, shown: Sequence[int], chosen: Sequence[int]
) -> list[tuple[int, int, int]]:
    """What an answer says, as rows ``(head, near, far)``.

    Examples
    --------
    >>> triplets_of("two", 7, [1, 2], [2])
    [(7, 2, 1)]
    >>> triplets_of("rank", 7, [1, 2, 3], [3, 1])
    [(7, 3, 1), (7, 3, 2), (7, 1, 2)]
    >>> triplets_of("odd", None, [1, 2, 3], [2])
    [(1, 3, 2), (3, 1, 2)]
    """
    rest = [i for i in shown if i not in chosen]
    if task == "odd" or query is None:
        return [
            row for a, b in combinations(rest, 2) for o in chosen for row in ((a, b, o), (b, a, o))
        ]
    if task == "rank":
        return [
            (query, near, far) for k, near in enumerate(chosen) for far in [*chosen[k + 1 :], *rest]
        ]
    return [(query, near, far) for near, far in product(chosen, rest)]


def trials_of(
    answers: Sequence[tuple[str, int | None, Sequence[int], Sequence[int] | None]],
    choose: Sequence[int],
) -> Trials | None:
    """Answers ``(task, query, shown, chosen)`` as trials; None where no one kind holds them all.

    Where nobody could decide, chosen is None; `choose` says how many they should have chosen.

    Examples
    --------
    >>> given = [("choose", 7, [1, 2, 3, 4], [3, 1]), ("choose", 7, [1, 2, 3, 4], None)]
    >>> trials_of([*given, ("two", 7, [1, 2], [2])], [2, 2, 1]).decided.tolist()
    [True, False, True]
    """
    tasks = {task for task, *_ in answers}
    shown, chosen = [row[2] for row in answers], [row[3] for row in answers]
    if tasks == {"odd"}:
        return Trials.odd_one_out(shown, [None if one is None else one[0] for one in chosen])
    if tasks <= {"two", "choose"} or tasks <= {"two", "rank"}:
        queries = [-1 if row[1] is None else row[1] for row in answers]
        return Trials.near(queries, shown, chosen, ranked="rank" in tasks, wanted=list(choose))
    return None
