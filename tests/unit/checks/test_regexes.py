"""Catastrophic and memory-hungry regexes: each ends within its cap, and the engine lives."""

import os
import threading
import time

import pytest

from schemas.suite import Case, StructuralExpectation
from service.checks import Tools, check
from service.checks.engine import Engine
from service.checks.verdict import Undecided
from service.sandbox.reader import Reader

A30 = "a" * 40
SLOW = "timed out after 0.25 s"
HUNGRY = "ran out of memory|timed out|broke"
CATASTROPHES = [
    ("(a+)+$", A30 + "!", SLOW),
    ("(.*)*x", A30, SLOW),
    (r"^(\w+\s?)*$", "word " * 12 + "!", SLOW),
    ("(x+x+)+y", "x" * 40, SLOW),
    ("a*" * 25 + "b", A30, SLOW),
    ("(?:.*,){15}X", "a," * 40, SLOW),
    ("(a|aa)+$", A30 * 2 + "!", SLOW),
    ("(a|a)*$", A30 + "!", SLOW),
    (r"(\d+)+x", "1" * 40, SLOW),
    (r"([a-zA-Z]+)*$", A30 + "1", SLOW),
    ("(a|b|ab)*c", "ab" * 40, SLOW),
    (r"^(([a-z])+.)+[A-Z]([a-z])+$", A30, SLOW),
    (r"^([a-zA-Z0-9])(([\-.]|[_]+)?([a-zA-Z0-9]+))*(@){1}$", A30 + "!", SLOW),
    (r"(?=(a+)+$)b", A30 + "!", SLOW),
    (r"(a+)+\1$", A30 + "!", SLOW),
    (r"(.*?,){12}P", "1," * 60, SLOW),
    (r"(\s*\w+\s*)+;", "ab " * 20, SLOW),
    (r"((a*)*)*b", A30, SLOW),
    (r"(?i)(A+)+$", A30 + "!", SLOW),
    (r"(?s)(.+)+\n$", A30, SLOW),
    (r"(<[^>]*>)*(\s*<)+x", "<" * 50_000, SLOW),
    (r"\s+$", " " * 60_000 + "x", SLOW),
    (r"(?:(a)|b)*$", "ab" * 3_000_000 + "c", HUNGRY),
    (r"(?:(a)|(b)|(c))*?$", "abc" * 2_000_000 + "d", HUNGRY),
    (r"((((((a*)*)*)*)*)*)*$", A30 + "b", SLOW),
    (r"(a{1,50}){1,50}$", "a" * 60 + "!", SLOW),
]


@pytest.fixture(scope="module")
def impatient():
    with Engine(seconds=0.25, memory_bytes=150 << 20) as engine:
        yield engine


@pytest.mark.parametrize(("pattern", "text", "reason"), CATASTROPHES)
def test_a_catastrophe_ends_and_the_next_search_works(impatient, pattern, text, reason):
    with pytest.raises(Undecided, match=reason):
        impatient.search(pattern, [text])
    assert impatient.search("b+", ["abbc"]).text == "bb"


def test_there_are_at_least_twenty_five():
    assert len({pattern for pattern, _, _ in CATASTROPHES}) >= 25


def test_a_check_with_such_a_regex_is_open_and_says_why(impatient, tmp_path):
    (tmp_path / "notes.txt").write_text(A30 + "!")
    rows = [("file_contains", "(a+)+$"), ("file_not_contains", "(a+)+$"), ("file_contains", "a!")]
    expectations = tuple(
        StructuralExpectation(id=f"S{number}", type=kind, params={"match_regex": regex}, critical=True)
        for number, (kind, regex) in enumerate(rows)
    )
    case = Case(id=1, prompt="p", structural=expectations)

    made = check(case, Reader(tmp_path), None, None, Tools(impatient, lambda: None))

    assert [one.passed for one in made.expectations] == [None, None, True]
    assert made.expectations[0].error == "the regex timed out after 0.25 s on notes.txt"
    assert made.gate_passed is None


def test_the_file_on_which_a_regex_breaks_is_named_among_many(impatient, tmp_path):
    for name, content in (("a.txt", "fine"), ("b.txt", A30 + "!"), ("c.txt", "fine")):
        (tmp_path / name).write_text(content)
    expectations = tuple(
        StructuralExpectation(id=kind, type=kind, params={"match_regex": "(a+)+$"})
        for kind in ("file_contains", "file_not_contains")
    )
    case = Case(id=1, prompt="p", structural=expectations)

    made = check(case, Reader(tmp_path), None, None, Tools(impatient, lambda: None))

    assert {one.error for one in made.expectations} == {"the regex timed out after 0.25 s on b.txt"}


def test_schemas_with_such_a_regex_end_too(impatient):
    with pytest.raises(Undecided, match="timed out"):
        impatient.validate(f'"{A30}!"', {"pattern": "^(a+)+$"})


def test_one_slow_search_does_not_hold_up_other_threads():
    outcomes = []

    def search_slowly(engine):
        with pytest.raises(Undecided):
            engine.search("(a+)+$", [A30 + "!"])
        outcomes.append("slow")

    with Engine(seconds=1) as engine:
        engine.search("a", ["a"])
        slow = threading.Thread(target=search_slowly, args=(engine,))
        slow.start()
        while engine._idle:  # until the slow search has taken the child that was there
            time.sleep(0.001)
        engine.search("a", ["a"])
        outcomes.append("quick")
        slow.join()

    assert outcomes == ["quick", "slow"]


def test_children_are_used_again(impatient):
    impatient.search("a", ["a"])
    known = {child.pid for child in impatient._idle}
    for _ in range(5):
        impatient.search("a", ["a"])
    assert {child.pid for child in impatient._idle} == known


def test_a_child_that_was_killed_is_replaced(impatient):
    impatient.search("a", ["a"])
    for child in impatient._idle:
        child.kill()
        child.wait()
    assert impatient.search("a", ["a"]).line == 1


def test_it_works_on_both_sides_of_a_fork(impatient):
    impatient.search("a", ["a"])
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if impatient.search("b", ["ab"]) else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert impatient.search("c", ["abc"]).text == "c"
