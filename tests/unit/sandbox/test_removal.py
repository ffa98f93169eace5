"""Removing folders that resist."""

import os

from service.sandbox.removal import remove_tree


def test_a_deep_closed_tree_with_strange_names_goes(tmp_path):
    root = tmp_path / "root"
    root.mkdir()
    here = os.open(root, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir(b"\xff-deep-" + b"x" * 100, dir_fd=here)
        inner = os.open(b"\xff-deep-" + b"x" * 100, os.O_RDONLY, dir_fd=here)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=inner))
        os.close(here)
        here = inner
    os.close(here)
    (root / ".removing-0").mkdir()
    (root / ".removing-0").chmod(0)

    remove_tree(root)

    assert not root.exists()


def test_links_are_removed_and_not_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    root = tmp_path / "root"
    (root / "a").mkdir(parents=True)
    (root / "link").symlink_to(outside)
    (root / "a" / "link").symlink_to(outside)

    remove_tree(root)
    (tmp_path / "link").symlink_to(outside)
    remove_tree(tmp_path / "link")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["outside"]
    assert (outside / "kept").exists()


def test_what_is_not_there_needs_no_removing(tmp_path):
    remove_tree(tmp_path / "nothing")
