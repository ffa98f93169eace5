"""Archives from strangers: the good ones come out, the hostile ones leave nothing behind."""

import gzip
import io
import os
import struct
import tarfile
import zipfile
import zlib

import pytest

from service.sandbox.archive import BadArchive, UnpackCaps
from service.sandbox.removal import remove_tree
from service.sandbox.unpack import unpack

SMALL = UnpackCaps(archive_bytes=2_000_000, total_bytes=500_000, file_bytes=200_000, entries=50)


def tar(*members, **options) -> bytes:
    """A gzipped tar of (name, content) or ready TarInfo objects."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=options.pop("format", tarfile.PAX_FORMAT), **options) as file:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                file.addfile(member, io.BytesIO(b"x" * member.size))
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                file.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def info(name: str, kind: bytes = tarfile.REGTYPE, **fields) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def zipped(*members, method=zipfile.ZIP_DEFLATED) -> bytes:
    """A zip of (name or ZipInfo, content)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as file:
        for name, content in members:
            file.writestr(name, content)
    return buffer.getvalue()


def zip_info(name: str, mode: int) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.create_system = 3
    made.external_attr = mode << 16
    return made


def header(size: bytes, kind: bytes = b"0", name: bytes = b"f") -> bytes:
    """A tar header with any size field and a right checksum."""
    fields = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + size.ljust(12, b"\0") + b"00000000000\0"
    rest = kind + b"\0" * 100 + b"ustar\x0000" + b"\0" * 247
    total = sum(fields + b" " * 8 + rest)
    return fields + b"%06o\0 " % total + rest


def overlapping() -> bytes:
    """Two entries of the table of contents that share one file's bytes."""
    whole = zipped(("a", b"x" * 1000))
    place = whole.index(b"PK\x01\x02")
    end = whole.index(b"PK\x05\x06")
    entry = whole[place:end]
    other = entry.replace(b"a", b"b")
    count = struct.pack("<HH", 2, 2)
    table = entry + other
    return whole[:place] + table + whole[end : end + 8] + count + struct.pack("<II", len(table), place) + b"\0\0"


def encrypted() -> bytes:
    whole = bytearray(zipped(("a", b"x")))
    whole[6] |= 1
    whole[whole.index(b"PK\x01\x02") + 8] |= 1
    return bytes(whole)


def escaping_links() -> bytes:
    """Links that lead outside once a long path is cut short: what tarfile's own filter lets through."""
    step = "d" * 247
    members, path = [], ""
    for letter in "abcdefghijklmnop":
        members.append(info(f"{path}{step}", tarfile.DIRTYPE, mode=0o755))
        members.append(info(f"{path}{letter}", tarfile.SYMTYPE, linkname=step))
        path += f"{letter}/"
    members.append(info("escape", tarfile.SYMTYPE, linkname=path + "../" * 20 + "tmp"))
    members.append(info("escape/planted", size=3))
    return tar(*members)


HOSTILE = {
    "tar parent": tar(("../planted", b"x")),
    "tar parent inside": tar(("a/../../planted", b"x")),
    "tar absolute": tar(info("/planted", size=1)),
    "tar symlink": tar(info("link", tarfile.SYMTYPE, linkname="/etc/passwd")),
    "tar symlink then file": tar(info("d", tarfile.SYMTYPE, linkname="/tmp"), info("d/planted", size=1)),
    "tar hard link": tar(info("link", tarfile.LNKTYPE, linkname="/etc/passwd")),
    "tar long path escape": escaping_links(),
    "tar pipe": tar(info("pipe", tarfile.FIFOTYPE)),
    "tar character device": tar(info("null", tarfile.CHRTYPE, devmajor=1, devminor=3)),
    "tar block device": tar(info("disk", tarfile.BLKTYPE, devmajor=8)),
    "tar bomb": tar(("zeros", b"\0" * 3_000_000)),
    "tar of many files": tar(*((f"f{number}", b"") for number in range(60))),
    "tar duplicate": tar(("a", b"1"), ("a", b"2")),
    "tar case clash": tar(("Readme", b"1"), ("README", b"2")),
    "tar unicode clash": tar(("caf\u00e9", b"1"), ("cafe\u0301", b"2")),
    "tar file under a file": tar(("a", b"1"), ("a/b", b"2")),
    "tar attribute bomb": tar(info("f", pax_headers={"comment": "x" * 300_000})),
    "tar sparse": gzip.compress(header(b"00000000001\0", b"S") + b"x" * 512),
    "tar negative size": gzip.compress(header(b"-0000000001\0") + bytes(1024)),
    "tar binary negative size": gzip.compress(header(b"\xff" * 12) + bytes(1024)),
    "tar huge size": gzip.compress(header(b"77777777777\0") + bytes(1024)),
    "tar wrong checksum": gzip.compress(header(b"00000000000\0").replace(b"f", b"g", 1) + bytes(1024)),
    "tar cut off": gzip.compress(header(b"00000001000\0") + b"x" * 100),
    "tar name not utf-8": gzip.compress(header(b"00000000000\0", name=b"\xff\xfe") + bytes(1024)),
    "tar control character": tar(("a\x1bb", b"x")),
    "tar backslash": tar(("a\\..\\b", b"x")),
    "tar drive": tar(("c:evil", b"x")),
    "tar reserved name": tar(("aux.txt", b"x")),
    "tar trailing dot": tar(("evil.", b"x")),
    "tar deep": tar(("a/" * 40 + "f", b"x")),
    "tar long name": tar(("n" * 300, b"x")),
    "gzip cut off": gzip.compress(os.urandom(5000))[:200],
    "zip parent": zipped(("../planted", b"x")),
    "zip absolute": zipped(("/planted", b"x")),
    "zip backslash": zipped(("a\\..\\..\\planted", b"x")),
    "zip symlink": zipped((zip_info("link", 0o120777), b"/etc/passwd")),
    "zip device": zipped((zip_info("null", 0o020666), b"")),
    "zip bomb": zipped(("zeros", b"\0" * 3_000_000)),
    "zip of many files": zipped(*((f"f{number}", b"") for number in range(60))),
    "zip case clash": zipped(("A/f", b"1"), ("a/g", b"2")),
    "zip encrypted": encrypted(),
    "zip other method": zipped(("a", b"x" * 100), method=zipfile.ZIP_BZIP2),
    "zip overlap": overlapping(),
    "zip without table": zipped(("a", b"x" * 100))[:60],
    "zip nul in name": zipped(("a_b", b"x")).replace(b"a_b", b"a\0b"),
    "no archive": b"hello",
    "empty": b"",
}

LEADS_OUT, BAD_CHARACTER, NO_FILE = "leads out", "absolute or has a character", "a link, a device or something else"
TWICE, TOO_LARGE, DAMAGED = "in the archive twice", "larger than allowed|far more than", "damaged|ends in the middle"
REASONS = {
    "parent": LEADS_OUT,
    "parent inside": LEADS_OUT,
    "absolute": BAD_CHARACTER,
    "symlink": NO_FILE,
    "symlink then file": NO_FILE,
    "hard link": NO_FILE,
    "long path escape": NO_FILE,
    "pipe": NO_FILE,
    "device": NO_FILE,
    "character device": NO_FILE,
    "block device": NO_FILE,
    "bomb": TOO_LARGE,
    "of many files": "more than 50 files",
    "duplicate": TWICE,
    "case clash": TWICE,
    "unicode clash": TWICE,
    "file under a file": TWICE,
    "attribute bomb": "a header of",
    "sparse": NO_FILE,
    "negative size": "not a number",
    "binary negative size": "not a number",
    "huge size": DAMAGED,
    "wrong checksum": "checksum",
    "cut off": DAMAGED,
    "name not utf-8": "not UTF-8",
    "control character": BAD_CHARACTER,
    "backslash": BAD_CHARACTER,
    "nul in name": BAD_CHARACTER,
    "drive": LEADS_OUT,
    "reserved name": "on every system",
    "trailing dot": "on every system",
    "deep": "deeper than 32",
    "long name": "longer than 255",
    "encrypted": "is encrypted",
    "other method": "method 12",
    "overlap": "overlaps",
    "without table": "no table of contents",
    "archive": "neither a zip",
    "": "neither a zip",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_leaves_nothing(tmp_path, name):
    archive = tmp_path / "archive"
    archive.write_bytes(HOSTILE[name])

    with pytest.raises(BadArchive, match=REASONS[name.partition(" ")[2]]):
        unpack(archive, tmp_path / "out", SMALL)

    assert [path.name for path in tmp_path.iterdir()] == ["archive"]


def test_an_empty_archive_gives_an_empty_folder(tmp_path):
    (tmp_path / "archive").write_bytes(gzip.compress(b""))
    assert unpack(tmp_path / "archive", tmp_path / "out").files == 0


@pytest.mark.parametrize("kind", ["zip", "tar", "gnu tar"])
def test_a_good_archive_comes_out_whole(tmp_path, kind):
    long_name = "my-skill/" + "folder/" * 15 + "file.txt"
    if kind == "zip":
        content = zipped(
            (zip_info("my-skill/SKILL.md", 0o100644), b"do it"),
            (zip_info("my-skill/run.sh", 0o104755), b"#!/bin/sh"),
            ("my-skill/caf\u00e9.txt", b"x"),
            (long_name, b"deep"),
        )
    else:
        content = tar(
            info("my-skill", tarfile.DIRTYPE, mode=0o755),
            ("my-skill/SKILL.md", b"do it"),
            info("my-skill/run.sh", mode=0o4755, size=9),
            ("my-skill/caf\u00e9.txt", b"x"),
            (long_name, b"deep"),
            format=tarfile.GNU_FORMAT if kind == "gnu tar" else tarfile.PAX_FORMAT,
        )
    (tmp_path / "a.skill").write_bytes(content)

    unpacked = unpack(tmp_path / "a.skill", tmp_path / "out")

    assert unpacked.root == tmp_path / "out" / "my-skill"
    assert unpacked.files == 4
    assert (unpacked.root / "SKILL.md").read_text() == "do it"
    assert (unpacked.root / "run.sh").stat().st_mode & 0o7777 == 0o755
    assert (unpacked.root / "SKILL.md").stat().st_mode & 0o7777 == 0o644
    assert (tmp_path / "out" / long_name).read_text() == "deep"
    assert (unpacked.root / "caf\u00e9.txt").exists()


def test_an_archive_without_a_folder_around_it_is_its_own_root(tmp_path):
    (tmp_path / "a.zip").write_bytes(zipped(("SKILL.md", b"x"), ("evals/evals.json", b"{}")))
    assert unpack(tmp_path / "a.zip", tmp_path / "out").root == tmp_path / "out"


def test_an_archive_larger_than_allowed_is_not_even_read(tmp_path):
    (tmp_path / "a.zip").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(BadArchive, match="more than 50"):
        unpack(tmp_path / "a.zip", tmp_path / "out", UnpackCaps(archive_bytes=50))


def test_the_size_as_claimed_is_not_believed(tmp_path):
    whole = bytearray(zipped(("a", b"\0" * 400_000)))
    table = whole.index(b"PK\x01\x02")
    whole[22:26] = whole[table + 24 : table + 28] = struct.pack("<I", 10)
    (tmp_path / "a.zip").write_bytes(bytes(whole))
    with pytest.raises(BadArchive):
        unpack(tmp_path / "a.zip", tmp_path / "out", SMALL)
    assert not (tmp_path / "out").exists()


def test_random_bytes_behind_a_right_beginning_never_break_it(tmp_path):
    archive = tmp_path / "a"
    good = {"zip": zipped(("a/b", b"x" * 500), ("c", b"y")), "tar": zlib.decompress(tar(("a/b", b"x" * 500)), 31)}
    for seed in range(300):
        kind = ("zip", "tar")[seed % 2]
        content = bytearray(good[kind])
        for place in range(seed % 7 + 1):
            content[(seed * 7919 + place * 104_729) % len(content)] = (seed * 31 + place) % 256
        archive.write_bytes(bytes(content) if kind == "zip" else gzip.compress(bytes(content), 1))
        try:
            unpack(archive, tmp_path / "out", SMALL)
        except BadArchive:
            assert not (tmp_path / "out").exists()
        else:
            remove_tree(tmp_path / "out")
        assert {path.name for path in tmp_path.iterdir()} == {"a"}
