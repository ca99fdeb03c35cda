"""Which code a cell's figures come from: a digest of the modules that its method imports.

Imports are read from the source, from module to module, without running anything. A change to one
method so leaves the figures of the others valid, and a change to what they share leaves none.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import nearer
from nearer.algorithms.methods import METHODS
from nearer.reproduce.cells import REGISTERED

__all__ = ["code_digest"]

_HOME = Path(nearer.__file__).parent
# what every cell needs beside its method
_SHARED = (
    "nearer.asking.oracles",
    "nearer.asking.protocol",
    "nearer.datasets",
    "nearer.metrics",
    "nearer.reproduce.classification",
    "nearer.reproduce.material",
    "nearer.reproduce.neighbours",
)
# what is imported for things that no cell does: new objects in a finished embedding, files
_NEVER = {"nearer.algorithms.placing", "nearer.triplets"}
_SHARED_FILES = ("reproduce/cells.py", "reproduce/published.py")  # but not all that they import


@cache
def code_digest(method: str) -> str:
    """A short digest of every module that the figures of a method depend on.

    Examples
    --------
    >>> code_digest("Basis") == code_digest("Extra+SOE")
    False
    """
    roots = set(_SHARED)
    if method in REGISTERED:
        roots.add(METHODS[REGISTERED[method]].make.__module__)
    files = {_HOME / name for name in _SHARED_FILES}
    files |= set((_HOME / "datasets").rglob("*.csv"))
    files |= {path for module in _reached(roots) for path in _files(module)}
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.relative_to(_HOME).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _reached(roots: set[str]) -> set[str]:
    """The modules that these import, and those that those import, and so on."""
    reached, ahead = set[str](), set(roots)
    while ahead:
        module = ahead.pop()
        reached.add(module)
        ahead |= _imports(module) - reached - _NEVER
    return reached


@cache
def _imports(module: str) -> frozenset[str]:
    found = set[str]()
    for path in _files(module):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found |= set(_named(node))
    return frozenset(name for name in found if any(_files(name)))


def _named(node: ast.AST) -> Iterator[str]:
    """What might be a module of ours in an import."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _files(module: str) -> tuple[Path, ...]:
    """The file of a module of ours; nothing for others, nor for the package's own list of names."""
    first, *rest = module.split(".")
    if first != "nearer" or not rest:
        return ()
    place = _HOME.joinpath(*rest)
    return tuple(p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file())
