"""What a researcher decides while people answer; every decision is a row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from nearer.errors import InvalidInput
from nearer.study.config import CHANGEABLE
from nearer.study.create import insert_items
from nearer.study.imports import Item
from nearer.study.log import read_items
from nearer.study.refusals import Refusal
from nearer.study.rows import Ledger

__all__ = ["add_items", "add_map", "change_settings", "set_state"]


def set_state(ledger: Ledger, state: str) -> None:
    """Start or pause."""
    if state == "running":
        try:
            ledger.board.config.check_items(len(ledger.board.items))
        except InvalidInput as error:
            raise Refusal(409, str(error)) from error
    if state != ledger.board.state:
        ledger.event("state", state=state)


def change_settings(ledger: Ledger, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Change settings of a study, also while people answer; those that really changed."""
    old = ledger.board.config
    fixed = [name for name in settings if name not in CHANGEABLE and hasattr(old, name)]
    if fixed:
        raise Refusal(
            409,
            f"setting {fixed[0]!r}: is fixed when the study is made; make a new one, and bring "
            "the answers over with `nearer study import`",
        )
    try:
        new = old.changed(settings)
    except InvalidInput as error:
        raise Refusal(422, str(error)) from error
    changes = {
        name: getattr(new, name) for name in settings if getattr(new, name) != getattr(old, name)
    }
    if changes:
        ledger.event("settings", **changes)
    return changes


def add_items(ledger: Ledger, items: Iterable[Item]) -> int:
    """Add things to compare, while nobody has been asked yet."""
    board, items = ledger.board, list(items)
    if board.questions:
        raise Refusal(409, "people have been asked already; items cannot be added any more")
    taken = {item["name"] for item in board.items}
    for item in items:
        if item.name in taken:
            raise Refusal(409, f"an item called {item.name!r} is there already; rename the file")
        taken.add(item.name)
    insert_items(ledger.db, items)
    board.items = read_items(ledger.db)
    return len(items)


def add_map(ledger: Ledger, found: Mapping[str, Any]) -> None:
    """Keep a map that the worker drew, and what is expected of it."""
    columns = ("seen", "n_triplets", "dimension", "accuracy", "n_holdout", "seconds")
    ledger.db.execute(
        f"INSERT INTO maps (at, {', '.join(columns)}, positions) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (ledger.now, *(found[c] for c in columns), json.dumps(found["positions"])),
    )
    ledger.event("map", expected_tau=found["expected_tau"])
