"""The runner `command`: which files a command is shown, and what is made of what it says about itself."""

import os
from pathlib import Path

from service.runners.command import named_files


def test_only_regular_files_that_the_machine_has_are_shown(tmp_path: Path) -> None:
    (tmp_path / "agent.sh").write_text("true")
    (tmp_path / "link.sh").symlink_to(tmp_path / "agent.sh")
    (tmp_path / "environment").symlink_to("/proc/self/environ")
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    os.mkfifo(tmp_path / "pipe")
    names = ("agent.sh", "link.sh", "environment", "circle", "pipe", "missing", "x" * 5_000)
    command = [
        "/bin/bash",
        "-c",
        *(str(tmp_path / name) for name in names),
        str(tmp_path),
        "/proc/self/environ",
        "agent",
    ]

    assert named_files(command) == {
        str(tmp_path / "agent.sh"): (tmp_path / "agent.sh").resolve(),
        str(tmp_path / "link.sh"): (tmp_path / "agent.sh").resolve(),
    }
