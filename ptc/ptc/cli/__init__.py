"""The command line `ptc`. Importing it is light, so that `ptc --help` is fast: commands load what they need.

It only parses and prints; what a command does lives in the packages. Whatever a model or a tool wrote is
shown as text, never as markup or as terminal control.
"""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from ptc.cli import audit, doctor, exec, registry, run, tools

app = typer.Typer(
    name="ptc",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from ptc._version import __version__

        typer.echo(f"ptc {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Run programs that call tools, and look at what happened.

    Use it to try tools with a model or a program without one, to look at and check audit logs, to review tools
    before a model gets them, and to see what this machine can enforce.

    \b
    Examples:
      ptc run "How many are left?" --tools mytools:TOOLS --approve
      ptc exec program.py --tools mytools:TOOLS
      ptc audit show audit.db
      ptc doctor
    """


app.command("run")(run.run_model)
app.command("exec")(exec.exec_program)
app.add_typer(audit.app, name="audit")
app.add_typer(tools.app, name="tools")
app.add_typer(registry.app, name="registry")
app.command("doctor")(doctor.doctor)


def main() -> NoReturn:
    """The entry point. An error of ours is one line that says what to do, and exit status 2."""
    import sys

    from ptc.cli.console import complain
    from ptc_tools.errors import PtcError

    try:
        app(standalone_mode=True)
    except PtcError as error:
        complain(error.message)
        sys.exit(2)
    except BrokenPipeError:
        # The reader went away (`ptc audit tail | head`): nothing to say, and nobody to say it to.
        import os

        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    sys.exit(0)
