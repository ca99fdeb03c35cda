"""`nearer study`: studies with people, from one file."""

from __future__ import annotations

import json
import socket
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click

from nearer.checks import amount
from nearer.cli.output import (
    GivenPath,
    check_file,
    check_files,
    dimension_figures,
    draw_files,
    json_option,
    option,
    picture_files,
    print_table,
    say,
)
from nearer.errors import InvalidInput
from nearer.files import write_bytes

__all__ = ["command"]

STUDY = GivenPath(dir_okay=False)
_study = click.argument("study", type=STUDY)
_out = click.option("--out", type=STUDY, help="CSV; without it, standard output.")
_EXPORTS = click.Choice(["triplets", "answers", "salmon", "triplettools", "replies"])


class _NeedsExtra(click.Group):
    """A group that says what to install when the web parts are missing."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "nearer":
                raise
            raise InvalidInput(
                f"the package {error.name!r} is missing: studies need `pip install 'nearer[study]'`"
            ) from error


@click.group("study", cls=_NeedsExtra)
def command() -> None:
    """Ask people: make a study, serve it, read it out."""


@command.command()
@_study
@click.option("--items", required=True, type=GivenPath(), help="Folder, ZIP, CSV or init.yaml.")
@click.option("--config", type=GivenPath(), help="YAML with the study's settings.")
@click.option("--questions", type=GivenPath(), help="CSV of own questions: head, a, b.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="One setting.")
def new(
    study: Path,
    items: Path,
    config: Path | None,
    questions: Path | None,
    settings: tuple[str, ...],
) -> None:
    """Make the file STUDY from things to compare.

    The items are a folder or ZIP of pictures, sound or film, a CSV with a text or file column, a
    text file, or Salmon's init.yaml. Own questions may have a position and an answer.
    """
    from nearer.study.config import Config, read_yaml
    from nearer.study.items import read_items, read_questions
    from nearer.study.store import new_study

    found, given, notes = read_items(items)
    for note in notes:
        say(f"{items}: {note}", err=True)
    own = read_questions(questions, [item.name for item in found]) if questions else []
    stated = read_yaml(config) if config else {}
    checked = Config.of({**given, **stated, **_read_settings(settings, "--set ")})
    new_study(study, found, checked, own)
    each = amount(checked.questions, "question")
    say(f"{study}: {len(found)} items, method {checked.method}, {each} a person.")
    say(f"Serve it: nearer study serve {study}")


@command.command()
@_study
@option("--host", default="127.0.0.1", help="Address to listen on.")
@option("--port", default=8000, type=click.IntRange(0, 65535), help="Port; 0 takes a free one.")
@click.option("--start", is_flag=True, help="Let people take part at once.")
@click.option("--new-login", is_flag=True, help="Print a set-up link although an account exists.")
@click.option("--prefix", default="", metavar="PATH", help="Path below which a proxy serves it.")
@json_option
def serve(
    study: Path, host: str, port: int, start: bool, new_login: bool, prefix: str, as_json: bool
) -> None:
    """Serve STUDY: the participants' page and the dashboard."""
    from nearer.study.actions import set_state
    from nearer.study.app import open_study, run_server
    from nearer.study.store import serving

    prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}") from error
    with listener, serving(study):
        opened = open_study(study, new_login=new_login, prefix=prefix)
        if start:
            opened.store.write(lambda ledger: set_state(ledger, "running"))
        port = listener.getsockname()[1]
        base = f"http://{f'[{host}]' if ':' in host else host}:{port}{prefix}"
        setup = f"{base}/setup/{opened.setup}" if opened.setup else None

        def announce() -> None:
            if as_json:
                click.echo(json.dumps({"port": port, "study": f"{base}/", "setup": setup}))
                return
            say(f"Participants: {base}/\nDashboard:    {base}/dashboard")
            if host in ("127.0.0.1", "::1", "localhost"):
                say("Only this computer can open these links. docs/study-deployment.md says how to "
                    "put the study on the web.")  # fmt: skip
            if setup:
                say(f"Make your account first, this link works once:\n{setup}")

        run_server(opened, listener, announce)


@command.command()
@_study
@click.option("--people", "show_people", is_flag=True, help="One line for each person, too.")
@json_option
def status(study: Path, show_people: bool, as_json: bool) -> None:
    """How a study stands; also while it is being served."""
    import jinja2

    from nearer.study.exports import overview, people_report
    from nearer.study.store import connect, replay

    with closing(connect(study, read_only=True)) as db:
        now, people = time.time(), people_report(db)
        found = overview(db, replay(db).summary(now), now, people)
    found["participants"] = [vars(p) for p in people] if show_people or as_json else []
    if as_json:
        click.echo(json.dumps(found))
        return
    pages = jinja2.PackageLoader("nearer.study", "pages")
    texts = jinja2.Environment(loader=pages, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    say(texts.get_template("status.txt").render(study=study, **found))


@command.command()
@_study
@option("--format", "name", default="triplets", type=_EXPORTS)
@click.option("--identities", is_flag=True, help="Panel names instead of pseudonyms.")
@_out
def export(study: Path, name: str, identities: bool, out: Path | None) -> None:
    """Write the answers as CSV."""
    from nearer.study.exports import export_csv, replies_csv
    from nearer.study.store import connect

    make = replies_csv if name == "replies" else partial(export_csv, name=name)
    with closing(connect(study, read_only=True)) as db:
        _write(out, study, make(db, identities=identities))


@command.command()
@_study
@click.option("--dim", type=click.IntRange(1), help="Dimensions; without it, estimated.")
@option("--seed", default=0)
@_out
@click.option("--map", "map_file", type=GivenPath(), help="A map, too: .svg, .pdf, .png or .html.")
@click.option("--report", "report_file", type=GivenPath(), help="A report, too: .html or .md.")
@click.option("--pictures", type=GivenPath(exists=True, file_okay=False), help="Named as items.")
@json_option
def embed(
    study: Path,
    dim: int | None,
    seed: int,
    out: Path | None,
    map_file: Path | None,
    report_file: Path | None,
    pictures: Path | None,
    as_json: bool,
) -> None:
    """Fit positions to the answers and write them as CSV; how good they are is said beside."""
    from nearer.study.exports import positions_csv
    from nearer.study.store import connect, read_config, stored_items
    from nearer.study.worker import EVERY_KIND, FEWEST, collected, fit_map, map_figures

    if out is not None:  # before the work of a fit
        check_file("--out", out, [study])
    check_files(map_file, report_file, [study])
    with closing(connect(study, read_only=True)) as db:
        names = [item["name"] for item in stored_items(db)]
        answers, config = collected(db, EVERY_KIND, names=names), read_config(db)
    found = fit_map(answers, len(names), dim or config.n_components, seed)
    if found is None:
        some = amount(answers.decided, "answer")
        raise InvalidInput(f"{study}: has {some}; a map needs at least {FEWEST}")
    found.details["task"] = str(config.as_task)
    figures = map_figures(found, answers) | dimension_figures(found)
    positions, held = figures.pop("positions"), found.held_out
    figures["accuracy_interval"] = None if held is None else [held.low, held.high]
    if out is not None or not as_json:
        _write(out, study, positions_csv(names, positions))
    look = {"pictures": picture_files(names, pictures, study)}
    draw_files(found, study.name, map_file, report_file, look)
    if as_json:
        written = str(out) if out else None
        click.echo(json.dumps({"n_objects": len(names), "out": written, **figures}))
        return
    said = f"{amount(answers.decided, 'answer')}, {amount(found.dimension, 'dimension')}"
    if found.determined is False:
        said += f" ({found.dimension_low} to {found.dimension_high} are possible)"
    if held is not None:
        said += f", {held.accuracy:.1%} of held-out answers predicted"
        said += f" ({held.low:.1%} to {held.high:.1%})"
    say(said, err=True)


@command.command()
@_study
@click.argument("copy", type=STUDY)
def backup(study: Path, copy: Path) -> None:
    """Copy STUDY to COPY, consistently, also while it is being served."""
    from nearer.study.store import back_up

    back_up(study, copy)
    say(f"{copy}: {copy.stat().st_size} bytes, checked")


@command.command()
@_study
@option("--answers", "n_answers", default=1000, type=click.IntRange(10), help="Screens in all.")
@option("--people", "n_people", default=10, type=click.IntRange(1, 1000), help="At a time.")
@click.option("--positions", type=GivenPath(), help="Known positions; without it, random ones.")
@option("--dim", default=2, type=click.IntRange(1), help="Dimensions of random positions.")
@option("--error", default=0.2, help="Share of comparisons answered wrongly.")
@option("--seconds", default=0.0, help="Mean thinking time; 0: that of recorded people.")
@option("--dropout", default=0.1, help="Share who leave before the end.")
@option("--seed", default=0)
@json_option
def simulate(study: Path, positions: Path | None, as_json: bool, **how: Any) -> None:
    """Try a copy of STUDY out on simulated people, to plan how many answers it needs."""
    from nearer.datasets.points import read_points
    from nearer.study.simulate import plan

    known = None if positions is None else read_points(positions)
    with tempfile.TemporaryDirectory() as folder:
        found = plan(study, Path(folder), positions=known, **how)
    if as_json:
        click.echo(json.dumps(found))
        return
    named = {
        "counted": "n_triplets",
        "screens": "answers",
        "people": "people",
        "hours": "hours",
        "agrees with the truth": "truth",
        "agrees with people": "holdout",
    }
    columns = {name: [row[key] for row in found["curve"]] for name, key in named.items()}
    people = amount(found["people"], "person", "people")
    print_table(f"{found['stored']} screens of {found['task']!r}, {people}", columns)
    say(f"{found['counted']} screens count; the others are hold-outs, repeats and checks. Hours "
        f"are people's, at {found['seconds_an_answer']:.1f} s a screen.")  # fmt: skip


@command.command()
@_study
@click.argument("person")
@click.confirmation_option(prompt="Delete this person's identity and answers for good?")
def withdraw(study: Path, person: str) -> None:
    """Erase a PERSON, named by pseudonym or by the panel's name, and all their answers."""
    from nearer.study.actions import withdraw as erase

    with _writer(study) as store:
        number = _person(store.reader(), study, person)
        erased = store.write(lambda ledger: erase(ledger, number))
    say(f"{person}: {amount(erased, 'answer')} erased. Older backups still hold them.")


@command.command("set")
@_study
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
def set_settings(study: Path, settings: tuple[str, ...]) -> None:
    """Change settings of STUDY, also while it is being served; every change is recorded."""
    from nearer.study.actions import change_settings

    given = _read_settings(settings)
    with _writer(study) as store:
        changes = store.write(lambda ledger: change_settings(ledger, given))
    for name, value in changes.items():
        say(f"{name}: {value!r}")
    if not changes:
        say("Nothing changed: the study has these settings already.")


@command.command("import")
@_study
@click.argument("answers", type=GivenPath())
def import_(study: Path, answers: Path) -> None:
    """Add earlier ANSWERS to STUDY: a CSV with head, winner, loser, and if you like person."""
    from nearer.study.items import import_answers, read_answers

    with _writer(study) as store:
        found = read_answers(answers, [item["name"] for item in store.facts.items])
        added = store.write(lambda ledger: import_answers(ledger, found))
    say(f"{study}: {amount(added, 'answer')} added")


@command.command()
@_study
@click.argument("person")
def link(study: Path, person: str) -> None:
    """Print the end of a personal link, with which a PERSON goes on from another browser.

    Put it after the study's address. It is like a key: send it to that person only.
    """
    from nearer.study.auth import Signer
    from nearer.study.store import connect

    with closing(connect(study, read_only=True)) as db:
        number = _person(db, study, person)
        key = db.execute("SELECT value FROM secrets WHERE name = 'sign'").fetchone()[0]
    say(f"?resume={Signer(key).sign('resume', {'id': number})}")


def _writer(study: Path) -> Any:
    """The study's writer, which is closed at the end of a with statement."""
    from nearer.study.store import Store

    return closing(Store(study))


def _read_settings(given: tuple[str, ...], where: str = "") -> dict[str, Any]:
    """NAME=VALUE, the value as YAML reads it."""
    from nearer.study.config import parse_yaml

    found = {}
    for setting in given:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InvalidInput(f"{where}{setting!r}: must be NAME=VALUE")
        found[name] = parse_yaml(f"{where}{setting[:80]!r}", value)
    return found


def _person(db: Any, study: Path, name: str) -> int:
    """The number of the person of a name."""
    rows = db.execute(
        "SELECT p.id FROM people p LEFT JOIN identities i ON i.person = p.id"
        " WHERE p.pseudonym = ? OR i.external = ?",
        (name, name),
    ).fetchall()
    if not rows:
        raise InvalidInput(f"{name!r}: nobody of that name takes part in {study}")
    if len(rows) > 1:
        raise InvalidInput(f"{name!r}: {len(rows)} people have that name; use the pseudonym")
    return int(rows[0][0])


def _write(out: Path | None, study: Path, text: str) -> None:
    """Write or print a table; never over the study that it is made from."""
    if out is None:
        click.echo(text, nl=False)
        return
    check_file("--out", out, [study])
    write_bytes(out, text.encode())
