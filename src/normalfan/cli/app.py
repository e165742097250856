"""`normalfan`, the command.

A bad input ends it with one sentence on standard error and exit code 2, a file that cannot be read or written
or work that cannot go on with one and exit code 1.
"""

from __future__ import annotations

import gc
import importlib.util
import io
import sys
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from normalfan._version import __version__
from normalfan.cli.demo import demo
from normalfan.cli.fan import fan
from normalfan.cli.fleet import fleet
from normalfan.cli.output import complain, has_room
from normalfan.cli.price import price
from normalfan.cli.range import range_
from normalfan.cli.replan import replan
from normalfan.cli.watch import watch
from normalfan.errors import InputError, WorkStopped

FAILED, BAD_INPUT = 1, 2
COMPANION = "normalfan_paper"
USAGE_ERROR: Any = typer.BadParameter.__base__  # which has no public name in typer

app = typer.Typer(
    help="The rewards moved: did it matter, and what exactly does keeping the old plan cost?",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (demo, price, range_, replan, watch, fan, fleet):
    app.command(command.__name__.rstrip("_"))(command)


# Its options, help among them, are those of the companion.
@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False
)
def reproduce(context: typer.Context) -> None:
    """Run the paper's claims and judge them (a package of its own: normalfan-paper).

    Example:  normalfan reproduce --quick
    """
    if importlib.util.find_spec(COMPANION) is None:
        raise InputError(
            "the paper's companion is not installed, but reproduce runs its experiments: "
            "pip install normalfan-paper."
        )
    companion = importlib.import_module(f"{COMPANION}.command").app
    # Not standalone: its errors are ours to print, and it returns its exit code.
    raise typer.Exit(companion(context.args, prog_name="normalfan reproduce", standalone_mode=False) or 0)


@app.callback(invoke_without_command=True)
def _options(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"normalfan {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(BAD_INPUT)


def main() -> None:
    # What is imported stays to the end: looking for garbage in it takes a tenth of a short command's time.
    gc.set_threshold(50_000)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for terminals that do not have every character
    try:
        sys.exit(app(standalone_mode=False, prog_name="normalfan"))
    except USAGE_ERROR as error:
        # A command line that the parser did not understand, in the words of all refusals.
        command = error.ctx.command_path if error.ctx else "normalfan"
        reason = " ".join(error.format_message().split()).rstrip(".")
        rule = f"but takes only what its help lists: see {command} --help."
        _end(BAD_INPUT, f"the command is not understood ({reason}), {rule}")
    except InputError as error:
        _end(BAD_INPUT, error)
    except WorkStopped as stopped:
        _end(FAILED, stopped)
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain about it at exit.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        _end(
            FAILED,
            f"{error.filename or 'a file'} could not be read or written ({error.strerror}), but this command "
            f"needs it: check the path, its permissions and the space left.",
        )


def _end(code: int, message: object) -> NoReturn:
    with suppress(OSError):  # the exit code is still seen by somebody
        if has_room(sys.stderr):
            complain(message)
    sys.exit(code)
