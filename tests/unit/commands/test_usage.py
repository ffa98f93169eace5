"""A command line that cannot be used is told apart from one that decides nothing."""

import pytest
from typer.testing import CliRunner

from cli.main import app


@pytest.mark.parametrize(
    "words",
    [
        ["no-such-command"],
        ["aggregate"],
        ["aggregate", ".", "--no-such-option"],
        ["aggregate", ".", "--fail-under", "much"],
        ["aggregate", ".", "--require-verdict", "perhaps"],
        ["token", "no-such-command"],
    ],
)
def test_a_misused_command_exits_as_bad_input(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 3


def test_help_is_no_misuse() -> None:
    assert CliRunner().invoke(app, ["aggregate", "--help"]).exit_code == 0
