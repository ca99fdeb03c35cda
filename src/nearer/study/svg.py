"""Drawings (SVG) that draw and do nothing else.

An SVG file is a program in disguise: it may hold scripts, links, animation, web pages and addresses
elsewhere. Here it is parsed and written anew from what is known to draw. What cannot be seen (a
script, what an editor left, a link around a shape) is dropped; what would be seen and cannot be
kept (a web page inside, a picture from elsewhere, movement) is refused, since the stimulus would
silently be another one. The server's headers would stop a script all the same.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

from nearer.errors import InvalidInput

__all__ = ["clean_svg"]

_SVG = "http://www.w3.org/2000/svg"
_HREFS = ("href", "{http://www.w3.org/1999/xlink}href")
_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_SHAPES = (
    "svg g defs symbol use title desc a switch path rect circle ellipse line polyline polygon text "
    "tspan textPath image linearGradient radialGradient stop pattern clipPath mask marker style"
)
_EFFECTS = (
    "filter feBlend feColorMatrix feComponentTransfer feComposite feConvolveMatrix feFlood feTile "
    "feDiffuseLighting feDisplacementMap feDistantLight feDropShadow feFuncA feFuncB feFuncG "
    "feFuncR feGaussianBlur feMerge feMergeNode feMorphology feOffset fePointLight "
    "feSpecularLighting feSpotLight feTurbulence"
)
_DRAWS = frozenset(f"{_SHAPES} {_EFFECTS}".split())
_UNSEEN = frozenset(["script", "metadata", "view"])
_OWN = re.compile(r"\s*#[^\s\"'()]+\s*")
_PICTURE = re.compile(r"\s*data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=\s]+")
_ADDRESS = re.compile(r"url\(\s*[\"']?\s*(.?)", re.IGNORECASE)
#: ways in which a style can fetch something or hide that it does
_FETCHES = re.compile(r"@import|@font-face|image-set|image\(|src\(|\\", re.IGNORECASE)

for _prefix, _name in (("", _SVG), ("xlink", "http://www.w3.org/1999/xlink")):
    ElementTree.register_namespace(_prefix, _name)


def clean_svg(name: str, content: bytes) -> bytes:
    """A drawing without anything that acts; one that would not look the same is refused.

    Examples
    --------
    >>> drawn = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">%b<path /></svg>'
    >>> clean_svg("a.svg", drawn % b"<script>x()</script>") == drawn % b""
    True
    """
    if b"<!ENTITY" in content:  # they can unfold to gigabytes
        raise InvalidInput(f"{name}: has entities; save it as plain SVG")
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise InvalidInput(f"{name}: the drawing is damaged: {error}") from error
    if root.tag != f"{{{_SVG}}}svg":
        raise InvalidInput(f"{name}: is no SVG drawing; its first element is {root.tag[:60]!r}")
    if "viewBox" not in root.attrib and not {"width", "height"} <= root.attrib.keys():
        raise InvalidInput(f"{name}: must say how large it is, with a viewBox or width and height")
    try:
        _clean(name, root)
        return ElementTree.tostring(root)
    except RecursionError as error:
        raise InvalidInput(f"{name}: has groups inside groups without end; make it flat") from error


def _clean(name: str, element: ElementTree.Element) -> None:
    for key, value in list(element.attrib.items()):
        if not _keeps(name, element, key, value):
            del element.attrib[key]
    if _plain(element) == "style" and _fetches(element.text or ""):
        raise InvalidInput(f"{name}: its style fetches something from elsewhere; embed it")
    for child in list(element):
        tag = _plain(child)
        if tag in _DRAWS:
            _clean(name, child)
        elif tag is None or tag in _UNSEEN:
            _drop(element, child)
        else:
            raise InvalidInput(
                f"{name}: holds <{tag}>, which cannot be kept; save it as plain SVG without "
                "animation and web pages, or as PNG"
            )


def _plain(element: ElementTree.Element) -> str | None:
    """The name of an element of SVG; None for comments and what editors add."""
    tag = element.tag
    ours = isinstance(tag, str) and tag.startswith(f"{{{_SVG}}}")
    return tag.rpartition("}")[2] if ours else None


def _keeps(name: str, element: ElementTree.Element, key: str, value: str) -> bool:
    if key in _HREFS:
        if _plain(element) == "a":
            return False
        inside = _PICTURE.fullmatch(value) if _plain(element) == "image" else None
        if not inside and not _OWN.fullmatch(value):
            raise InvalidInput(
                f"{name}: shows {value[:60]!r}, which is not part of the file; embed it"
            )
        return True
    if key.startswith("{") or key.lower().startswith("on"):
        return key == _SPACE
    if _fetches(value):
        raise InvalidInput(f"{name}: {key}={value[:60]!r} fetches something from elsewhere")
    return True


def _fetches(style: str) -> bool:
    return bool(_FETCHES.search(style)) or any(c != "#" for c in _ADDRESS.findall(style))


def _drop(parent: ElementTree.Element, child: ElementTree.Element) -> None:
    """Take an element out, and keep the text that follows it."""
    before = list(parent).index(child) - 1
    if child.tail and before >= 0:
        parent[before].tail = (parent[before].tail or "") + child.tail
    elif child.tail:
        parent.text = (parent.text or "") + child.tail
    parent.remove(child)
