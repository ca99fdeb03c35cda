"""The `nearer` command: one group, its commands loaded on demand, every error one line.

A warning is one, too: what `nearer` itself has to say comes without the line of code that said it.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import click

from nearer import __version__
from nearer.cli.saying import Ended, say
from nearer.cli.stopping import stopped_by_ctrl_c
from nearer.errors import AnswersWarning, DroppedRows, NearerError

__all__ = ["main"]

# command: (the module that holds it as `command`, what `nearer --help` says of it)
_COMMANDS = {
    "demo": ("nearer.cli.demo", "Re-draw the map of the world from comparisons alone."),
    "fit": ("nearer.cli.fit", "Find positions from a file of answers."),
    "embed": ("nearer.cli.embed", "Embed points or a built-in data set from comparisons alone."),
    "plan": ("nearer.cli.plan", "Say how many answers a study needs, from simulation."),
    "data": ("nearer.cli.data", "List the data sets and whether they are at hand."),
    "judge": ("nearer.cli.judge", "Ask a person at this terminal, or a language model in batches."),
    "study": ("nearer.cli.study", "Ask people: make a study, serve it, read it out."),
}

# what a device has to say, no fault of the program: there is no room, or it is broken
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class _OnDemand(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(_COMMANDS[cmd_name][0]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with stopped_by_ctrl_c(), warnings.catch_warnings():
                warnings.showwarning = _plainly(warnings.showwarning)
                return super().invoke(ctx)
        except NearerError as error:
            raise _Refused(str(error)) from error
        except RuntimeError as error:
            if "no locator available" not in str(error):  # Numba's words for no folder to write to
                raise
            raise _Refused(
                "nowhere to keep compiled code: neither the package's folder nor the home folder "
                "can be written to; set NUMBA_CACHE_DIR to a folder that can"
            ) from error
        except OSError as error:
            if error.errno not in _FULL:
                raise
            _forget_output()
            raise _Refused(
                f"the output cannot be written ({error.strerror}); make room there, or send it "
                "elsewhere"
            ) from error


def _plainly(show: Callable[..., None]) -> Callable[..., None]:
    """How warnings are shown: our own as one line, others as Python does."""

    def said(message: Warning | str, category: type[Warning], *where: Any, **also: Any) -> None:
        if issubclass(category, AnswersWarning | DroppedRows):
            say(f"Warning: {message}", err=True)
        else:
            show(message, category, *where, **also)

    return said


def _forget_output() -> None:
    """Drop what could not be printed: Python would try again at its end, and complain."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass  # it is no file


class _Refused(Ended):
    """Something the user can mend: one message, exit code 2."""

    exit_code = 2


@click.group(cls=_OnDemand, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="nearer")
def main() -> None:
    """Place objects in space from answers to "is a nearer to this than b is?"."""
