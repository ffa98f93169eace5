"""Reading a folder that somebody hostile filled."""

import os
import socket
import threading
from pathlib import Path

import pytest

from service.sandbox.reader import CannotRead, Caps, Reader, shown


def _refusal(reader, path):
    with pytest.raises(CannotRead) as refused:
        reader.read_bytes(path)
    return str(refused.value)


def test_files_are_listed_in_order_and_read(tmp_path):
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.txt").write_bytes(b"one\r\ntwo\rthree\xff")
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "empty").mkdir()

    reader = Reader(tmp_path)

    assert reader.listing.files == ("a.txt", "b/x.txt")
    assert reader.listing.folders == ("b", "empty")
    assert reader.read_text("b/x.txt") == "one\ntwo\nthree\ufffd"
    assert reader.matching("*.txt") == ["a.txt", "b/x.txt"]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../b", "a//b", ".", "a\0b"])
def test_only_paths_inside_are_paths(tmp_path, path):
    assert "not a path inside" in _refusal(Reader(tmp_path), path)


def test_links_are_neither_listed_nor_followed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "file").symlink_to(outside / "secret")
    (inside / "folder").symlink_to(outside)
    (inside / "environ").symlink_to("/proc/self/environ")

    reader = Reader(inside)

    assert reader.listing.files == ()
    assert reader.listing.skipped == dict.fromkeys(["file", "folder", "environ"], "a link")
    for path in ("file", "folder/secret", "environ"):
        assert "a link or a file stands in its way" in _refusal(reader, path)


def test_pipes_sockets_and_devices_are_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    (tmp_path / "folder").mkdir()

    reader = Reader(tmp_path)

    assert reader.listing.skipped == {"pipe": "a pipe", "socket": "a socket"}
    assert "is a pipe, not a regular file" in _refusal(reader, "pipe")
    assert "cannot be read" in _refusal(reader, "socket")
    assert "is a folder, not a regular file" in _refusal(reader, "folder")


def test_a_huge_sparse_file_is_refused_by_its_size(tmp_path):
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert "has 1099511627776 bytes, more than 10000000" in _refusal(Reader(tmp_path), "huge")


def test_a_file_that_pretends_to_be_empty_is_cut_off_while_reading():
    assert "has more than 10 bytes" in _refusal(Reader(Path("/proc/self"), Caps(file_bytes=10)), "limits")


def test_too_many_entries_and_too_much_depth_are_refused(tmp_path):
    for number in range(20):
        (tmp_path / str(number)).touch()
    with pytest.raises(CannotRead, match="more than 10 files and folders"):
        _ = Reader(tmp_path, Caps(entries=10)).listing

    (tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    with pytest.raises(CannotRead, match="a/b/c is deeper than 3 folders"):
        _ = Reader(tmp_path, Caps(depth=3)).listing


def test_a_folder_swapped_for_a_link_while_reading_never_leaks(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("secret")
    inside = tmp_path / "inside"
    (inside / "d").mkdir(parents=True)
    (inside / "d" / "f").write_text("fine")
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    stop = threading.Event()

    def swap():
        while not stop.is_set():
            os.rename(inside / "d", tmp_path / "kept")
            os.rename(tmp_path / "link", inside / "d")
            os.rename(inside / "d", tmp_path / "link")
            os.rename(tmp_path / "kept", inside / "d")

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(3000):
            try:
                reader = Reader(inside)
                seen |= {reader.read_text(path) for path in (*reader.listing.files, "d/f")}
            except CannotRead:
                seen.add("refused")
    finally:
        stop.set()
        thread.join()

    assert "secret" not in seen
    assert seen <= {"fine", "refused"}


def test_a_copy_has_the_files_and_folders_and_nothing_else(tmp_path):
    source = tmp_path / "source"
    (source / "empty").mkdir(parents=True)
    (source / "run.sh").write_text("#!/bin/sh")
    (source / "run.sh").chmod(0o4711)
    (source / "link").symlink_to("/etc")

    Reader(source).copy_to(tmp_path / "copy")

    copied = Reader(tmp_path / "copy").listing
    assert (copied.files, copied.folders, copied.skipped) == (("run.sh",), ("empty",), {})
    assert (tmp_path / "copy" / "run.sh").stat().st_mode & 0o7777 == 0o755


def test_no_open_file_is_left(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "link").symlink_to("/etc")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        for path in ("a/link/passwd", "a/none", "a/link"):
            _refusal(Reader(tmp_path), path)
        with pytest.raises(CannotRead):
            _ = Reader(tmp_path, Caps(depth=1)).listing
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("path", "printed"), [("a/b", "a/b"), ("\udcff", "\\xff"), ("a\nb", "a\\nb"), ("\x1b[2J", "\\x1b[2J"), ("é", "é")]
)
def test_any_path_can_be_shown(path, printed):
    assert shown(path) == printed
