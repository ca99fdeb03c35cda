"""`nearer study set`, `import`, `link` and `withdraw`: what changes a study, also a served one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from nearer.checks import amount
from nearer.cli.output import GivenPath, say
from nearer.errors import InvalidInput

__all__ = ["COMMANDS", "STUDY", "read_settings"]

STUDY = GivenPath(dir_okay=False)


def read_settings(given: tuple[str, ...], where: str = "") -> dict[str, Any]:
    """NAME=VALUE, the value as YAML reads it."""
    from nearer.study.config import parse_yaml

    found = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InvalidInput(f"{where}{setting!r}: must be NAME=VALUE")
        shown = setting if len(setting) <= 80 else f"{setting[:80]}…"
        try:
            found[name] = parse_yaml(shown, value)
        except InvalidInput as error:
            raise InvalidInput(
                f"{where}{shown!r}: the value cannot be read as YAML; put it in quotes"
            ) from error
    return found


@click.command()
@click.argument("study", type=STUDY)
@click.argument("person")
@click.confirmation_option(prompt="Delete this person's identity and answers for good?")
def withdraw(study: Path, person: str) -> None:
    """Erase a PERSON, named by pseudonym or by the panel's name, and all their answers."""
    from nearer.study.actions import withdraw as erase

    with _changing(study) as store:
        number = _person(store.reader(), study, person)
        erased = store.write(lambda ledger: erase(ledger, number))
    say(f"{person}: {amount(erased, 'answer')} erased. Older backups still hold them.")


@click.command("set")
@click.argument("study", type=STUDY)
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
def set_settings(study: Path, settings: tuple[str, ...]) -> None:
    """Change settings of STUDY, also while it is being served; every change is recorded."""
    from nearer.study.actions import change_settings

    given = read_settings(settings)
    with _changing(study) as store:
        changes = store.write(lambda ledger: change_settings(ledger, given))
    for name, value in changes.items():
        say(f"{name}: {value!r}")
    if not changes:
        say("Nothing changed: the study has these settings already.")


@click.command("import")
@click.argument("study", type=STUDY)
@click.argument("answers", type=GivenPath())
def import_(study: Path, answers: Path) -> None:
    """Add earlier ANSWERS to STUDY: a CSV with head, winner, loser, and if you like person."""
    from nearer.study.imports import import_answers, read_answers
    from nearer.study.store import stored_items

    with _changing(study) as store:
        names = [item["name"] for item in stored_items(store.reader())]
        found = read_answers(answers, names)
        added = store.write(lambda ledger: import_answers(ledger, found))
    say(f"{study}: {amount(added, 'answer')} added")


@click.command()
@click.argument("study", type=STUDY)
@click.argument("person")
def link(study: Path, person: str) -> None:
    """Print the end of a personal link, with which a PERSON goes on from another browser.

    Put it after the study's address. It is like a key: send it to that person only.
    """
    from nearer.study.auth import Signer
    from nearer.study.store import connect

    db = connect(study, read_only=True)
    number = _person(db, study, person)
    key = db.execute("SELECT value FROM secrets WHERE name = 'sign'").fetchone()[0]
    say(f"?resume={Signer(key).sign('resume', {'id': number})}")


@contextmanager
def _changing(study: Path) -> Iterator[Any]:
    """The study's writer, closed at the end; what it refuses is a message."""
    from nearer.study.rows import Refusal
    from nearer.study.store import Store

    store = Store(study)
    try:
        yield store
    except Refusal as refusal:
        raise InvalidInput(str(refusal)) from refusal
    finally:
        store.close()


def _person(db: Any, study: Path, name: str) -> int:
    rows = db.execute(
        "SELECT p.id FROM people p LEFT JOIN identities i ON i.person = p.id"
        " WHERE p.pseudonym = ? OR i.external = ?", (name, name)).fetchall()  # fmt: skip
    if not rows:
        raise InvalidInput(f"{name!r}: nobody of that name takes part in {study}")
    if len(rows) > 1:
        raise InvalidInput(f"{name!r}: {len(rows)} people have that name; use the pseudonym")
    return int(rows[0][0])


COMMANDS = (withdraw, set_settings, import_, link)
