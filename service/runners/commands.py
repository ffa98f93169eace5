"""Which files a shell command reads, as far as its words tell; what it runs inside other programs it does not."""

import fnmatch
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

# Programs that name files without showing what is in them.
_SILENT = frozenset(
    {
        *(
            "ls",
            "find",
            "stat",
            "test",
            "[",
            "[[",
            "file",
            "du",
            "tree",
            "which",
            "type",
            "wc",
            "cksum",
            "echo",
            "printf",
        ),
        *(
            "realpath",
            "readlink",
            "basename",
            "dirname",
            "touch",
            "mkdir",
            "rm",
            "rmdir",
            "chmod",
            "md5sum",
            "sha256sum",
        ),
        *("command", "export", "unset", "declare", "local", "read", "set", "for", "case", "select"),
    }
)
_BEFORE_A_PROGRAM = frozenset(
    {"if", "then", "elif", "else", "while", "until", "do", "!", "{", "time", "exec", "env", "sudo", "nohup"}
)
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?^\s*\2\s*$", re.DOTALL | re.MULTILINE)
_HOME = re.compile(r"\$(?:HOME\b|\{HOME\})")


@dataclass(frozen=True)
class Places:
    """Folders that a command begins with."""

    working_directory: str
    home: str


def named_by(command: str, places: Places, files: Mapping[str, str]) -> Iterator[str]:
    """The files, by their paths, that a command opens; gives what the paths stand for."""
    directory = places.working_directory
    command = _HERE_DOCUMENT.sub(r"\3", command)
    for program, words in _simple_commands(_HOME.sub(lambda _: places.home, command)):
        if program in ("cd", "pushd"):
            directory = normal(words[0] if words else "~", directory, places)
        elif program not in _SILENT:
            paths = (normal(word, directory, places) for word in (program, *words))
            yield from (files[path] for wanted in paths for path in _matching(wanted, files))


def normal(path: str, directory: str, places: Places) -> str:
    """A path as the agent wrote it, absolute and without detours."""
    if path == "~" or path.startswith("~/"):
        path = places.home + path[1:]
    return posixpath.normpath(posixpath.join(directory, path))


def _matching(wanted: str, files: Mapping[str, str]) -> Iterator[str]:
    if wanted in files:
        yield wanted
    elif any(letter in wanted for letter in "*?["):
        level = wanted.count("/")
        yield from (path for path in files if path.count("/") == level and fnmatch.fnmatchcase(path, wanted))


def _simple_commands(command: str) -> Iterator[tuple[str, list[str]]]:
    """(program, words) of every part of a command line; nothing if it cannot be split."""
    words: list[str] = []
    for token in [*_tokens(command), ";"]:
        if token and set(token) <= set("();|&\n"):
            words = _without_prefixes(words)
            if words:
                yield words[0], _read_words(words[1:])
            words = []
        else:
            words.append(token)


def _tokens(command: str) -> list[str]:
    lexer = shlex.shlex(command.replace("\\\n", " "), posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    try:
        return list(lexer)
    except ValueError:  # a quote that is never closed
        return []


def _without_prefixes(words: list[str]) -> list[str]:
    """Without what stands before a program; a comment is none."""
    while words and (words[0] in _BEFORE_A_PROGRAM or re.fullmatch(r"\w+=.*", words[0], re.DOTALL)):
        words = words[1:]
    return [] if words and words[0].startswith("#") else words


def _read_words(words: list[str]) -> list[str]:
    """Without signs of redirection, and without what is written to."""
    written = {index + 1 for index, word in enumerate(words) if word in (">", ">>", ">&", ">|", "&>")}
    return [word for index, word in enumerate(words) if index not in written and not set(word) <= set("<>&|")]
