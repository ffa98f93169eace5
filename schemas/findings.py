"""What reading a file found out: located remarks, and the one error reading may raise."""

from enum import StrEnum

from schemas.base import Word


class Level(StrEnum):
    """How bad a finding is."""

    ERROR = "error"  # the document cannot be used as it is
    WARNING = "warning"  # it can, but something in it contradicts itself
    NOTE = "note"  # it can, and this is how we understood it


class Finding(Word):
    """One remark about one place of a document."""

    level: Level
    path: str  # JSON path such as evals[2].prompt; "" is the whole document; line:column for broken JSON
    message: str  # what is wrong and what to do, lower case, no full stop
    code: str  # stable, for programs: missing_prompt, duplicate_id, ...


class Unreadable(Exception):
    """The bytes are no JSON document that we may look at; carries one located finding."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        super().__init__(f"{finding.path}: {finding.message}" if finding.path else finding.message)
