"""Which column of a table is which part of an answer.

`_WORDS` lists what the columns of each *part* are called, letter case and punctuation aside, and
`_FORMS` which parts make which kind of answer. Three lone letters are head, near and far, or with
an answer beside them head and the two that are compared.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nearer import checks
from nearer.errors import InvalidInput
from nearer.triplets.table import EMPTY, SCREENS, Table, plain_word, text_of


def option(python: str, flag: str) -> str:
    """An option of reading as messages name it, for the library and for the command."""
    return f"nearer.read_triplets(…, {python}) or {flag}"


def columns_option(parts: Mapping[str, str | int]) -> str:
    """The option that says which column is which part."""
    typed = ",".join(f"{part}={column}" for part, column in parts.items())
    return option(f"columns={dict(parts)}", f"--columns {shlex.quote(typed)}")


_WORDS = {
    part: words.split()
    for part, words in {
        "head": "head center centre target anchor reference",
        "near": "winner near nearer closer close primary positive",
        "far": "loser far farther alternate negative",
        "a": "left links option1 optiona",
        "b": "right rechts option2 optionb",
        "chosen": "chosen selected",
        "answer": "answer response choice cmp comparison outcome y antwort wahl",
        "odd": "odd oddone oddoneout",
        "central": "chosencenter chosencentre central mostcentral",
        "person": "puid pid worker participant person subject sub subj user rater session anonymous"
        " agent prolific versuchsperson vp teilnehmer proband",
        "weight": "weight count",
        "excluded": "excluded exclude",
        "taken_back": "takenback",
        "seconds": "seconds rtseconds responsetimeseconds",
        "ms": "ms rtms milliseconds responsetimems responsems",
        "time": "rt responsetime reactiontime reaktionszeit keyresprt",
        "item": "item object tripletobject image img picture bild stimulus stim option",
    }.items()
}
_WORDS["person"] = [word + end for word in _WORDS["person"] for end in ("", "id", "pid")]
_ITEMS = _WORDS.pop("item")
_WORDS |= {f"item{i}": [word + i for word in _ITEMS] for i in "123"}
# What a row may say beside its answer.
BESIDE = ("person", "weight", "seconds", "ms", "time", "excluded", "taken_back")
_LETTERS = (("head", "a", "b"), ("head", "b", "c"), ("a", "b", "c"), ("i", "j", "k"))
_NAME_ENDS = ("filename", "name", "label", "html")  # the first that is there wins
_KINDS = ("triplets", "answers", "odd-one-out", "most-central")
_ODD = option("kind='odd-one-out'", "--kind odd-one-out")
_ASSUMED = {
    "triplets": "there is no header: each row is taken as head, near, far. Where the third is the "
    f"odd one out, as in files of THINGS, SPoSE and VICE, say so: {_ODD}",
    "answers": "there is no header: each row is taken as head, a, b, and whether a is nearer. "
    f"Where the last is the odd one of three, say so: {_ODD}",
    "odd-one-out": "the choice is taken as the odd one out. Where it is the most central one, say "
    "so: " + option("kind='most-central'", "--kind most-central"),
}


@dataclass(frozen=True)
class Options:
    """How a file is to be read; see `nearer.read_triplets`."""

    kind: str = "auto"
    header: bool | str = "auto"
    objects: str = "auto"
    labels: Sequence[str] | None = None
    columns: Mapping[str, str | int] | None = None
    drop_bad_rows: bool = False
    first: int | None = None

    def __post_init__(self) -> None:
        checks.one_of("kind", self.kind, ("auto", *_KINDS))
        checks.one_of("objects", self.objects, ("auto", "numbers", "names"))
        checks.one_of("header", self.header, (True, False, "auto"))
        checks.one_of("drop_bad_rows", self.drop_bad_rows, (True, False))
        if self.columns is not None and not isinstance(self.columns, Mapping):
            raise InvalidInput(
                f"columns={self.columns!r}: must say which column is which part, for example "
                '{"head": "ref", "near": "same", "far": "other"}'
            )
        if self.first is not None:
            checks.whole("first", self.first, least=0, most=1, rule="where places begin")


class Form(NamedTuple):
    """One way to write down an answer in columns."""

    kind: str
    objects: tuple[str, ...]  # the parts that hold objects, a head first
    said: str  # the part that says which was chosen; one of the objects where its column says it
    order: tuple[str, ...] = ()  # of columns without names; none: they are read in another way

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts that a table of this form must have."""
        return self.objects if self.said in self.objects else (*self.objects, self.said)


_THREE = ("item1", "item2", "item3")
_TWO = ("item1", "item2")
_FORMS = (
    Form("odd-one-out", _THREE, "odd", (*_THREE, "odd")),
    Form("odd-one-out", (*_TWO, "odd"), "odd", (*_TWO, "odd")),
    Form("odd-one-out", _THREE, "answer"),
    Form("odd-one-out", _THREE, "chosen"),
    Form("most-central", _THREE, "central", (*_THREE, "central")),
    Form("most-central", (*_TWO, "central"), "central", ("central", *_TWO)),
    Form("most-central", _THREE, "answer"),
    Form("most-central", _THREE, "chosen"),
    Form("answers", ("head", "a", "b"), "chosen"),
    Form("answers", ("head", "a", "b"), "answer", ("head", "a", "b", "answer")),
    Form("triplets", ("head", "near", "far"), "near", ("head", "near", "far")),
)


def _form_of(parts: Iterable[str], kind: str = "auto") -> Form | None:
    """The form of a table with these parts, or None where they make no answer."""
    have = set(parts)
    # Beside a triplet or a central one, a column called "choice" is not the odd one of three.
    if {"head", "near", "far"} <= have or "central" in have:
        have -= {"answer", "chosen"}
    fitting = (form for form in _FORMS if kind in ("auto", form.kind) and have >= {*form.parts})
    return next(fitting, None)


def _only(words: Sequence[str], word: str) -> int:
    """The column of that name, which has to be the only one."""
    if words.count(word) > 1:
        raise InvalidInput(
            f"header {','.join(words)}: has {word} {words.count(word)} times; rename or drop all "
            "but the column that is meant"
        )
    return words.index(word)


def by_name(header: Sequence[str]) -> dict[str, int]:
    """The parts that a header's words give, part to column."""
    words = [plain_word(name) for name in header]
    parts = {
        part: _only(words, found)
        for part, known in _WORDS.items()
        if (found := next((word for word in known if word in words), None)) is not None
    }
    for middle in [word for word in ("middle", "mitte") if word in words]:
        if {"a", "b"} <= parts.keys():  # three on a screen, none the head
            parts |= {"item1": parts.pop("a"), "item2": _only(words, middle)}
            parts["item3"] = parts.pop("b")
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


def by_choice(
    columns: Mapping[str, str | int], header: Sequence[str], width: int
) -> dict[str, int]:
    """The parts as the user names them, by column name or position."""
    parts = {}
    for part, column in columns.items():
        if part not in _WORDS:
            raise InvalidInput(f"columns: {part!r} is no part; parts are {', '.join(_WORDS)}")
        if column not in (header if isinstance(column, str) else range(width)):
            raise InvalidInput(
                f"columns: {part}={column!r}, but the columns are "
                f"{', '.join(header) or 'without names'}; use one of them or a position; "
                f"positions run from 0 to {width - 1}"
            )
        parts[part] = _only(header, column) if isinstance(column, str) else column
    return parts


def layout(table: Table, options: Options) -> tuple[Table, dict[str, int], Form]:
    """The table with its header split off, what its columns are, and their form."""
    may_be_named = table.has_header is None and options.header is not False
    named = table.with_header() if may_be_named else table
    fields = next((fields for fields in SCREENS if {*fields} <= {*named.header}), None)
    if fields is not None and options.columns is None:
        known = by_name(named.header)
        beside = {part: known[part] for part in BESIDE if part in known}
        if fields[0] == "stimulus" and "time" in beside:
            beside["ms"] = beside.pop("time")  # jsPsych measures in milliseconds
        return named, beside, Form("screens", fields, fields[-1])
    if may_be_named:
        table = _with_header(table, options)
    names = [name if isinstance(name, str) else "" for name in table.frame.columns]
    known = by_name(names)
    beside = {part: i for part, i in known.items() if part in BESIDE}
    if options.columns is not None:
        known = known if set(options.columns) <= set(BESIDE) else beside
        known |= by_choice(options.columns, table.header, table.width)
    elif not table.header:
        width = names.count("")
        default = "answers" if width == 4 else "triplets"
        meant = default if options.kind == "auto" else options.kind
        orders = (form.order for form in _FORMS if form.kind == meant)
        order = next((order for order in orders if len(order) == width), ())
        known = beside | {part: i for i, part in enumerate(order)}
    form = _form_of(known, options.kind)
    if form is not None and form.said == "answer" and _has_no_head(table, known):
        for part, column in zip(_THREE, sorted(known.pop(x) for x in form.objects), strict=True):
            known[part] = column
        form = _form_of(known, options.kind)
    if form is None:
        fitting = [form for form in _FORMS if options.kind in ("auto", form.kind)]
        wanted = dict.fromkeys(" + ".join(form.parts) for form in reversed(fitting))
        there = ", ".join(table.header[:12]) or f"{table.width} without a known header"
        raise InvalidInput(
            f"{table.name}: columns {there} make no answer; needed are "
            f"{'; or '.join(wanted)}; or the fields of screens. Separate them by "
            f"commas, tabs or semicolons, or name them: {_suggested(table, options.kind)}"
        )
    return table, {p: known[p] for p in (*form.parts, *BESIDE) if p in known}, form


def _has_no_head(table: Table, known: Mapping[str, int]) -> bool:
    """Whether answers choose among three, as center or the third place of left, center, right."""
    if not table.header or not {"head", "a", "b"} <= known.keys():
        return False
    three = [known[part] for part in ("head", "a", "b")]
    words = [plain_word(table.header[i]) for i in three]
    if words[0] not in ("center", "centre", *"abci"):
        return False
    given = {text for text in table.column(known["answer"]) if text not in EMPTY}
    named = {plain_word(text) for text in given}
    if words[0] in named and named <= set(words):
        return True
    numbered = any(text.isdecimal() for i in three for text in table.column(i))
    return given in ({"0", "1", "2"}, {"1", "2", "3"}) and not numbered


def _with_header(table: Table, options: Options) -> Table:
    """The table with its first row, or the comment above it, as the header where it is one."""
    first, known = table.first_row(), by_name(table.first_row())
    below = {text_of(x).strip() for x in table.frame.iloc[1:, :3].to_numpy().ravel()}
    occurs = bool(set(first[:3]) & below)
    named = None
    if options.header is not True and table.comment is not None:
        if _form_of(by_name(table.comment), options.kind) is None:
            raise InvalidInput(
                f"{table.name}: line '#{','.join(table.comment)}' may be a header, a comment or an "
                "answer; take out the # and say which: "
                + option("header=True) or nearer.read_triplets(…, header=False", "--no-header")
            )
        named = table.with_header(table.comment)
    elif (
        options.header is True
        or _form_of(known, options.kind) is not None
        or any(column in first for column in (options.columns or {}).values())
        or (len(known) > 1 and not occurs)
    ):
        named = table.with_header()
    elif len(first) > 1 and not occurs and not all(x.lstrip("-").isdecimal() for x in first[:3]):
        raise table.unclear(
            0,
            f"'{','.join(first)}' may be a header, but its words are not known, and its values "
            "occur nowhere else. If it is one, say which column is what: "
            + _suggested(table.with_header(), options.kind)
            + f"; if it is an answer, {option('header=False', '--no-header')}",
        )
    if named is not None and not len(named):
        raise InvalidInput(f"{table.name}: has a header and no rows; add answered questions")
    return table if named is None else named


def _suggested(table: Table, kind: str) -> str:
    """The option that names the columns, for the order in which most tables have them."""
    beside = [i for part, i in by_name(table.header).items() if part in BESIDE]
    columns = [table.called(i) for i in range(table.width) if i not in beside]

    def says(*parts: str) -> str:
        return columns_option(dict(zip(parts, columns[-len(parts) :], strict=True)))

    if len(columns) < 3:
        return option("columns=", "--columns")
    if len(columns) > 3 and kind != "triplets":
        answer, chosen = says("head", "a", "b", "answer"), says(*_THREE, "answer")
        if kind != "auto":
            return answer if kind == "answers" else chosen
        return f"{chosen}; where the first of these is the head: {answer}"
    odd = says("item1", "item2", "central" if kind == "most-central" else "odd")
    if kind in ("odd-one-out", "most-central"):
        return odd
    return f"{says('head', 'near', 'far')}; where the third is the odd one: {odd}"


def assumed(table: Table, parts: Mapping[str, int], form: Form, options: Options) -> str:
    """What was taken to be so where the source does not say."""
    if options.kind != "auto" or options.columns is not None or form.kind == "screens":
        return ""
    if not table.header:
        # a table of numbers and nothing else
        is_plain = table.object_names is None and table.frame.columns[-1] == len(form.order) - 1
        return _ASSUMED[form.kind] if is_plain else ""
    if form.kind == "odd-one-out" and form.said in ("answer", "chosen"):
        return _ASSUMED[form.kind]
    three = ("head", "near", "far") if "near" in parts else ("head", "a", "b")
    names = [table.header[parts[part]] for part in three if part in parts]
    words = tuple(map(plain_word, names))
    if words == three or words not in _LETTERS:
        return ""
    return (
        f"columns {', '.join(names)} are taken as {', '.join(three)}. Where they are something "
        "else, say so: " + columns_option({"item1": names[0], "item2": names[1], "odd": names[2]})
    )


def name_columns(table: Table, form: Form) -> dict[int, int]:
    """The columns with names of head (0), near (1), far (2), or of tripletTools Right (3)."""
    words = [plain_word(name) for name in table.header if form.kind == "triplets"]
    for end in _NAME_ENDS:
        starts = [(0, "head"), (1, "near"), (1, "winner"), (2, "far"), (2, "loser")]
        named = {part: words.index(x + end) for part, x in starts if x + end in words}
        if named:
            return named
    wanted = ("center", "answer", "left", "right")
    return dict(enumerate(map(words.index, wanted))) if {*wanted} <= {*words} else {}
