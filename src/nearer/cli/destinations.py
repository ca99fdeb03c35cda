"""Where results go: refused before any work where they cannot lie, or would lie over what is read.

A command reads somebody's answers and writes files of fixed names to a folder: a source that has
one of these names, in that folder, would be gone once the result is there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from nearer.errors import InvalidInput

__all__ = ["KEPT", "check_file", "check_files", "check_folder", "make_folder"]

KEPT = "interrupted.npz"  # what an interrupted run leaves in the folder, until it is done


def check_folder(out: str, names: Iterable[str] = (), reads: Iterable[Path] = ()) -> None:
    """Refuse a folder that cannot be written, or where one of `names` is a file that is read.

    It is not made yet: a run that is refused for another reason leaves none.
    """
    if not out:  # as of a variable not set: the current folder is written .
        raise InvalidInput("--out '': is no folder; name one, or . for this one")
    folder = Path(out)
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    if not there.is_dir():
        which = "is a file" if there == folder else f"cannot be made, as {there} is a file"
        raise InvalidInput(f"--out {out}: {which}; name a folder, there or elsewhere")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InvalidInput(f"--out {out}: is not writable; choose another folder")
    sources = list(reads)
    for name in (*names, KEPT):
        if _is_one_of(folder / name, sources):
            raise InvalidInput(
                f"--out {out}: {name} is written there, over the file that is read; choose another "
                "folder"
            )


def check_file(option: str, file: Path, reads: Iterable[Path]) -> None:
    """Refuse to write over a file that is read; `option` is what the file was given as."""
    if _is_one_of(file, reads):
        raise InvalidInput(
            f"{option} {file}: is a file that is read, and would be overwritten; name another"
        )


def check_files(map_file: Path | None, report_file: Path | None, reads: Sequence[Path]) -> None:
    """Refuse a map and a report that cannot be written, or would lie over another file."""
    if map_file and report_file:
        drawn = os.path.realpath(map_file)
        if drawn == os.path.realpath(report_file):
            raise InvalidInput(
                f"--map {map_file} and --report {report_file}: are one file; give them two names"
            )
        if drawn in map(os.path.realpath, _pictures(report_file)):
            raise InvalidInput(
                f"--map {map_file}: the report {report_file} has a picture of that name; give the "
                "map another"
            )
    kinds = {"--map": (".svg", ".pdf", ".png", ".html"), "--report": (".html", ".md")}
    for option, file in (("--map", map_file), ("--report", report_file)):
        if file is None:
            continue
        if file.suffix.lower() not in kinds[option]:
            known = ", ".join(kinds[option])
            raise InvalidInput(f"{option} {file}: must end in one of {known}")
        if not os.access(file.absolute().parent, os.W_OK | os.X_OK):
            raise InvalidInput(f"{option} {file}: its folder must exist and be writable")
        if file.is_dir():
            raise InvalidInput(f"{option} {file}: is a folder; name a file, there or elsewhere")
        for written in (file, *_pictures(file)):
            check_file(option, written, reads)


def make_folder(out: str) -> Path:
    """The output folder, made where it is not there."""
    check_folder(out)
    folder = Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"--out {out}: cannot be made ({error.strerror}); choose another folder"
        ) from error
    return folder


def _pictures(report: Path) -> list[Path]:
    """The pictures that a report in Markdown has beside it."""
    if report.suffix.lower() != ".md":
        return []
    ends = ("map.svg", "map.png", "dimension.svg")
    return [report.with_name(f"{report.stem}-{end}") for end in ends]


def _is_one_of(target: Path, reads: Iterable[Path]) -> bool:
    """Whether a file is there and is one of these, whatever either is called."""
    return any(
        os.path.exists(target) and os.path.exists(read) and os.path.samefile(target, read)
        for read in reads
    )
