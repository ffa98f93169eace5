"""The command `assay`: puts the subcommands together and turns errors into one sentence and an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from cli import batch as batch_commands
from cli import calibrate as calibrate_command
from cli import compare as compare_command
from cli import convert as convert_command
from cli import estimate as estimate_command
from cli import flower as flower_command
from cli import grade as grade_command
from cli import history as history_command
from cli import import_workspace as import_command
from cli import regrade as regrade_command
from cli import schema as schema_command
from cli import serve as serve_command
from cli import simulate as simulate_command
from cli import submit as submit_command
from cli import token as token_commands
from cli import validate as validate_command
from cli.aggregate import aggregate
from cli.check import check
from cli.doctor import doctor
from cli.report_page import report_folder
from cli.run import run
from cli.worker import migrate, worker
from service.errors import AssayError, BadInput, CannotDecide

BAD_INPUT = 3
# Typer keeps its parser to itself; what it offers of it is this error's child.
_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]


@contextmanager
def _misuse_is_bad_input() -> Iterator[None]:
    """The parser leaves with 2, which here means that nothing can be decided."""
    try:
        yield
    except _USAGE_ERROR as error:
        error.exit_code = BAD_INPUT
        raise


class Commands(TyperGroup):
    """All commands; one that is misused exits as any other bad input does."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Read the words before the command."""
        with _misuse_is_bad_input():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Read the words after it, and do it."""
        with _misuse_is_bad_input():
            return super().invoke(ctx)


app = typer.Typer(
    name="assay",
    cls=Commands,
    help="Says, with honest statistics, whether an agent skill helps.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def assay() -> None:
    """Says, with honest statistics, whether an agent skill helps."""


app.command()(run)
app.command()(check)
app.command()(aggregate)
app.command("report-folder")(report_folder)
app.command()(doctor)
app.command()(worker)
app.command()(migrate)
app.command(epilog=flower_command.EXAMPLES)(flower_command.flower)
app.command(epilog=validate_command.EXAMPLES)(validate_command.validate)
app.command("convert", epilog=convert_command.EXAMPLES)(convert_command.convert_file)
app.command(epilog=schema_command.EXAMPLES)(schema_command.schema)
app.command(epilog=simulate_command.EXAMPLES)(simulate_command.simulator)
app.command(epilog=estimate_command.EXAMPLES)(estimate_command.estimate)
app.command(epilog=calibrate_command.EXAMPLES)(calibrate_command.calibrate)
app.command(epilog=serve_command.EXAMPLES)(serve_command.serve)
app.command(epilog=submit_command.EXAMPLES)(submit_command.submit)
app.command(epilog=grade_command.EXAMPLES)(grade_command.grade)
app.command("import", epilog=import_command.EXAMPLES)(import_command.import_workspace)
app.command(epilog=regrade_command.EXAMPLES)(regrade_command.regrade)
app.command()(batch_commands.status)
app.command()(batch_commands.watch)
app.command()(batch_commands.cancel)
app.command()(batch_commands.pause)
app.command()(batch_commands.resume)
app.command()(batch_commands.retry)
app.command()(batch_commands.results)
app.command()(batch_commands.export)
app.command()(batch_commands.report)
app.command(epilog=compare_command.EXAMPLES)(compare_command.compare)
app.command(epilog=history_command.EXAMPLES)(history_command.history)
app.add_typer(token_commands.app, name="token")


def exit_code(error: AssayError) -> int:
    """0 is kept for success; 1 for a gate that failed."""
    return BAD_INPUT if isinstance(error, BadInput) else 2 if isinstance(error, CannotDecide) else 4


def main() -> None:
    """Run the command line; an error of ours is one sentence on stderr, never a traceback."""
    try:
        app()
    except AssayError as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(exit_code(error))
