"""Which paths a glob names."""

import pytest

from service.errors import BadInput
from service.sandbox.globs import compile_glob


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.ts", "a.ts"),
        ("*.ts", "x/y/a.ts"),
        ("src/*.ts", "src/a.ts"),
        ("src/*.ts", "packages/p/src/a.ts"),
        ("**/*.md", "a.md"),
        ("**/*.md", "x/y/a.md"),
        ("src/**/*.ts", "src/a.ts"),
        ("src/**/*.ts", "src/b/c/a.ts"),
        ("src/**", "src/a/b"),
        ("**", "a/b"),
        ("*", ".hidden"),
        ("*", "folder/.hidden"),
        ("[ab].txt", "b.txt"),
        ("[!ab].txt", "c.txt"),
        ("?.txt", "c.txt"),
        ("./a.txt", "a.txt"),
        ("a//b", "a/b"),
        ("a/**/b/**/c", "a/x/b/c/c"),
        ("{id}.ts", "{id}.ts"),
        ("[id].tsx", "i.tsx"),
    ],
)
def test_a_glob_names_a_path(pattern, path):
    assert compile_glob(pattern)(path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.ts", "a.TS"),
        ("*.ts", "a.ts/b"),
        ("src/*.ts", "src/b/a.ts"),
        ("src/*.ts", "xsrc/a.ts"),
        ("src/**", "src"),
        ("a/**/b/**/c", "a/x/c"),
        ("[ab].txt", "c.txt"),
        ("[id].tsx", "[id].tsx"),
    ],
)
def test_a_glob_does_not_name_another_path(pattern, path):
    assert not compile_glob(pattern)(path)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("", "is empty"),
        ("/", "is empty"),
        ("/etc/*", "leaves the outputs"),
        ("../*", "leaves the outputs"),
        ("a/../../b", "leaves the outputs"),
        ("a\0b", "leaves the outputs"),
        ("*.{ts,js}", "write two checks"),
        ("x" * 1001, "is longer"),
        ("a/" * 65 + "b", "is longer"),
    ],
)
def test_what_is_no_glob_is_refused_with_the_reason(pattern, reason):
    with pytest.raises(BadInput, match=reason):
        compile_glob(pattern)


def test_many_stars_do_not_take_long():
    assert not compile_glob("**/" * 30 + "x")("/".join("a" * 60))
    assert not compile_glob("*a" * 100 + "b")("a" * 255)
