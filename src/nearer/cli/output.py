r"""The common parts of commands: printing, writing, and their end by Ctrl-C.

A name in a file may hold an escape sequence, with which a terminal changes its title or hides a
line. Text, but not JSON or CSV, is therefore shown with control characters written out: ``\x1b``.
"""

from __future__ import annotations

import math
import os
import sys
from _thread import interrupt_main
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import click

from nearer.errors import InvalidInput, visible

if TYPE_CHECKING:
    from nearer.embedding import Embedding

#: the file that an interrupted run leaves in its folder, until the run is complete
INTERRUPTED = "interrupted.npz"


class Number(click.FloatRange):
    """A number in a range; nan and infinity are refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or an error about it."""
        if not math.isfinite(number := super().convert(value, param, ctx)):
            self.fail(f"{value} is no finite number", param, ctx)
        return number


option = partial(click.option, show_default=True)
seed_option = click.option("--seed", type=click.IntRange(min=0), help="Makes it repeatable.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, no table.")
scheduler_option = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="A Dask scheduler, tcp://host:port, for parallel work; needs nearer[dask].",
)


class GivenPath(click.Path):
    """A path; an empty one, as of a variable that is not set, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path, or an error about it."""
        from nearer.files import as_path  # imports NumPy

        as_path(value)
        return Path(os.fsdecode(super().convert(value, param, ctx)))


def drawing_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options of commands that draw a result: `check_files` and `draw_files` take them."""
    folder, file = GivenPath(exists=True, file_okay=False), GivenPath()
    pictures = click.option("--pictures", type=folder, help="Folder of pictures, named as objects.")
    report = click.option("--report", type=file, help="A report, too: .html or .md.")
    map_ = click.option("--map", type=file, help="A map, too: .svg, .pdf, .png or .html.")
    return map_(report(pictures(function)))


# --- printing ------------------------------------------------------------------------------------


def say(text: str, *, err: bool = False) -> None:
    """Print a line for a person."""
    click.echo(visible(text), err=err)


def show(
    figures: Any,
    columns: Mapping[str, Iterable[Any]],
    lines: Iterable[str] = (),
    *,
    as_json: bool,
    title: str = "",
    left: Sequence[str] = (),
) -> None:
    """Print figures as JSON, or some of them as the columns of a table, with lines below it.

    Whole numbers have commas, others three digits; "–" is an unknown value. Columns are aligned on
    the right but for those that `left` names.
    """
    if as_json:
        from nearer.files import json_text  # imports NumPy

        click.echo(json_text(figures))
        return
    padded = []
    for head, values in columns.items():
        cells = [head, *map(_shown, values)]
        width, pad = max(map(len, cells)), str.ljust if head in left else str.rjust
        padded.append([pad(cell, width) for cell in cells])
    rows = ("  ".join(line).rstrip() for line in zip(*padded, strict=True))
    for text in (*([title] if title else []), *rows, *lines):
        say(text)


def _shown(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or "–"
    whole = isinstance(value, int) or abs(value) >= 1000
    return f"{value:,.0f}" if whole else f"{value:.3g}"


def dimension_figures(embedding: Embedding) -> dict[str, Any]:
    """The dimension and its evidence, as ``--json`` prints them."""
    names = ("dimension", "dimension_low", "dimension_high", "determined")
    return {name: getattr(embedding, name) for name in names}


def undetermined(embedding: Embedding) -> list[str]:
    """The line about a dimension that the answers do not determine."""
    if embedding.determined is not False:
        return []
    span = f"{embedding.dimension_low} to {embedding.dimension_high}"
    return [f"dimension not determined: these answers do not distinguish {span}"]


# --- ending --------------------------------------------------------------------------------------


class Ended(click.ClickException):
    """Ends a command with one message about something that the user can fix."""

    exit_code = 2

    def format_message(self) -> str:
        """The message, which may name what a file holds."""
        return visible(super().format_message())


class _Stopped(Ended):
    exit_code = 130


@contextmanager
def stopped_by_ctrl_c(message: Callable[[], str] = lambda: "interrupted") -> Iterator[None]:
    """On Ctrl-C end the command with a message; the function may first save the results so far.

    In compiled code, Ctrl-C comes out as a SystemError whose cause is the KeyboardInterrupt. If
    Python would drop it, as in a callback of Numba that loads compiled code, it is raised again
    after a moment.
    """
    show = sys.unraisablehook

    def drop(error: sys.UnraisableHookArgs) -> None:
        if issubclass(error.exc_type, KeyboardInterrupt):
            Timer(0.1, interrupt_main).start()
        else:
            show(error)

    sys.unraisablehook = drop
    try:
        yield
    except KeyboardInterrupt:
        raise _Stopped(message()) from None
    except SystemError as error:
        if not isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
            raise
        raise _Stopped(message()) from None
    finally:
        sys.unraisablehook = show


# --- writing -------------------------------------------------------------------------------------


def check_folder(folder: Path, names: Iterable[str], reads: Sequence[Path]) -> None:
    """Refuse a folder that cannot be written, or where one of `names` is a file that is read.

    The folder is not made yet, so that a run that is refused for another reason leaves none.
    """
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        raise InvalidInput(f"--out {folder}: {there} is a file; name a folder, there or elsewhere")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InvalidInput(f"--out {folder}: is not writable; choose another folder")
    for name in (*names, INTERRUPTED):
        _check_not_read(f"--out {folder / name}", folder / name, reads)


def check_files(reads: Sequence[Path], **files: Path | None) -> None:
    """Refuse files of options that cannot be written or would overwrite others."""
    kinds = {"map": (".svg", ".pdf", ".png", ".html"), "report": (".html", ".md")}
    taken: dict[str, str] = {}
    for name, file in files.items():
        if file is None:
            continue
        option = f"--{name} {file}"
        if name in kinds and file.suffix.lower() not in kinds[name]:
            raise InvalidInput(f"{option}: must end in one of {', '.join(kinds[name])}")
        if not os.access(file.absolute().parent, os.W_OK | os.X_OK):
            raise InvalidInput(f"{option}: its folder must exist and be writable")
        if file.is_dir():
            raise InvalidInput(f"{option}: is a folder; name a file, there or elsewhere")
        has_pictures = name == "report" and file.suffix.lower() == ".md"  # as files beside it
        ends = ("map.svg", "map.png", "dimension.svg", "people.svg") if has_pictures else ()
        for written in (file, *(file.with_name(f"{file.stem}-{end}") for end in ends)):
            _check_not_read(f"--{name} {written}", written, reads)
            if (real := os.path.realpath(written)) in taken:
                raise InvalidInput(f"{option}: would write over {taken[real]}; give them two names")
            taken[real] = option


def _check_not_read(option: str, file: Path, reads: Sequence[Path]) -> None:
    if file.exists() and any(read.exists() and file.samefile(read) for read in reads):
        rule = "is a file that is read, and would be overwritten; name another"
        raise InvalidInput(f"{option}: {rule}")


def picture_files(names: list[str], folder: Path | None, source: Path) -> list[Path | None] | None:
    """Picture files by the objects' names: of --pictures, or beside the source if all are there.

    A name must not lead to another folder.
    """
    from nearer.plotting.canvas import PICTURES

    place = folder or source.parent

    def is_there(file: Path) -> bool:
        known = file.suffix.lower() in PICTURES and os.path.isfile(file)
        return known and file.resolve().is_relative_to(place.resolve())

    ends = ("", *PICTURES) if folder else ("",)
    files = [next(filter(is_there, (place / f"{x}{end}" for end in ends)), None) for x in names]
    if folder is None and None in files:
        return None
    say(f"{len(files) - files.count(None):,} of {len(files):,} objects have a picture", err=True)
    return files


def draw_files(
    embedding: Embedding, name: str, files: Mapping[str, Path | None], look: Any, **origin: Any
) -> None:
    """Write the map and the report that were asked for; `look` is what maps are drawn with."""
    from nearer.plotting import save

    if (file := files["map"]) is not None:
        page: dict[str, Any] = {"labels": list(map(str, embedding.object_names)), **look}
        if file.suffix.lower() == ".html":
            page |= {"interactive": True, "title": f"Map of {visible(name)}"}
        save(embedding.plot(**page), file)
    if (file := files["report"]) is not None:
        embedding.report(file, title=f"Report on {name}", pictures=look["pictures"], **origin)
