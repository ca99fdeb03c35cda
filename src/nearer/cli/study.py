"""`nearer study`: studies with people, from one file."""

from __future__ import annotations

import re
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import click

from nearer.checks import amount
from nearer.cli import output
from nearer.cli.output import GivenPath, Number, json_option, option, say, show
from nearer.errors import InvalidInput
from nearer.files import json_text, templates, write_bytes
from nearer.study import actions, items, store
from nearer.study.auth import Signer
from nearer.study.config import Config, parse_yaml, read_yaml

_file = GivenPath(dir_okay=False)
_out = click.option("--out", type=_file, help="CSV; without it, standard output.")
_ERROR, _SHARE, _SECONDS = Number(0, 0.5, max_open=True), Number(0, 1), Number(0, 1e6)
_EXPORTS = click.Choice(["triplets", "answers", "salmon", "triplettools", "replies"])


@click.group("study")
def command() -> None:
    """Ask people: make a study, serve it, export its answers."""


def _command(name: str | None = None) -> Callable[..., click.Command]:
    """Make a function a command whose first argument is the file of a study."""
    return lambda function: command.command(name)(click.argument("study", type=_file)(function))


@_command()
@click.option("--items", "source", required=True, type=GivenPath(), help="Folder, ZIP, CSV, YAML.")
@click.option("--config", type=GivenPath(), help="YAML with the study's settings.")
@click.option("--questions", type=GivenPath(), help="CSV of own questions: head, a, b.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="One setting.")
def new(
    study: Path, source: Path, config: Path | None, questions: Path | None, settings: Sequence[str]
) -> None:
    """Make the file STUDY from things to compare.

    The items are a folder or ZIP of pictures, sound or film, a CSV with a text or file column, a
    text file, or Salmon's init.yaml. Questions of your own may have a position and an answer.
    """
    things, settings_of_file, notes = items.read_items(source)
    for note in notes:
        say(f"{source}: {note}", err=True)
    own = items.read_questions(questions, [item.name for item in things]) if questions else []
    stated = read_yaml(config) if config else {}
    checked = Config.of({**settings_of_file, **stated, **_read_settings(settings, "--set ")})
    store.new_study(study, things, checked, own)
    each = amount(checked.questions, "question")
    say(f"{study}: {len(things)} items, method {checked.method}, {each} a person.")
    say(f"Serve it: nearer study serve {study}")


@_command()
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
    from nearer.study.app import run_server
    from nearer.study.web import Study

    prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
    if not re.fullmatch(r"[\w/.~-]*", prefix, re.ASCII):
        raise InvalidInput(f"--prefix {prefix}: must be a path of letters, digits, - . _ and ~")
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror}") from error
    with listener, store.serving(study):
        opened = Study(study, new_login=new_login, prefix=prefix)
        if start:
            opened.store.write(lambda ledger: actions.set_state(ledger, "running"))
        port = listener.getsockname()[1]
        reached = _own_address() if host in ("0.0.0.0", "::") else host
        base = f"http://{f'[{reached}]' if ':' in reached else reached}:{port}{prefix}"
        setup = f"{base}/setup/{opened.setup}" if opened.setup else None

        def announce() -> None:
            if as_json:
                click.echo(json_text({"port": port, "study": f"{base}/", "setup": setup}))
                return
            say(f"Participants: {base}/\nDashboard:    {base}/dashboard")
            is_local = host in ("127.0.0.1", "::1", "localhost")
            who = "Only this computer" if is_local else "Everybody in this network, unencrypted,"
            how = "docs/study-deployment.md says how to put the study on the web."
            say(f"{who} can open these links. {how}")
            if setup:
                say(f"Make your account first, this link works once:\n{setup}")

        run_server(opened, listener, announce)


@_command()
@click.option("--people", "show_people", is_flag=True, help="One line for each person, too.")
@json_option
def status(study: Path, show_people: bool, as_json: bool) -> None:
    """Print the state of a study, also while it is being served."""
    from nearer.study.exports import overview, people_report

    with store.reading(study) as db:
        people = people_report(db)
        figures = overview(db, store.replay(db).summary(now := time.time()), now, people)
    figures["participants"] = [vars(p) for p in people] if show_people or as_json else []
    if as_json:
        click.echo(json_text(figures))
        return
    texts = templates("nearer.study", "pages", autoescape=False)
    say(texts.get_template("status.txt").render(study=study, **figures))


@_command()
@option("--format", "name", default="triplets", type=_EXPORTS)
@click.option("--identities", is_flag=True, help="Panel names instead of pseudonyms.")
@_out
def export(study: Path, name: str, identities: bool, out: Path | None) -> None:
    """Write the answers as CSV."""
    from nearer.study.exports import export_csv, replies_csv

    output.check_files([study], out=out)
    make = replies_csv if name == "replies" else partial(export_csv, name=name)
    with store.reading(study) as db:
        table = make(db, identities=identities)
    _write(out, table)


@_command()
@click.option("--dim", "n_components", type=click.IntRange(1), help="Dimensions; else estimated.")
@option("--seed", default=0)
@_out
@output.drawing_options
@json_option
def embed(study: Path, seed: int, out: Path | None, as_json: bool, **drawings: Any) -> None:
    """Fit positions to the answers and write them as CSV, with figures on their quality."""
    from nearer.study.exports import positions_csv
    from nearer.study.worker import EVERY_KIND, FEWEST, collected, fit_map, map_figures

    folder, d = drawings.pop("pictures"), drawings.pop("n_components")
    output.check_files([study], out=out, **drawings)
    with store.reading(study) as db:
        names = [item["name"] for item in store.stored_items(db)]
        answers, config = collected(db, EVERY_KIND, names=names), store.read_config(db)
    embedding = fit_map(answers, len(names), d or config.n_components, seed)
    some = amount(answers.decided, "answer")
    if embedding is None:
        raise InvalidInput(f"{study}: has {some}; a map needs at least {FEWEST}")
    embedding.details["task"] = str(config.as_task)
    figures = map_figures(embedding, answers) | output.dimension_figures(embedding)
    positions, held = figures.pop("positions"), embedding.held_out
    figures["accuracy_interval"] = None if held is None else [held.low, held.high]
    if out is not None or not as_json:
        _write(out, positions_csv(names, positions))
    look = {"pictures": output.picture_files(names, folder, study)}
    output.draw_files(embedding, study.name, drawings, look)
    if as_json:
        written = str(out) if out else None
        click.echo(json_text({"n_objects": len(names), "out": written, **figures}))
        return
    said = f"{some}, {amount(embedding.dimension, 'dimension')}"
    if embedding.determined is False:
        said += f" ({embedding.dimension_low} to {embedding.dimension_high} are possible)"
    if held is not None:
        span = f"{held.low:.1%} to {held.high:.1%}"
        said += f", {held.accuracy:.1%} of held-out answers predicted ({span})"
    say(said, err=True)


@_command()
@click.argument("copy", type=_file)
def backup(study: Path, copy: Path) -> None:
    """Copy STUDY to COPY, consistently, also while it is being served."""
    store.back_up(study, copy)
    say(f"{copy}: {copy.stat().st_size} bytes, checked")


@_command()
@option("--answers", "n_answers", default=1000, type=click.IntRange(10), help="Screens in all.")
@option("--people", "n_people", default=10, type=click.IntRange(1, 1000), help="People at a time.")
@click.option("--positions", type=GivenPath(), help="Known positions; without it, random ones.")
@option("--dim", default=2, type=click.IntRange(1), help="Dimensions of random positions.")
@option("--error", default=0.2, type=_ERROR, help="Share of comparisons answered wrongly.")
@option("--seconds", default=0.0, type=_SECONDS, help="Mean thinking time; 0: as recorded.")
@option("--dropout", default=0.1, type=_SHARE, help="Share who leave before the end.")
@option("--seed", default=0)
@json_option
def simulate(study: Path, positions: Path | None, as_json: bool, **crowd: Any) -> None:
    """Try a copy of STUDY out on simulated people, to plan how many answers it needs."""
    from nearer.datasets.loaders import load_points
    from nearer.study.simulate import plan

    known = None if positions is None else load_points(positions)
    with tempfile.TemporaryDirectory() as folder:
        figures = plan(study, Path(folder), positions=known, **crowd)
    heads = {"counted": "n_triplets", "screens": "answers", "people": "people", "hours": "hours"}
    heads |= {"agrees with the truth": "truth", "agrees with people": "holdout"}
    columns = {head: [row[key] for row in figures["curve"]] for head, key in heads.items()}
    people = amount(figures["people"], "person", "people")
    title = f"{figures['stored']} screens of {figures['task']!r}, {people}"
    line = (
        f"{figures['counted']} screens count; the others are hold-outs, repeats and checks. Hours "
        f"are those of all people, at {figures['seconds_an_answer']:.1f} s a screen."
    )
    show(figures, columns, [line], as_json=as_json, title=title)


@_command()
@click.argument("person")
@click.confirmation_option(prompt="Delete this person's identity and answers for good?")
def withdraw(study: Path, person: str) -> None:
    """Erase a PERSON, named by pseudonym or by the panel's name, and all their answers."""
    with closing(store.Store(study)) as writer:
        number = _person(writer.reader(), study, person)
        erased = writer.write(lambda ledger: actions.withdraw(ledger, number))
        say(f"Overwriting it, as soon as no other process is reading {study} …", err=True)
        while writer.erased:
            time.sleep(0.1)
    say(f"{person}: {amount(erased, 'answer')} erased. Older backups still hold them.")


@_command("set")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
def set_settings(study: Path, settings: Sequence[str]) -> None:
    """Change settings of STUDY, also while it is being served; every change is recorded."""
    wanted = _read_settings(settings)
    with closing(store.Store(study)) as writer:
        changes = writer.write(lambda ledger: actions.change_settings(ledger, wanted))
    for name, value in changes.items():
        say(f"{name}: {value!r}")
    if not changes:
        say("Nothing changed: the study has these settings already.")


@_command("import")
@click.argument("answers", type=GivenPath())
def import_(study: Path, answers: Path) -> None:
    """Add earlier ANSWERS to STUDY: a CSV with head, winner, loser and optionally person."""
    with closing(store.Store(study)) as writer:
        earlier = items.read_answers(answers, [item["name"] for item in writer.facts.items])
        added = writer.write(lambda ledger: actions.import_answers(ledger, earlier))
    say(f"{study}: {amount(added, 'answer')} added")


@_command()
@click.argument("person")
def link(study: Path, person: str) -> None:
    """Print the end of a personal link, with which a PERSON continues in another browser.

    Put it after the study's address. It is like a key: send it to that person only.
    """
    with store.reading(study) as db:
        number = _person(db, study, person)
        key = db.execute("SELECT value FROM secrets WHERE name = 'sign'").fetchone()[0]
        say(f"?resume={Signer(key).sign('resume', str(number))}")


def _own_address() -> str:
    """An address of this computer in its network, if it has one."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # sends nothing
        return str(probe.getsockname()[0])


def _read_settings(texts: Sequence[str], where: str = "") -> dict[str, Any]:
    """NAME=VALUE, the value as YAML reads it."""
    settings = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidInput(f"{where}{text!r}: must be NAME=VALUE")
        settings[name] = parse_yaml(f"{where}{text[:80]!r}", value)
    return settings


def _person(db: Any, study: Path, name: str) -> int:
    """The number of the person of a name."""
    rows = db.execute(
        "SELECT p.id FROM people p LEFT JOIN identities i ON i.person = p.id"
        " WHERE p.pseudonym = ? OR i.external = ?",
        (name, name),
    ).fetchall()
    if not rows:
        raise InvalidInput(f"{name!r}: no person of that name takes part in {study}")
    if len(rows) > 1:
        raise InvalidInput(f"{name!r}: {len(rows)} people have that name; use the pseudonym")
    return int(rows[0][0])


def _write(out: Path | None, table: str) -> None:
    if out is None:
        click.echo(table, nl=False)
    else:
        write_bytes(out, table.encode())
