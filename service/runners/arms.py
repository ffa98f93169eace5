"""Proof that a run's arm was what it claims: no arm had the skill of the other one.

A canary is a word that stands nowhere but in one staged skill of this batch: where it shows up, that skill was read. It
comes from an id that nobody is ever told, so none can write it by itself, and every worker finds the same. It is a
comment at the end of SKILL.md; runners that can, take it out again before the model sees it.
"""

import contextlib
import hashlib
import hmac
import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from schemas.states import Outcome
from service.errors import StageFailed
from service.sandbox.reader import CannotRead, Caps, Reader, shown

_PLANTED = re.compile(r"\n?<!-- assay-canary-[0-9a-f]{24} -->\n?")
_LEAST_BYTES = 64  # smaller files are alike by chance
_COMMON_NAMES = ("license", "licence", "copying", "notice")
# Home and /tmp are looked through too: as many entries as a command may make, files as large as a skill's may be.
_SCAN = Caps(entries=250_000, file_bytes=64 * 2**20)
SKILL_AT = "skill"  # where a run's folder has the arm's own skill, beside workspace, home and tmp


def canary_of(secret: str, batch_id: str, digest: str) -> str:
    """The canary of a skill, by its digest, in a batch; the same in every worker that knows the secret."""
    told = hmac.new(secret.encode(), f"canary:{batch_id}:{digest}".encode(), hashlib.sha256).hexdigest()
    return f"assay-canary-{told[:24]}"


def plant(skill: Path, canary: str) -> None:
    """Put the canary into a staged skill; planting twice changes nothing."""
    page = skill / "SKILL.md"
    text = page.read_text(encoding="utf-8", errors="surrogateescape")
    if canary not in text:
        page.write_text(f"{text}\n<!-- {canary} -->\n", encoding="utf-8", errors="surrogateescape")


def without_canary(text: str) -> str:
    """A text as it was before the planting."""
    return _PLANTED.sub("\n", text) if "assay-canary-" in text else text


def telling_files(files: Mapping[str, Mapping[str, Any]], allowed: Iterable[str] = ()) -> dict[str, str]:
    """sha256 -> path of the files of a snapshot (path -> sha256, size) that nobody has by chance.

    `allowed` are digests that the arm may well have.
    """
    ignored = set(allowed)
    return {
        str(entry["sha256"]): path
        for path, entry in files.items()
        if entry["size"] >= _LEAST_BYTES
        and entry["sha256"] not in ignored
        and not posixpath.basename(path).lower().startswith(_COMMON_NAMES)
    }


def file_digests(skill: Path, allowed: Iterable[str] = ()) -> dict[str, str]:
    """The same for a skill's folder."""
    reader = Reader(skill, _SCAN)
    found = {path: reader.read_bytes(path) for path in reader.listing.files}
    files = {path: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for path, data in found.items()}
    return telling_files(files, allowed)


@dataclass(frozen=True)
class Arm:
    """One run's arm, to be proven before and after.

    `other_canary` is the canary of the other arm's skill, if that has one. `absent` are digests of files that this arm
    must not hold: all telling files of the treatment's skill in an arm without one, those that only the other version
    has where two versions are compared.
    """

    other_canary: str | None
    has_skill: bool
    absent: Mapping[str, str]  # sha256 -> path in the skill

    def check_before(self, folder: Path, shown_files: Iterable[Path] = ()) -> None:
        """Look through all that the agent will be able to see: a run's folder, and files that it is shown besides.

        Raises StageFailed (contaminated).
        """
        self._scan(folder, "before the run")
        for file in shown_files:
            with contextlib.suppress(CannotRead):
                self._look_at(str(file), Reader(file.parent, _SCAN).read_bytes(file.name), "before the run")

    def check_after(self, folder: Path, *texts: bytes) -> None:
        """Look through what the agent left behind and what was said; raises StageFailed (contaminated)."""
        for text in texts:
            if self._shows_the_other(text):
                raise contaminated("the other skill's canary is in the transcript")
        self._scan(folder, "after the run")

    def _scan(self, folder: Path, when: str) -> None:
        reader = Reader(folder, _SCAN)
        for path in _seen_by_the_agent(reader):
            if self.other_canary is None and not self.absent:
                return  # there is no other skill
            if self.has_skill and path.startswith(f"{SKILL_AT}/"):
                continue
            with contextlib.suppress(CannotRead):  # larger than any file of a skill may be, or gone meanwhile
                self._look_at(path, reader.read_bytes(path), when)

    def _look_at(self, path: str, data: bytes, when: str) -> None:
        twin = self.absent.get(hashlib.sha256(data).hexdigest())
        if twin is not None:
            raise contaminated(f"{shown(path)} is a copy of the skill's {twin} {when}")
        if self._shows_the_other(data):
            raise contaminated(f"{shown(path)} holds the other skill's canary {when}")

    def _shows_the_other(self, data: bytes) -> bool:
        return self.other_canary is not None and self.other_canary.encode() in data


def _seen_by_the_agent(reader: Reader) -> tuple[str, ...]:
    try:
        return reader.listing.files
    except CannotRead as error:  # in every arm alike, or failures would favour one
        raise StageFailed(Outcome.EXECUTOR_ERROR, f"the run's folder cannot be looked through: {error}") from error


def contaminated(what: str) -> StageFailed:
    """The control arm was none."""
    return StageFailed(Outcome.CONTAMINATED, f"the arm was not what it claims: {what}")
