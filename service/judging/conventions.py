"""The five conventions of skills: what code can decide, code decides; the rest is the judge's word."""

import re

from schemas.grading import ConventionCheck
from service.judging.answers import JUDGED_CONVENTIONS
from service.judging.material import JudgeMaterial, OutputFile
from service.judging.verdict import ConventionVerdict

NAMES = ("frontmatter", "description_field", "token_efficiency", "progressive_disclosure", "type_alignment")
NOT_APPLICABLE = ConventionCheck(passed=None, details="N/A - behavioral run")
FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)(?:^)---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"([A-Za-z][\w-]*):(?:[ \t]+(.*))?\Z")
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
MAX_NAME_CHARS = 64
MAX_DESCRIPTION_CHARS = 1_024
BLOCK_SCALARS = frozenset({"|", ">", "|-", ">-", "|+", ">+"})


def convention_checks(
    material: JudgeMaterial, judged: dict[str, ConventionVerdict], word_target: int
) -> dict[str, ConventionCheck]:
    """All five, in their order; none applies when the run wrote no skill."""
    skill = written_skill(material)
    if skill is None:
        return dict.fromkeys(NAMES, NOT_APPLICABLE)
    text = (skill.data or b"").decode("utf-8", "replace")
    decided = {"frontmatter": front_matter_check(text), "token_efficiency": length_check(text, word_target)}
    decided |= {
        name: ConventionCheck(passed=judged[name].passed, details=judged[name].details)
        for name in JUDGED_CONVENTIONS
        if name in judged
    }
    if not fields_of(text).get("description"):
        decided["description_field"] = ConventionCheck(passed=False, details="There is no description")
    return {name: decided[name] for name in NAMES if name in decided}


def written_skill(material: JudgeMaterial) -> OutputFile | None:
    """The SKILL.md of the run, the one nearest to the top; None if the run wrote none."""
    found = [file for file in material.outputs if file.path.rsplit("/", 1)[-1] == "SKILL.md" and file.data is not None]
    return min(found, key=lambda file: (file.path.count("/"), file.path), default=None)


def front_matter_check(text: str) -> ConventionCheck:
    """Whether the front matter is there, can be read, and names and describes the skill."""
    problems = front_matter_problems(text)
    if problems:
        return ConventionCheck(passed=False, details="; ".join(problems))
    return ConventionCheck(passed=True, details="Valid front matter, name and description present")


def front_matter_problems(text: str) -> list[str]:
    """Everything that is wrong with the front matter."""
    found = FRONT_MATTER.match(text)
    if not found:
        return ["No front matter between two lines of ---"]
    broken = [line for line in found.group(1).splitlines() if not is_field_line(line)]
    if broken:
        return [f"Not readable as key: value: {broken[0][:80]!r}"]
    fields = fields_of(text)
    problems = [f"{name} is missing or empty" for name in ("name", "description") if not fields.get(name)]
    if fields.get("name") and not (NAME.match(fields["name"]) and len(fields["name"]) <= MAX_NAME_CHARS):
        problems.append("name is not lower-case letters, digits and hyphens")
    if len(fields.get("description", "")) > MAX_DESCRIPTION_CHARS:
        problems.append(f"description has {len(fields['description'])} characters, over {MAX_DESCRIPTION_CHARS}")
    return problems


def is_field_line(line: str) -> bool:
    """Whether a line of front matter is a field, its continuation, a list item, a comment or empty."""
    if not line.strip() or line.startswith(("#", "- ", " ", "\t")):
        return "\t" not in line[: len(line) - len(line.lstrip())]
    return FIELD.match(line) is not None


def fields_of(text: str) -> dict[str, str]:
    """The top fields of the front matter; folded lines are joined."""
    found = FRONT_MATTER.match(text)
    fields: dict[str, str] = {}
    last = ""
    for line in found.group(1).splitlines() if found else ():
        field = FIELD.match(line)
        if field:
            last, value = field.group(1), (field.group(2) or "").strip()
            fields[last] = "" if value in BLOCK_SCALARS else value.strip("\"'")
        elif last and line.startswith(" "):
            fields[last] = f"{fields[last]} {line.strip()}".strip()
    return fields


def length_check(text: str, word_target: int) -> ConventionCheck:
    """Whether the skill's body is short enough to be read every time."""
    found = FRONT_MATTER.match(text)
    words = len((found.group(2) if found else text).split())
    if words <= word_target:
        return ConventionCheck(passed=True, details=f"{words} words, under {word_target} target")
    return ConventionCheck(passed=False, details=f"{words} words, over {word_target} target")
