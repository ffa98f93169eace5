"""What a case asks of the judge: every question with a short id, and two control statements among them.

The control statements say with which words the material ends. Exactly one of them is true, and which one differs from
run to run, so that an answer that passes everything, or nothing, gives itself away. Their texts are the same for all
runs of a case: the prefix stays cacheable.
"""

import functools
import hashlib
import json
import re
from dataclasses import dataclass, field

from schemas.suite import Case, Criterion, Dimension, Statement, StructuralExpectation

CONTROL_WORDS = 6
CONSONANTS, VOWELS = "bdfgklmnprstvz", "aeiou"
SYLLABLES = 3
# A structural expectation keeps its id where that cannot be mistaken for one of ours.
PLAIN_ID = re.compile(r"(?![ECD]\d+\Z)[A-Za-z0-9][\w.-]{0,39}\Z")


@dataclass(frozen=True)
class Control:
    """One control statement: true when the material ends with these words."""

    phrase: str

    @property
    def text(self) -> str:
        """The statement as the judge reads it."""
        return f'The material ends with the words "{self.phrase}".'


@dataclass(frozen=True)
class Questions:
    """Everything to be decided, by id."""

    statements: dict[str, Statement | Control]
    criteria: dict[str, Criterion]
    dimensions: dict[str, Dimension]
    checks: dict[str, StructuralExpectation] = field(default_factory=dict)  # decided by code; remarks may name them
    with_conventions: bool = False

    @functools.cached_property
    def controls(self) -> dict[str, Control]:
        """The two control statements."""
        return {id_: asked for id_, asked in self.statements.items() if isinstance(asked, Control)}

    @functools.cached_property
    def own_statements(self) -> dict[str, Statement]:
        """The statements of the case itself."""
        return {id_: asked for id_, asked in self.statements.items() if isinstance(asked, Statement)}

    @property
    def ids(self) -> tuple[str, ...]:
        """All ids except the controls': what a remark may be about."""
        return (*self.own_statements, *self.criteria, *self.dimensions, *self.checks)


def needs_judge(case: Case) -> bool:
    """Whether the case asks anything that only a model can decide."""
    return bool(case.statements or case.criteria or dimensions_of(case))


def dimensions_of(case: Case) -> tuple[Dimension, ...]:
    """The rubric's dimensions; none without a rubric."""
    return case.rubric.dimensions if case.rubric else ()


def questions_of(case: Case, with_conventions: bool = False) -> Questions:
    """The questions of a case; the same case gives the same questions."""
    digest = hashlib.sha256(question_text(case).encode()).digest()
    asked: list[Statement | Control] = list(case.statements)
    for number in range(2):
        place = digest[number] % (len(asked) + 1)
        asked.insert(place, Control(phrase_of(digest + bytes([number]))))
    return Questions(
        {f"E{number}": statement for number, statement in enumerate(asked, 1)},
        {f"C{number}": criterion for number, criterion in enumerate(case.criteria, 1)},
        {f"D{number}": dimension for number, dimension in enumerate(dimensions_of(case), 1)},
        {check.id: check for check in case.structural if PLAIN_ID.match(check.id)},
        with_conventions,
    )


def question_text(case: Case) -> str:
    """All of a case that a judgement depends on, in one stable text."""
    # Weights and `required` are our arithmetic, not the judge's: changing them asks nobody again.
    criteria = [[c.criterion, c.description] for c in case.criteria]
    dimensions = [[d.name, d.description, sorted(d.scoring.items())] for d in dimensions_of(case)]
    statements = [statement.text for statement in case.statements]
    checks = [[check.id, check.description] for check in case.structural]
    parts = [case.prompt, case.expected_output, statements, criteria, dimensions, checks]
    return json.dumps(parts, ensure_ascii=False)


@functools.lru_cache(maxsize=4_096)
def phrase_of(seed: bytes) -> str:
    """Words that nobody writes by chance."""
    return " ".join(word_of(seed + bytes([number])) for number in range(CONTROL_WORDS))


def word_of(seed: bytes) -> str:
    """One made-up word."""
    digest = hashlib.sha256(seed).digest()
    pairs = [digest[2 * place : 2 * place + 2] for place in range(SYLLABLES)]
    return "".join(CONSONANTS[a % len(CONSONANTS)] + VOWELS[b % len(VOWELS)] for a, b in pairs)
