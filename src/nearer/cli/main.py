"""The `nearer` command: one group, its commands loaded on demand.

Every error that the user can fix is one line and exit code 2; warnings of ours are one line, too.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from contextlib import suppress
from pkgutil import resolve_name
from typing import Any, cast

import click

from nearer import __version__
from nearer.cli.output import Ended, say, stopped_by_ctrl_c
from nearer.errors import AnswersWarning, DroppedRows, NearerError

# command: (its function, its line in `nearer --help`)
_COMMANDS = {
    "demo": ("embed:demo", "Re-draw the map of the world from comparisons alone."),
    "fit": ("fit:command", "Find positions from a file of answers."),
    "embed": ("embed:command", "Embed points or a built-in data set from comparisons alone."),
    "plan": ("plan:command", "Estimate by simulation how many answers a study needs."),
    "data": ("data:command", "List the data sets and whether their files are present."),
    "judge": ("judge:command", "Ask a person at this terminal, or a language model in batches."),
    "study": ("study:command", "Ask people: make a study, serve it, export its answers."),
}


class _OnDemand(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        return cast("click.Command", resolve_name(f"nearer.cli.{_COMMANDS[cmd_name][0]}"))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        show = warnings.showwarning

        def show_warning(message: Any, category: type[Warning], *where: Any, **to: Any) -> None:
            if issubclass(category, AnswersWarning | DroppedRows):
                say(f"Warning: {message}", err=True)
            else:
                show(message, category, *where, **to)

        try:
            with stopped_by_ctrl_c(), warnings.catch_warnings():
                warnings.showwarning = show_warning
                return super().invoke(ctx)
        except NearerError as error:
            raise Ended(_as_typed(str(error), ctx)) from error
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "nearer":
                raise
            remedy = "studies need `pip install 'nearer[study]'`"
            raise Ended(f"the package {error.name!r} is missing: {remedy}") from error
        except MemoryError as error:
            raise Ended(f"the memory is too small ({error}); ask for less, or free some") from error
        except RuntimeError as error:
            if "no locator available" not in str(error):  # Numba's message
                raise
            remedy = "set NUMBA_CACHE_DIR to a folder that can be written to"
            raise Ended(f"compiled code cannot be stored; {remedy}") from error
        except OSError as error:
            if error.filename is not None:
                rule = "name another file or folder"
                raise Ended(f"{error.filename}: {error.strerror}; {rule}") from error
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
                raise
            with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
                # Python would try to print the rest again when it ends
                os.dup2(nowhere.fileno(), sys.stdout.fileno())
            remedy = "make room there, or send it elsewhere"
            raise Ended(f"the output cannot be written ({error.strerror}); {remedy}") from error


def _as_typed(message: str, ctx: click.Context) -> str:
    """A message about an argument, with the name of its option."""
    command = ctx.command.get_command(ctx, ctx.invoked_subcommand or "")  # type: ignore[attr-defined]
    name = message.partition("=")[0]
    for each in (command, *getattr(command, "commands", {}).values()):
        for option in each.params:
            if option.name == name and isinstance(option, click.Option):
                said = max(option.opts, key=len)
                return message.replace(f"{name}=", f"{said} ").replace(f" {name}", f" {said}")
    return message


@click.group(cls=_OnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="nearer")
def main() -> None:
    """Place objects in space from answers to "is a nearer to this than b is?"."""
