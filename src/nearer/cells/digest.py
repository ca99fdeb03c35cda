"""Which code figures come from: a digest of it and of the modules that it imports.

Imports are read from the source, from module to module, also those inside functions. A change to
one method so leaves the figures of the others valid, and a change to what they share leaves none.
A function is followed inside its own module, too: how its figures are shown is not part of it, nor
are comments and docstrings.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import nearer

__all__ = ["code_digest", "modules_reached"]


@cache
def code_digest(
    *functions: Callable[..., Any], without: tuple[str, ...] = (), files: tuple[Path, ...] = ()
) -> str:
    """A short digest of functions: what they use of their modules, all that is imported for it.

    Parameters
    ----------
    functions
        At the top of their modules.
    without
        Modules that are imported for something else.
    files
        More that the figures depend on.

    Examples
    --------
    >>> code_digest(nearer.run) == code_digest(nearer.embed)
    False
    """
    digest, modules = hashlib.sha256(), set[str]()
    for function in functions:
        used = _used(ast.parse(inspect.getsource(sys.modules[function.__module__])), function)
        digest.update("\n".join(_unparsed(statement) for statement in used).encode())
        modules |= {name for statement in used for name in _modules_named(statement)}
    reached = modules_reached(modules - set(without), without=without)
    for path in sorted({path for module in reached for path in _files(module)} | set(files)):
        digest.update(path.name.encode() + b"\0" + _content(path))
    return digest.hexdigest()[:16]


@cache
def _content(path: Path) -> bytes:
    """What a file says: source without remarks, other files as they are."""
    if path.suffix != ".py":
        return path.read_bytes()
    return _unparsed(ast.parse(path.read_text(encoding="utf-8"))).encode()


def _unparsed(tree: ast.AST) -> str:
    """Source without comments, docstrings and layout."""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def modules_reached(roots: Iterable[str], *, without: Iterable[str] = ()) -> set[str]:
    """These modules, those that they import, those that those import, and so on."""
    reached, ahead, never = set[str](), set(roots), set(without)
    while ahead:
        module = ahead.pop()
        reached.add(module)
        ahead |= _imports(module) - reached - never
    return reached


@cache
def _imports(module: str) -> frozenset[str]:
    return frozenset(
        name
        for path in _files(module)
        for name in _modules_named(ast.parse(path.read_text(encoding="utf-8")))
    )


def _used(module: ast.Module, function: Callable[..., Any]) -> list[ast.stmt]:
    """The statements of a module that a function in it needs, in their order."""
    binds: dict[str, list[ast.stmt]] = {}
    for statement in module.body:
        for bound in _bound(statement):
            binds.setdefault(bound, []).append(statement)
    used, ahead, seen = set[ast.stmt](), {function.__name__}, set[str]()
    while ahead:
        name = ahead.pop()
        seen.add(name)
        for statement in binds.get(name, []):
            used.add(statement)
            ahead |= {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)} - seen
    return sorted(used, key=lambda statement: statement.lineno)


def _bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a statement at the top of a module gives something to."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        yield statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        yield from (alias.asname or alias.name.split(".")[0] for alias in statement.names)
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def _modules_named(tree: ast.AST) -> Iterator[str]:
    """The modules of ours that source names, in imports or as ``nearer.something``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "nearer":
            names = [f"nearer.{node.attr}"]
        else:
            continue
        yield from (home for name in names if _files(home := _home(name)))


def _home(name: str) -> str:
    """The module behind a public name such as ``nearer.embed``; other names as they are."""
    package, _, public = name.partition(".")
    if package != "nearer" or public not in nearer.__all__:
        return name
    thing = getattr(nearer, public)
    return str(thing.__name__ if inspect.ismodule(thing) else thing.__module__)


@cache
def _files(module: str) -> tuple[Path, ...]:
    """The file of a module of ours; nothing for others, nor for the package's own list of names."""
    first, *rest = module.split(".")
    if first not in ("nearer", "benchmarks") or not rest:
        return ()
    spec = find_spec(first)
    assert spec is not None
    assert spec.origin is not None
    place = Path(spec.origin).parent.joinpath(*rest)
    return tuple(p for p in (place.with_suffix(".py"), place / "__init__.py") if p.is_file())
