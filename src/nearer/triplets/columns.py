"""What a table calls its columns and its objects.

========  =============================================================================
part      column names, letter case and punctuation aside
========  =============================================================================
head      head, center, centre, target, anchor, reference
near      winner, near, nearer, closer, close, primary, positive
far       loser, far, farther, alternate, negative
a, b      left and right, option1 and option2, a and b
chosen    chosen, selected; and winner where there is no loser
answer    answer, response, choice, cmp, comparison, outcome, y
odd       odd, oddone, oddoneout
central   chosencenter, chosencentre, central, mostcentral
item1 …   item1, object1, tripletobject1, image1, stimulus1 and so on to 3; left, middle, right
person    puid, worker, participant, person, subject, user, rater, session; the same with id
weight    weight, count: how many times the answer was given
excluded  excluded, taken_back: rows with 1 or true there are left out
seconds   seconds; ms and rt are milliseconds
========  =============================================================================

These are the words of Salmon (``head, winner, loser, left, right, puid`` and, for the names of
numbered objects, ``head_filename`` and ``head_html``), of tripletTools (``head, winner, loser,
Center, Left, Right, Answer, worker_id``; older files ``Target, Option1, Option2, primary,
alternate``) and of the published survey files. Three lone letters, ``a,b,c`` or ``i,j,k``, are
head, near and far, or with an answer beside them head and the two that are compared; letters say
less than words, so the report says what they were taken for.

Objects are named or numbered. *Numbers* are kept: object 7 of the file is object 7 here, so that
results line up with what else the user has about it, and a number that never occurs is an object
that was never compared. *Names* are put in alphabetical order, or in numerical order where all of
them are whole numbers. What R, pandas and JSON write for a missing value (``NA``, ``nan``,
``null`` …) is no object, unless labels list it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from nearer import checks
from nearer.errors import InvalidInput
from nearer.questions import MAX_OBJECTS

__all__ = [
    "BESIDE",
    "EMPTY",
    "KINDS",
    "PARTS",
    "Numbering",
    "Reading",
    "assumed_of_letters",
    "by_choice",
    "by_name",
    "by_position",
    "distinct_labels",
    "kind_of",
    "name_columns",
    "number_objects",
    "option",
    "plain_word",
    "sorted_names",
]


def option(python: str, flag: str) -> str:
    """An option of reading as messages name it, for the library and for the command."""
    return f"nearer.read_triplets(…, {python}) or {flag}"


# nothing, as R, pandas, SQL, Excel and JSON write it
EMPTY = frozenset({"", "NA", "N/A", "#N/A", "NaN", "nan", "None", "null", "NULL", "<NA>"})
_AS_NAMES = option('objects="names"', "--names")
_WORDS = {
    "head": ("head", "center", "centre", "target", "anchor", "reference"),
    "near": ("winner", "near", "nearer", "closer", "close", "primary", "positive"),
    "far": ("loser", "far", "farther", "alternate", "negative"),
    "a": ("left", "option1"),
    "b": ("right", "option2"),
    "chosen": ("chosen", "selected"),
    "answer": ("answer", "response", "choice", "cmp", "comparison", "outcome", "y"),
    "odd": ("odd", "oddone", "oddoneout"),
    "central": ("chosencenter", "chosencentre", "central", "mostcentral"),
    "person": tuple(
        word + end
        for word in (
            *("puid", "pid", "worker", "participant", "person"),
            *("subject", "sub", "user", "rater", "session", "anonymous", "agent", "prolific"),
        )
        for end in ("", "id", "pid")
    ),
    "weight": ("weight", "count"),
    "excluded": ("excluded", "takenback"),
    "seconds": ("seconds",),
    "ms": ("ms", "rt", "rtms", "milliseconds", "responsetimems"),
    **{
        f"item{i}": tuple(
            f"{word}{i}" for word in ("item", "object", "tripletobject", "image", "stimulus")
        )
        for i in (1, 2, 3)
    },
}
_LETTERS = (("head", "a", "b"), ("head", "b", "c"), ("a", "b", "c"), ("i", "j", "k"))
_NAME_ENDS = ("filename", "name", "label", "html")  # the first that is there wins

_EXAMPLE = option('columns={"head": 0, "near": 1, "far": 2}', "--columns head=0,near=1,far=2")
PARTS = tuple(_WORDS)
KINDS = {
    "triplets": (("head", "near", "far"),),
    "answers": (("head", "a", "b", "chosen"), ("head", "a", "b", "answer")),
    "odd-one-out": (
        ("item1", "item2", "item3", "odd"),
        ("item1", "item2", "odd"),
        ("item1", "item2", "item3", "answer"),
    ),
    "most-central": (
        ("item1", "item2", "item3", "central"),
        ("item1", "item2", "central"),
        ("item1", "item2", "item3", "answer"),
    ),
}
BESIDE = ("person", "weight", "seconds", "ms", "excluded")  # what a row may say beside its answer
_POSITIONS = {
    ("triplets", 3): ("head", "near", "far"),
    ("answers", 4): ("head", "a", "b", "answer"),
    ("odd-one-out", 3): ("item1", "item2", "odd"),
    ("odd-one-out", 4): ("item1", "item2", "item3", "odd"),
    ("most-central", 3): ("central", "item1", "item2"),
    ("most-central", 4): ("item1", "item2", "item3", "central"),
}


@dataclass(frozen=True)
class Reading:
    """How a file is to be read; see `nearer.read_triplets`."""

    kind: str = "auto"
    header: bool | str = "auto"
    objects: str = "auto"
    labels: Sequence[str] | None = None
    columns: Mapping[str, str | int] | None = None
    drop_bad_rows: bool = False
    first: int | None = None

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, ("auto", *KINDS))
        checks.one_of("objects", self.objects, ("auto", "numbers", "names"))
        if not isinstance(self.header, bool) and self.header != "auto":
            raise InvalidInput(f"header={self.header!r}: must be True, False or 'auto'")
        if not isinstance(self.drop_bad_rows, bool):
            raise InvalidInput(f"drop_bad_rows={self.drop_bad_rows!r}: must be True or False")
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise InvalidInput(
                f"columns={self.columns!r}: must say which column is which part, for example "
                '{"head": "ref", "near": "same", "far": "other"}'
            )
        if self.first is not None:
            checks.whole("first", self.first, least=0, most=1, rule="where places begin")


def by_name(header: Sequence[str]) -> dict[str, int]:
    """The parts that a header's words give, part to column.

    Examples
    --------
    >>> by_name(["Center", "Left", "Right", "Answer", "worker_id"])
    {'head': 0, 'a': 1, 'b': 2, 'answer': 3, 'person': 4}
    """
    words = [plain_word(name) for name in header]
    parts = {
        part: _only(words, found)
        for part, known in _WORDS.items()
        if (found := next((word for word in known if word in words), None)) is not None
    }
    if "middle" in words and {"a", "b"} <= parts.keys():  # three on a screen, none the head
        parts |= {"item1": parts.pop("a"), "item2": _only(words, "middle"), "item3": parts.pop("b")}
    answered = "chosen" in parts or "answer" in parts
    if "near" not in parts and "a" not in parts:
        for letters in _LETTERS:
            if set(letters) <= set(words) and (answered or letters != ("head", "a", "b")):
                three = ("head", "a", "b") if answered else ("head", "near", "far")
                parts |= {p: _only(words, x) for p, x in zip(three, letters, strict=True)}
                break
    if "near" in parts and "far" not in parts and "a" in parts:
        parts["chosen"] = parts.pop("near")
    return parts


def assumed_of_letters(header: Sequence[str], parts: Mapping[str, int]) -> str:
    """What was assumed of columns that are called by letters; nothing where words say it.

    Examples
    --------
    >>> header = ["c", "b", "a"]
    >>> print(assumed_of_letters(header, by_name(header)))
    columns a, b, c are taken as head, near, far. Where they are something else, say so: ...
    """
    three = ("head", "near", "far") if "near" in parts else ("head", "a", "b")
    names = [header[parts[part]] for part in three if part in parts]
    words = tuple(map(plain_word, names))
    if words == three or words not in _LETTERS:
        return ""
    example = {"item1": names[0], "item2": names[1], "odd": names[2]}
    typed = ",".join(f"{part}={name}" for part, name in example.items())
    return (
        f"columns {', '.join(names)} are taken as {', '.join(three)}. Where they are something "
        f"else, say so: {option(f'columns={example}', f'--columns {typed}')}"
    )


def by_position(kind: str, width: int) -> dict[str, int]:
    """The parts of a table without header; ``kind`` may be ``"auto"``."""
    if kind == "auto":
        kind = "answers" if width == 4 else "triplets"
    parts = _POSITIONS.get((kind, width))
    if parts is None:
        raise InvalidInput(
            f"{width} columns without a known header: {kind} need "
            + " or ".join(", ".join(p) for (k, _), p in _POSITIONS.items() if k == kind)
            + f"; say which is which, for example {_EXAMPLE}"
        )
    return {part: i for i, part in enumerate(parts)}


def by_choice(
    columns: Mapping[str, str | int], header: Sequence[str], width: int
) -> dict[str, int]:
    """The parts as the user names them, by column name or position."""
    parts = {}
    for part, column in columns.items():
        if part not in _WORDS:
            raise InvalidInput(f"columns: {part!r} is no part; parts are {', '.join(PARTS)}")
        if isinstance(column, str):
            if column not in header:
                raise InvalidInput(
                    f"columns: {part}={column!r}, but the columns are "
                    f"{', '.join(header) or 'without names'}; use one of them or a position"
                )
            parts[part] = _only(header, column)
        elif 0 <= column < width:
            parts[part] = column
        else:
            raise InvalidInput(f"columns: {part}={column}: positions run from 0 to {width - 1}")
    return parts


def kind_of(parts: Iterable[str], kind: str) -> str | None:
    """The kind of answers that these parts make, or None where they make none."""
    candidates = KINDS if kind == "auto" else {kind: KINDS[kind]}
    have = set(parts)
    if {"head", "near", "far"} <= have or "central" in have:  # `choice` is no odd one beside these
        candidates = {k: ways[:2] for k, ways in candidates.items()}
    for name in ("odd-one-out", "most-central", "triplets", "answers"):
        if any(have.issuperset(needed) for needed in candidates.get(name, ())):
            return name
    return None


def name_columns(header: Sequence[str]) -> tuple[int, ...]:
    """The columns with the names of objects that head, near and far have as numbers.

    tripletTools has Center, Left, Right and Answer instead, which are four.

    Examples
    --------
    >>> name_columns(["head", "winner", "loser", "head_name", "winner_name", "loser_name"])
    (3, 4, 5)
    """
    words = [plain_word(name) for name in header]
    for end in _NAME_ENDS:
        three = [
            [words.index(start + end) for start in starts if start + end in words]
            for starts in (("head",), ("winner", "near"), ("loser", "far"))
        ]
        if any(three):
            return tuple(found[0] for found in three if found)
    wanted = ("center", "left", "right", "answer")
    return tuple(map(words.index, wanted)) if set(wanted) <= set(words) else ()


def _only(words: Sequence[str], word: str) -> int:
    """The column of that name, which has to be the only one."""
    if words.count(word) > 1:
        raise InvalidInput(
            f"header {','.join(words)}: has {word} {words.count(word)} times; rename or drop all "
            "but the column that is meant"
        )
    return words.index(word)


def plain_word(name: str) -> str:
    """The name of a column without letter case and punctuation."""
    return re.sub(r"[\W_]", "", name).lower()


# --- names and numbers of objects ----------------------------------------------------------------

_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,2})?")
_DECIMAL_COMMA = re.compile(r"-?[0-9]+,[0-9]+")
Wrong = Callable[[str, str], InvalidInput]


@dataclass(frozen=True)
class Numbering:
    """The number of each value, −1 for an empty one, and the labels of objects 0 … n−1."""

    numbers: dict[str, int]
    labels: tuple[str, ...]
    are_numbers: bool


def number_objects(
    values: Sequence[str], objects: str, labels: Sequence[str] | None, wrong: Wrong
) -> Numbering:
    """Decide whether distinct values are numbers or names, and number them.

    `wrong` makes an error that says where a value stands.
    """
    listed = set() if labels is None else set(labels)
    whole = {value: number for value in values if (number := _whole(value)) is not None}
    names = [v for v in values if v not in whole and (v not in EMPTY or v in listed)]
    comma = next((v for v in names if _DECIMAL_COMMA.fullmatch(v) and v not in listed), None)
    if comma is not None and objects != "names":
        raise wrong(comma, f"object {comma!r} has a decimal comma; write numbers with a point")
    if objects == "auto":
        all_listed = bool(listed) and listed.issuperset([*whole, *names])
        if whole and names and not all_listed:
            is_, rest = ("not ", names) if len(names) <= len(whole) else ("", list(whole))
            raise wrong(
                rest[0],
                f"object {rest[0]!r} is {is_}a whole number, but {len(values) - len(rest)} of "
                f"{len(values)} objects are{'' if is_ else ' not'}; mend it, or say that all are "
                f"names: {_AS_NAMES}",
            )
        objects = "names" if all_listed or names else "numbers"
    if objects == "numbers":
        if names:
            raise wrong(names[0], f"object {names[0]!r}: numbers must be whole numbers")
        return _numbered(values, whole, labels, wrong)
    if labels is None:
        labels = sorted_names([*whole, *names])
    place = {name: i for i, name in enumerate(distinct_labels(labels))}
    for name in (*whole, *names):
        if name not in place:
            raise wrong(name, f"object {name!r} is not among the {len(place)} labels given")
    return Numbering({v: place.get(v, -1) for v in values}, tuple(place), are_numbers=False)


def _numbered(
    values: Sequence[str], whole: dict[str, int], labels: Sequence[str] | None, wrong: Wrong
) -> Numbering:
    n = max(whole.values(), default=-1) + 1 if labels is None else len(labels)
    most = MAX_OBJECTS if labels is None else n
    rule = f"at most {MAX_OBJECTS:,}" if labels is None else f"there are {n} labels"
    for value, number in whole.items():
        if number < 0:
            raise wrong(value, f"object {value}: numbers start at 0")
        if number >= most:
            raise wrong(
                value,
                f"object {value}: numbers run from 0 and {rule}; if these are names (also where "
                f"they start at 1), say so: {_AS_NAMES}",
            )
    called = distinct_labels(range(n) if labels is None else labels)
    return Numbering({v: whole.get(v, -1) for v in values}, called, are_numbers=True)


def sorted_names(names: Iterable[str]) -> list[str]:
    """Names in alphabetical order, or in numerical order where all of them are whole numbers.

    Examples
    --------
    >>> sorted_names(["10", "9"]), sorted_names(["10", "9", "nine"])
    (['9', '10'], ['10', '9', 'nine'])
    """
    wholes = {name: _whole(name) for name in names}
    if any(number is None for number in wholes.values()):
        return sorted(wholes)
    return sorted(wholes, key=lambda name: (wholes[name] or 0, name))


def distinct_labels(labels: Iterable[object]) -> tuple[str, ...]:
    """Labels as texts; two that are the same are refused."""
    texts = tuple(str(label) for label in labels)
    if len(set(texts)) < len(texts):
        twice = next(text for i, text in enumerate(texts) if text in texts[:i])
        raise InvalidInput(
            f"label {twice!r} occurs twice; every object needs its own; pass labels= with names "
            "that differ"
        )
    return texts


def _whole(value: str) -> int | None:
    """The whole number that a text is, also as 3.0 or 3e0, or None."""
    if not _NUMBER.fullmatch(value):
        return None
    number = float(value)
    if not number.is_integer():
        return None
    return int(value) if value.lstrip("+-").isdecimal() else int(number)
