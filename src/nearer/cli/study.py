"""`nearer study`: studies with people, from one file."""

from __future__ import annotations

import json
import socket
import tempfile
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from nearer.checks import amount
from nearer.cli.output import GivenPath, check_file, say
from nearer.cli.study_changes import COMMANDS, STUDY, read_settings
from nearer.errors import InvalidInput
from nearer.files import write_bytes

__all__ = ["command"]


@click.group("study")
def command() -> None:
    """Ask people: make a study, serve it, read it out."""


for _made in COMMANDS:
    command.add_command(_made)


def _needs_extra(function: Callable[..., Any]) -> Callable[..., Any]:
    """Say what to install when the web parts are missing."""

    @wraps(function)
    def wrapped(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "nearer":
                raise
            raise InvalidInput(
                f"the package {error.name!r} is missing: studies need `pip install 'nearer[study]'`"
            ) from error

    return wrapped


@command.command()
@click.argument("study", type=STUDY)
@click.option("--items", required=True, type=GivenPath(),
              help="Folder or ZIP of pictures, sound or film; CSV with a text or file column; "
                   "Salmon's init.yaml.")  # fmt: skip
@click.option("--config", type=GivenPath(), help="YAML with the study's settings.")
@click.option(
    "--questions",
    type=GivenPath(),
    help="CSV of own questions: head, a, b, and if you like position, answer.",
)
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE",
              help="One setting, over those of --config; can be repeated.")  # fmt: skip
@_needs_extra
def new(study: Path, items: Path, config: Path | None, questions: Path | None,
        settings: tuple[str, ...]) -> None:  # fmt: skip
    """Make the file STUDY from things to compare."""
    from nearer.study.config import Config, read_yaml
    from nearer.study.imports import read_items, read_questions
    from nearer.study.items import SUFFIXES, left_out
    from nearer.study.store import new_study

    found, given, own, notes = read_items(items)
    for note in notes:
        say(f"{items}: {note}", err=True)
    if questions:
        own = read_questions(questions, [item.name for item in found])
    given = {**given, **(read_yaml(config) if config else {}), **read_settings(settings, "--set ")}
    checked = Config.of(given)
    new_study(study, found, checked, own)
    say(f"{study}: {len(found)} items, method {checked.method}, "
        f"{amount(checked.questions, 'question')} a person.")  # fmt: skip
    if skipped := left_out(items):
        named = ", ".join(skipped[:10]) + (" …" if len(skipped) > 10 else "")
        say(f"Left out {amount(len(skipped), 'file')}, no pictures, sound or film of a kind "
            f"that is taken ({' '.join(SUFFIXES)}): {named}", err=True)  # fmt: skip
    say(f"Serve it: nearer study serve {study}")


@command.command()
@click.argument("study", type=STUDY)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65535),
              help="Port; 0 takes a free one.")  # fmt: skip
@click.option("--start", is_flag=True, help="Let people take part at once.")
@click.option("--new-login", is_flag=True, help="Print a set-up link although an account exists.")
@click.option(
    "--prefix", default="", metavar="PATH", help="Path below which a proxy serves it, as /flowers."
)
@click.option("--json", "as_json", is_flag=True, help="Print the addresses as one line of JSON.")
@_needs_extra
def serve(study: Path, host: str, port: int, start: bool, new_login: bool, prefix: str,
          as_json: bool) -> None:  # fmt: skip
    """Serve STUDY: the participants' page and the dashboard."""
    from nearer.study.actions import set_state
    from nearer.study.app import open_study, run_server
    from nearer.study.store import serving

    prefix = "/" + prefix.strip("/") if prefix.strip("/") else ""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
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
            if setup:
                say(f"Make your account first, this link works once:\n{setup}")

        run_server(opened, listener, announce)


@command.command()
@click.argument("study", type=STUDY)
@click.option("--people", "show_people", is_flag=True, help="One line for each person, too.")
@click.option("--json", "as_json", is_flag=True, help="Everything as JSON.")
def status(study: Path, show_people: bool, as_json: bool) -> None:
    """How a study stands; also while it is being served."""
    from nearer.study.statistics import overview, people_report
    from nearer.study.store import connect, replay

    db = connect(study, read_only=True)
    now = time.time()
    people = people_report(db)
    found = overview(db, replay(db).summary(now), now, people)
    if as_json:
        click.echo(json.dumps({**found, "participants": [vars(p) for p in people]}))
        return
    answers, questions, who = found["answers"], found["questions"], found["people"]
    say(f"{study} is {found['state']}")
    say(f"  answers    {answers['counted']} counted, {answers['all']} stored"
        + (f", {found['quota']} wanted" if found["quota"] else ""))  # fmt: skip
    say("  questions  " + ", ".join(f"{count} {name}" for name, count in questions.items()))
    say("  people     " + ", ".join(f"{count} {name}" for name, count in who.items()))
    if found["enough"] or found["exhausted"]:
        met = found["quota"] and answers["counted"] >= found["quota"]
        good = found["quality"]["expected"] >= found["quality"]["wanted"]
        say("  enough     " + ("the quota is met" if met else "the map is good enough"
            if good else "every question has its votes"))  # fmt: skip
    flags = (f"{name}: {flag['flagged']} of {flag['judged']}"
             for name, flag in found["flags"].items())  # fmt: skip
    say("  flags      " + ", ".join(flags) + " people it can judge")
    if found["map"]:
        share = found["map"]["accuracy"]
        shown = "unknown" if share is None else f"{share:.1%} of {found['map']['n_holdout']}"
        space = amount(found["map"]["dimension"], "dimension")
        say(f"  map        {space}, hold-out accuracy {shown}")
    for person in people if show_people else []:
        median = "-" if person.median_ms is None else f"{person.median_ms / 1000:.1f} s"
        say(f"  {person.pseudonym}  {amount(person.answered, 'answer')}, {median}, "
            f"catch failed {person.catch_failed}/{person.catch_total}, repeats agree "
            f"{person.repeats_agreed}/{person.repeats_total}"
            + (f"  [{'; '.join(person.warnings)}]" if person.warnings else ""))  # fmt: skip


@command.command()
@click.argument("study", type=STUDY)
@click.option("--format", "name", default="triplets", show_default=True,
              type=click.Choice(["triplets", "answers", "salmon", "triplettools",
                                 "replies"]))  # fmt: skip
@click.option("--identities", is_flag=True, help="Panel names instead of pseudonyms.")
@click.option("--out", type=STUDY, help="File; without it, standard output.")
def export(study: Path, name: str, identities: bool, out: Path | None) -> None:
    """Write the answers as CSV."""
    from nearer.study.exports import export_csv, replies_csv
    from nearer.study.store import connect

    _check_out(out, study)
    db = connect(study, read_only=True)
    if name == "replies":
        _write(out, replies_csv(db, identities=identities))
    else:
        _write(out, export_csv(db, name, identities=identities))


@command.command()
@click.argument("study", type=STUDY)
@click.option("--dim", type=click.IntRange(1), help="Dimensions; without it, estimated.")
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=STUDY, help="CSV; without it, standard output.")
@click.option("--json", "as_json", is_flag=True, help="Print a summary as JSON.")
def embed(study: Path, dim: int | None, seed: int, out: Path | None, as_json: bool) -> None:
    """Fit positions to the answers and write them as CSV."""
    from nearer.study.exports import positions_csv
    from nearer.study.maps import EVERY_KIND, FEWEST, collected, draw_map
    from nearer.study.store import connect, read_config, stored_items

    _check_out(out, study)
    db = connect(study, read_only=True)
    items = stored_items(db)
    answers = collected(db, EVERY_KIND)
    d = dim or read_config(db).n_components
    found = draw_map(answers, len(items), n_components=d, seed=seed)
    if found is None:
        some = answers.decided
        raise InvalidInput(f"{study}: has {amount(some, 'answer')}; a map needs at least {FEWEST}")
    _write(out, positions_csv([item["name"] for item in items], found["positions"]), quiet=as_json)
    summary = {"n_objects": len(items), "out": str(out) if out else None,
               **{k: v for k, v in found.items() if k != "positions"}}  # fmt: skip
    if as_json:
        click.echo(json.dumps(summary))


@command.command()
@click.argument("study", type=STUDY)
@click.argument("copy", type=STUDY)
def backup(study: Path, copy: Path) -> None:
    """Copy STUDY to COPY, consistently, also while it is being served."""
    from nearer.study.store import back_up

    back_up(study, copy)
    say(f"{copy}: {copy.stat().st_size} bytes, checked")


@command.command()
@click.argument("study", type=STUDY)
@click.option("--answers", "n_answers", default=1000, show_default=True, type=click.IntRange(10),
              help="Answers to collect, one a screen.")  # fmt: skip
@click.option("--people", "n_people", default=10, show_default=True, type=click.IntRange(1, 1000),
              help="People at a time.")  # fmt: skip
@click.option("--positions", type=GivenPath(),
              help="Known positions, .csv, .npy or .parquet; without it, random ones.")  # fmt: skip
@click.option("--dim", default=2, show_default=True, type=click.IntRange(1),
              help="Dimensions of random positions.")  # fmt: skip
@click.option(
    "--error", default=0.2, show_default=True, help="Share of comparisons answered wrongly."
)
@click.option("--seconds", default=0.0, show_default=True,
              help="Mean thinking time; 0: that of recorded people.")  # fmt: skip
@click.option("--dropout", default=0.1, show_default=True, help="Share who leave before the end.")
@click.option("--seed", default=0, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@_needs_extra
def simulate(study: Path, n_answers: int, n_people: int, positions: Path | None, dim: int,
             error: float, seconds: float, dropout: float, seed: int,
             as_json: bool) -> None:  # fmt: skip
    """Try STUDY out on simulated people, to plan how many answers it needs.

    People come, answer and go in simulated time, in a copy without answers; STUDY is not changed.
    """
    from nearer.datasets.points import read_points
    from nearer.study.simulate import plan

    with tempfile.TemporaryDirectory() as folder:
        found = plan(
            study, Path(folder), n_answers=n_answers, n_people=n_people,
            positions=None if positions is None else read_points(positions),
            dim=dim, error=error, seconds=seconds, dropout=dropout, seed=seed,
        )  # fmt: skip
    if as_json:
        click.echo(json.dumps(found))
        return
    say(f"{found['stored']} screens of {found['task']!r}, "
        f"{amount(found['people'], 'person', 'people')}")  # fmt: skip
    say(f"{found['counted']} of them count; the others are hold-outs, repeats and checks. "
        f"Hours are people's, at {found['seconds_an_answer']:.1f} s a screen.")  # fmt: skip
    say(f"{'counted':>8}  {'screens':>8}  {'people':>7}  {'hours':>6}  "
        f"{'agrees with the truth':>22}  {'agrees with people':>19}")  # fmt: skip
    for row in found["curve"]:
        held = "-" if row["holdout"] is None else f"{row['holdout']:.1%}"
        say(f"{row['n_triplets']:>8}  {row['answers']:>8}  {row['people']:>7}  "
            f"{row['hours']:>6.1f}  {row['truth']:>22.1%}  {held:>19}")  # fmt: skip


def _check_out(out: Path | None, study: Path) -> None:
    """Refuse to write a table over the study that it is made from."""
    if out is not None:
        check_file("--out", out, [study])


def _write(out: Path | None, text: str, *, quiet: bool = False) -> None:
    if out is not None:
        write_bytes(out, text.encode())
    elif not quiet:
        click.echo(text, nl=False)
