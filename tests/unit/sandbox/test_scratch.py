"""Folders for one piece of work, and what is left of those whose owner was killed."""

import os
import time
from pathlib import Path

import pytest

from service.sandbox.scratch import private_folder, remove_stale, scratch


@pytest.fixture
def parent():
    with scratch() as folder:
        yield folder


def _age(folder: Path) -> None:
    os.utime(folder, (time.time() - 3600,) * 2)


def test_a_folder_is_gone_afterwards_even_after_an_error(parent):
    with pytest.raises(RuntimeError), scratch(parent) as folder:
        (folder / "closed").mkdir(mode=0)
        raise RuntimeError
    assert list(parent.iterdir()) == []


def test_what_a_killed_process_left_is_removed(parent):
    child = os.fork()
    if child == 0:
        with scratch(parent) as folder:
            (folder / "file").touch()
            os._exit(9)
    os.waitpid(child, 0)
    [left] = parent.iterdir()

    assert remove_stale(parent) == 0  # it is too young
    _age(left)
    assert remove_stale(parent) == 1
    assert list(parent.iterdir()) == []


def test_what_is_still_in_use_or_not_ours_stays(parent):
    (parent / "something-else").mkdir()
    _age(parent / "something-else")
    with scratch(parent) as folder:
        _age(folder)
        assert remove_stale(parent) == 0
        assert folder.exists()
    assert [path.name for path in parent.iterdir()] == ["something-else"]


def test_whoever_makes_the_next_folder_clears_up_behind_the_killed(parent):
    (parent / "assay-scratch-left").mkdir()
    _age(parent / "assay-scratch-left")
    with private_folder(parent) as folder:
        assert [path.name for path in parent.iterdir()] == [folder.name]
        assert folder.stat().st_mode & 0o077 == 0
