"""Letters of any script, as far as the installed fonts have them.

matplotlib looks for a letter in one font after the other of a list. What none of them has would be
drawn as a box, with a warning for each letter at every drawing; here the box is put in the text
beforehand, and one warning names the texts.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import matplotlib as mpl
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

from nearer.errors import AnswersWarning

__all__ = ["all_letters", "drawable"]

_BOX = "\N{WHITE SQUARE}"
# those that come with matplotlib, Linux, macOS and Windows, in this order
_FAMILIES = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans",
    "WenQuanYi Zen Hei",
    "PingFang SC",
    "Hiragino Sans",
    "Apple SD Gothic Neo",
    "Arial Unicode MS",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "Nirmala UI",
)


def _families() -> tuple[str, ...]:
    """The user's fonts first, then those that are installed."""
    installed = set(fontManager.get_font_names())
    return (*mpl.rcParams["font.family"], *(name for name in _FAMILIES if name in installed))


@contextmanager
def all_letters() -> Iterator[None]:
    """What is written inside is written with all fonts that there are."""
    with mpl.rc_context({"font.family": list(dict.fromkeys(_families()))}):
        yield


@cache
def _letters(families: tuple[str, ...]) -> frozenset[int]:
    """Numbers of the letters that one of the fonts has."""
    files = {findfont(FontProperties(family=[name])) for name in families}
    return frozenset().union(*(get_font(file).get_charmap() for file in files))


def drawable(texts: Sequence[str]) -> list[str]:
    """The texts with boxes for letters that no font has, and a warning that names such texts."""
    known = _letters(_families())
    drawn = ["".join(x if ord(x) in known or x.isspace() else _BOX for x in t) for t in texts]
    lost = [text for text, shown in zip(texts, drawn, strict=True) if text != shown]
    if lost:
        some = ", ".join(map(repr, lost[:3])) + (", …" if len(lost) > 3 else "")
        warnings.warn(
            f"no installed font has all letters of {some} ({len(lost)} in all), which are drawn as "
            "boxes; install one, such as Noto Sans CJK, or make a map to explore "
            "(interactive=True, --map map.html)",
            AnswersWarning,
            stacklevel=4,
        )
    return drawn
