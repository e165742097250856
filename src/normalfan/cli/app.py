"""`normalfan`, the command.

A bad input ends it with one sentence on standard error and exit code 2, a file that cannot be read or written
or work that cannot go on with one and exit code 1.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from normalfan import InputError, __version__
from normalfan.cli.demo import demo
from normalfan.cli.fan import fan
from normalfan.cli.fleet import fleet
from normalfan.cli.price import price
from normalfan.cli.replan import replan
from normalfan.cli.reproduce import reproduce
from normalfan.cli.watch import watch
from normalfan.errors import WorkStopped
from normalfan.text import printable

FAILED, BAD_INPUT = 1, 2

app = typer.Typer(
    help="The rewards moved: did it matter, and what exactly does keeping the old plan cost?",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (demo, price, replan, watch, fan, fleet):
    app.command()(command)
# The options of `reproduce`, its help among them, are those of the companion.
app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True}, add_help_option=False
)(reproduce)


@app.callback(invoke_without_command=True)
def _options(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"normalfan {__version__}")
        raise typer.Exit


def main() -> None:
    try:
        app()
    except InputError as error:
        typer.echo(f"normalfan: {printable(error)}", err=True)
        sys.exit(BAD_INPUT)
    except WorkStopped as stopped:
        typer.echo(f"normalfan: {printable(stopped)}", err=True)
        sys.exit(FAILED)
    except BrokenPipeError:
        # Whoever read our output has seen enough; Python must not complain about it at exit.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        what = printable(error.filename or "a file")
        typer.echo(
            f"normalfan: {what} could not be read or written ({error.strerror}), but this command needs it: "
            f"check the path, its permissions and the space left.",
            err=True,
        )
        sys.exit(FAILED)
